import { Arena, type Outcome, program } from './arena.ts'
import { type Plan, planOf } from './plan.ts'
import { told } from './report.ts'
import { shrink } from './shrink.ts'

export interface CampaignOptions {
  readonly minutes: number
  /** The first seed; each case has the next one. */
  readonly first: number
  readonly count: number
  /** Threads of the program; undefined for one and three by turns. */
  readonly threads: number | undefined
  readonly say: (text: string) => void
}

/** Cases at the same time, and cases between two looks at what is left over. */
const side = 24
const batch = 300
/** How long a program is used before the next one is started, milliseconds. */
const turnMs = 60_000
const tellMs = 10_000
const shrinkMs = 20_000

/** Cases by consecutive seeds, until time or count is used up or one of them shows a fault. */
export class Campaign {
  readonly #options: CampaignOptions
  #next: number
  readonly #end: number
  readonly #last: number
  #done = 0
  #found = false
  readonly #began = performance.now()

  constructor(options: CampaignOptions) {
    this.#options = options
    this.#next = options.first
    this.#last = options.first + options.count
    this.#end = performance.now() + options.minutes * 60_000
  }

  get #over(): boolean {
    return this.#next >= this.#last || performance.now() >= this.#end
  }

  /** @returns whether nothing was found */
  async run(): Promise<boolean> {
    const { first, count, minutes, say } = this.#options
    say(`fuzz: seeds from ${first}, ${Number.isFinite(count) ? `${count} cases` : `${minutes} minutes`}`)
    const timer = setInterval(() => this.#progress(), tellMs)
    try {
      for (let turn = 0; !this.#over; turn++) {
        const threads = this.#options.threads ?? [1, 3][turn % 2]!
        const arena = await Arena.open((peers) => program(peers, threads))
        try {
          const until = Math.min(this.#end, performance.now() + turnMs)
          while (!this.#over && performance.now() < until)
            if (!(await this.#batch(arena, threads))) return false
        } finally {
          await arena.close()
        }
      }
      this.#progress()
      say('fuzz: no finding')
      return true
    } finally {
      clearInterval(timer)
    }
  }

  #progress(): void {
    if (this.#found) return
    const seconds = Math.round((performance.now() - this.#began) / 1000)
    this.#options.say(`fuzz: ${seconds} s, ${this.#done} cases, seeds up to ${this.#next - 1}, no finding`)
  }

  async #batch(arena: Arena, threads: number): Promise<boolean> {
    const outcomes: Outcome[] = []
    const from = this.#next
    const to = Math.min(this.#last, from + batch)
    const worker = async () => {
      while (this.#next < to && performance.now() < this.#end) {
        const outcome = await arena.run(planOf(this.#next++))
        outcomes.push(outcome)
        this.#done += 1
      }
    }
    await Promise.all(Array.from({ length: Math.min(side, to - from) }, worker))
    const left = await arena.settle(outcomes)
    const bad = outcomes.filter(({ faults }) => faults.length > 0)
    if (bad.length === 0 && left.length === 0) return true
    await this.#tell(arena, threads, bad, left, from)
    return false
  }

  async #tell(
    arena: Arena,
    threads: number,
    bad: readonly Outcome[],
    left: readonly string[],
    from: number,
  ): Promise<void> {
    const { say } = this.#options
    this.#found = true
    say(`fuzz: FINDING among the seeds ${from} to ${this.#next - 1}, ${threads} threads`)
    for (const fault of left) say(`  after the batch: ${fault}`)
    for (const outcome of bad.slice(0, 5)) say(told(outcome))
    const [one] = bad
    if (!one) return
    const shows = async (plan: Plan) => {
      const { faults } = await arena.run(plan)
      await arena.settle([])
      return faults.length > 0
    }
    if (!(await shows(one.plan)) && !(await shows(one.plan))) {
      say(
        `fuzz: seed ${one.plan.seed} alone does not show it: npm run fuzz -- --seed ${from} --count ${this.#next - from}`,
      )
      return
    }
    const small = await shrink(one.plan, shows, shrinkMs)
    say('fuzz: made smaller')
    say(told(await arena.run(small)))
    say(`fuzz: again with npm run fuzz -- --seed ${one.plan.seed}`)
  }
}
