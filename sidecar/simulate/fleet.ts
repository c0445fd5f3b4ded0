import { Ledger } from '../../feedback/fleet/ledger.ts'
import type { Telling } from '../../feedback/fleet/told.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import { Agenda } from './agenda.ts'
import { dice } from './dice.ts'
import { FleetStore } from './fleet-store.ts'

/** By so much of it an interval is shorter or longer, as in the program. */
const jitter = 0.1
/** What an instance has told counts for so long, milliseconds. */
const ttl = 5000
/** From an instance to the store, and the same back, milliseconds. */
const network = 0.5
/** What the store's clock is ahead by: nothing may depend on clocks that agree. */
const ahead = 1e9

interface Instance {
  readonly id: string
  readonly ledger: Ledger
  readonly random: () => number
  /** What is under way to the store, and when it set out. */
  telling: Telling | undefined
  toldAt: number
}

/**
 * The sidecars of a simulation that tell one another what they see, through a store, as the program's do through Redis:
 * each so often, at a phase of its own.
 */
export class SimulatedFleet {
  readonly #interval: number
  readonly #store = new FleetStore()
  readonly #instances: readonly Instance[]
  /** Of each instance two numbers: the even one is a tick, the odd one an exchange that reaches the store and is answered. */
  readonly #agenda = new Agenda()

  /**
   * @param interval milliseconds
   * @param begin the moment of the first tick at the earliest, by the clock of `next`
   */
  constructor(upstreams: readonly Upstream[], interval: number, seed: number, begin: number) {
    this.#interval = interval
    this.#instances = upstreams.map((upstream, i) => ({
      id: `i${i}`,
      ledger: new Ledger(upstream),
      random: dice(seed, 'fleet', i),
      telling: undefined,
      toldAt: 0,
    }))
    for (const [i, { random }] of this.#instances.entries())
      this.#agenda.add(begin + random() * interval, 2 * i)
  }

  /** When something happens next, milliseconds. */
  get next(): number {
    return this.#agenda.next
  }

  /** Lets that happen. */
  step(): void {
    const now = this.#agenda.next
    const number = this.#agenda.take()
    const instance = this.#instances[number >> 1]!
    if (number % 2 === 1) {
      this.#answer(instance, now)
      return
    }
    const span = this.#interval * (1 - jitter + 2 * jitter * instance.random())
    this.#agenda.add(now + span, number)
    if (instance.telling !== undefined) return
    instance.telling = instance.ledger.gather(now)
    instance.toldAt = now
    this.#agenda.add(now + 2 * network, number + 1)
  }

  /**
   * The way takes the same time for all, so the store may as well be asked when the answer is there: the order is the
   * same, and its clock is set back by the way.
   */
  #answer(instance: Instance, now: number): void {
    const { id, ledger, toldAt } = instance
    const telling = instance.telling!
    instance.telling = undefined
    const heard = this.#store.exchange(ledger.send(telling, id, ttl), ahead + now - network)
    ledger.hear(telling, heard, (toldAt + now) / 2, now)
  }
}
