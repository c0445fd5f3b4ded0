import { arrivals } from './tail-arrivals.ts'
import { type Batch, warmMs } from './tail-batch.ts'
import { type Figures, figures, percentile } from './tail-figures.ts'
import { idealTimes } from './tail-ideal.ts'
import { arrivalRate, type Plan } from './tail-plan.ts'

/** Above these a measurement says more of the machine than of the methods; milliseconds, and a ratio. */
const limits = { p99: 12, max: 60, excess: 1.1 } as const

/** Delays, milliseconds. */
export interface Delays {
  readonly p99: number
  readonly max: number
}

/** What the machine, and not a method, did to a measurement. */
export interface Machine {
  /** From when requests were due until they were sent. */
  readonly sending: Delays
  /** From when the sidecar was due to be asked for an answer of its own until that came. */
  readonly sidecar: Delays
  /** p99 of the best possible as a ratio to what it is by arithmetic. */
  readonly excess: number
  /** Whether it was so much that the measurement is no good. The methods have no say in that. */
  readonly disturbed: boolean
}

/** The best possible of a run by arithmetic, as on a machine that costs no time. */
export function computed(plan: Plan, seed: number, ms: number): Figures {
  const stream = arrivals(seed, arrivalRate(plan), warmMs + ms)
  return figures(idealTimes(plan, stream, warmMs), 0)
}

/** @param best p99 of the best possible as measured, and by arithmetic */
export function machine({ measured, self }: Batch, best: { measured: number; computed: number }): Machine {
  const sending = measured.map(({ late }) => delays(late))
  const found = {
    sending: {
      p99: Math.max(...sending.map(({ p99 }) => p99)),
      max: Math.max(...sending.map(({ max }) => max)),
    },
    sidecar: delays(self.times),
    excess: best.measured / best.computed,
  }
  return { ...found, disturbed: isDisturbed(found) }
}

export function isDisturbed({ sending, sidecar, excess }: Omit<Machine, 'disturbed'>): boolean {
  const p99 = Math.max(sending.p99, sidecar.p99)
  const max = Math.max(sending.max, sidecar.max)
  return p99 > limits.p99 || max > limits.max || excess > limits.excess
}

/** One line of text. */
export function machineText({ sending, sidecar, excess, disturbed }: Machine): string {
  const pair = ({ p99, max }: Delays) => `${p99.toFixed(1)} ms at p99, ${max.toFixed(0)} at most`
  const verdict = disturbed ? ': DISTURBED by other programs' : ''
  return (
    `sent late by ${pair(sending)}; the sidecar comes to its own answers in ${pair(sidecar)}; ` +
    `best possible is ${excess.toFixed(2)} of what it is by arithmetic${verdict}`
  )
}

function delays(values: Float64Array): Delays {
  const sorted = Float64Array.from(values).sort()
  return { p99: percentile(sorted, 0.99), max: sorted.at(-1)! }
}
