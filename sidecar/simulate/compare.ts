import type { Wanted } from '../../feedback/carry.ts'
import { centralQueue } from './central.ts'
import { type Contender, shares } from './contenders.ts'
import { erlangC, type Waiting } from './erlang.ts'
import { Instances } from './instances.ts'
import { type Figures, measure } from './measure.ts'
import { run } from './run.ts'
import { type Plan, Stage } from './stage.ts'
import { workload } from './workload.ts'

/** What is compared, and on what. */
export interface Match {
  readonly plan: Plan
  readonly wanted: readonly Wanted[]
  /** `response_time_factor` / 100. */
  readonly keep: number
  readonly contenders: readonly Contender[]
  /**
   * How often sidecars tell one another what they see, milliseconds: each method that can make something of that is tried
   * without it and with it. Undefined: they never do.
   */
  readonly fleet?: number
  /** How often all is repeated, each time with the next seed. */
  readonly runs: number
}

/** A method's figures: of several runs the median of each. */
export interface Row {
  readonly words: string
  /** Whether the sidecars told one another what they saw. */
  readonly fleet: boolean
  readonly figures: Figures
  /** Percentiles by those of the central queue of the same run. */
  readonly ratios: Ratios
}

export interface Ratios {
  readonly p50: number
  readonly p99: number
  readonly p999: number
}

export interface Comparison {
  readonly stage: Stage
  readonly runs: number
  /** The best there could be. */
  readonly central: Figures
  readonly rows: readonly Row[]
  /** What the theory says of the central queue where peers are equal and nothing befalls them. */
  readonly theory: Waiting
}

/** Told before each simulation: which of how many, and of what method. */
export type Progress = (done: number, of: number, words: string) => void

/** Simulates all methods on the same requests. */
export function compare(match: Match, progress: Progress = () => {}): Comparison {
  const { plan, wanted, keep, runs } = match
  const tries = triesOf(match)
  const best: Figures[] = []
  const found = tries.map((): Figures[] => [])
  const of = runs * (tries.length + 1)
  for (let turn = 0; turn < runs; turn++) {
    const stage = new Stage({ ...plan, seed: plan.seed + turn })
    let done = turn * (tries.length + 1)
    progress(done++, of, 'central queue')
    const work = workload(stage)
    best.push(measure(stage, work, centralQueue(stage, work)))
    for (const [i, { contender, fleet }] of tries.entries()) {
      progress(done++, of, fleet === undefined ? contender.words : `${contender.words}, fleet`)
      const { instances: count, seed } = stage.plan
      const instances = new Instances(contender, wanted, keep, count, seed, fleet)
      found[i]!.push(measure(stage, work, run(stage, work, instances)))
    }
  }
  const stage = new Stage(plan)
  return {
    stage,
    runs,
    central: middle(best),
    rows: tries.map(({ contender: { words }, fleet }, i) => ({
      words,
      fleet: fleet !== undefined,
      figures: middle(found[i]!),
      ratios: {
        p50: median(found[i]!.map(({ p50 }, turn) => p50 / best[turn]!.p50)),
        p99: median(found[i]!.map(({ p99 }, turn) => p99 / best[turn]!.p99)),
        p999: median(found[i]!.map(({ p999 }, turn) => p999 / best[turn]!.p999)),
      },
    })),
    theory: erlangC(stage.workers, plan.load, plan.service),
  }
}

/** What is simulated: methods in their order, those that share with it and without. */
function triesOf({ contenders, fleet }: Match): { contender: Contender; fleet: number | undefined }[] {
  return contenders.flatMap((contender) => {
    const alone = { contender, fleet: undefined }
    return fleet !== undefined && shares(contender) ? [alone, { contender, fleet }] : [alone]
  })
}

function middle(all: readonly Figures[]): Figures {
  const of = (pick: (figures: Figures) => number) => median(all.map(pick))
  return {
    requests: of(({ requests }) => requests),
    mean: of(({ mean }) => mean),
    p50: of(({ p50 }) => p50),
    p99: of(({ p99 }) => p99),
    p999: of(({ p999 }) => p999),
    errors: of(({ errors }) => errors),
    waiting: of(({ waiting }) => waiting),
    wait: of(({ wait }) => wait),
    recovery: all[0]?.recovery === undefined ? undefined : of(({ recovery }) => recovery!),
    shares: all[0]!.shares.map((_, peer) => of(({ shares }) => shares[peer]!)),
  }
}

/** The middle one; of an even count the lower of the two, so that it is a value that was found. */
function median(values: readonly number[]): number {
  // What is not a number comes last, as the worst.
  const sorted = values.toSorted((a, b) => (Number.isNaN(a) ? 1 : Number.isNaN(b) ? -1 : a - b))
  return sorted[(sorted.length - 1) >> 1]!
}
