import type { Fault, Plan } from './tail-plan.ts'

/** What a method must reach: p99 as a ratio to the best possible, and the share of requests that fail. */
export interface Target {
  readonly p99: number
  readonly errors: number
}

export interface Scenario {
  readonly name: string
  readonly title: string
  /** @param ms length of the measured part */
  plan(ms: number): Plan
  /** For `least_time` and for `least_time best`. */
  readonly targets: { readonly default: Target; readonly best: Target }
}

const equal = [1, 1, 1, 1, 1]
/** The peer in trouble where it is one. */
const troubled = 2

/** For the middle third. */
function third(ms: number, fault: Pick<Fault, 'rate' | 'fails'>): Fault {
  return { peer: troubled, from: ms / 3, until: (2 * ms) / 3, ...fault }
}

/** Peer after peer stops for 200 ms, at moments spread over 10 s, in a short run over half of it. */
function pauses(ms: number): Fault[] {
  const period = Math.min(10_000, ms / 2)
  const found: Fault[] = []
  for (let start = 0; start + period <= ms; start += period) {
    for (const peer of equal.keys()) {
      const from = start + ((peer + 0.5) / equal.length) * period
      found.push({ peer, from, until: from + 200, rate: 0, fails: false })
    }
  }
  return found
}

const errors = { default: 0.015, best: 0.003 }

function targets(best: number, usual: number): Scenario['targets'] {
  return { default: { p99: usual, errors: errors.default }, best: { p99: best, errors: errors.best } }
}

export const scenarios: readonly Scenario[] = [
  {
    name: 'speeds',
    title: 'speeds 1, 1, 2, 3, 5',
    // Scaled to what five equal peers do.
    plan: () => ({ speeds: [1, 1, 2, 3, 5].map((speed) => (speed * 5) / 12), faults: [] }),
    targets: targets(1.1, 1.35),
  },
  {
    name: 'slow',
    title: 'one peer 10 times slower for a third',
    plan: (ms) => ({ speeds: equal, faults: [third(ms, { rate: 0.1, fails: false })] }),
    targets: targets(1.08, 1.12),
  },
  {
    name: 'stall',
    title: 'one peer stalls 5 s',
    plan(ms) {
      const from = ms / 3
      const until = from + Math.min(5000, ms / 4)
      return { speeds: equal, faults: [{ peer: troubled, from, until, rate: 0, fails: false }] }
    },
    targets: targets(1.15, 1.15),
  },
  {
    name: 'failing',
    title: 'one peer answers 503 at once for a third',
    plan: (ms) => ({ speeds: equal, faults: [third(ms, { rate: 1, fails: true })] }),
    targets: targets(1.1, 1.08),
  },
  {
    name: 'pauses',
    title: 'pauses of 200 ms',
    plan: (ms) => ({ speeds: equal, faults: pauses(ms) }),
    targets: targets(1.18, 1.22),
  },
]
