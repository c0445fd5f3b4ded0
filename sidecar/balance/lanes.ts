import type { Attempt } from '../../feedback/outcome.ts'
import type { WaitEnd } from '../../feedback/waiting.ts'
import type { Selection } from './pick.ts'

/** How a request's time in the queue ended. */
export interface Waited {
  readonly end: WaitEnd
  /** By the group as it was then. */
  readonly selection: Selection
  /** Begun, where a peer was picked; otherwise undefined. */
  readonly attempt: Attempt | undefined
  /** Milliseconds. */
  readonly ms: number
}

/** A request that waits. */
export class Waiter {
  /** Settles once it waits no more. Rejects where looking for a peer throws, as a mistake of ours would. */
  readonly ended: Promise<Waited>
  /** Since when, monotonic milliseconds. */
  readonly since: number
  /** Place in the order of coming. */
  readonly serial: number
  selection: Selection
  /** Undefined when it waits no more. */
  lane: Lane | undefined = undefined
  before: Waiter | undefined = undefined
  after: Waiter | undefined = undefined
  #settle!: (waited: Waited) => void
  #fail!: (error: unknown) => void

  constructor(selection: Selection, since: number, serial: number) {
    this.selection = selection
    this.since = since
    this.serial = serial
    this.ended = new Promise((resolve, reject) => {
      this.#settle = resolve
      this.#fail = reject
    })
  }

  settle(end: WaitEnd, ms: number, attempt: Attempt | undefined): void {
    this.#settle({ end, selection: this.selection, attempt, ms })
  }

  fail(error: unknown): void {
    this.#fail(error)
  }
}

/** Requests that may go to the same peers, so that where the first finds nobody no other would; in the order of coming. */
class Lane {
  readonly name: string
  /** Undefined in one that is about to go. */
  first: Waiter | undefined = undefined
  last: Waiter | undefined = undefined

  constructor(name: string) {
    this.name = name
  }
}

/** All that wait in one queue, by what peers they may go to. A waiter is taken out in constant time, wherever it stands. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>()
  #size = 0
  /** Those that are to be asked still, by when their first ones came. */
  #turns: Lane[] = []

  get size(): number {
    return this.#size
  }

  /** @returns whether it is the first of those who may go to the same peers */
  add(waiter: Waiter): boolean {
    const name = waiter.selection.lane
    let lane = this.#lanes.get(name)
    if (lane === undefined) {
      lane = new Lane(name)
      this.#lanes.set(name, lane)
    }
    waiter.lane = lane
    waiter.before = lane.last
    waiter.after = undefined
    if (lane.last === undefined) lane.first = waiter
    else lane.last.after = waiter
    lane.last = waiter
    this.#size += 1
    return lane.first === waiter
  }

  remove(waiter: Waiter): void {
    const { lane, before, after } = waiter
    if (lane === undefined) return
    if (before === undefined) lane.first = after
    else before.after = after
    if (after === undefined) lane.last = before
    else after.before = before
    if (lane.first === undefined) this.#lanes.delete(lane.name)
    waiter.lane = undefined
    this.#size -= 1
  }

  /** Takes everybody out. @returns them, in the order of coming */
  clear(): Waiter[] {
    const all = [...this.all()].sort((one, other) => one.serial - other.serial)
    for (const waiter of all) this.remove(waiter)
    return all
  }

  /** From now on every lane is asked again. */
  begin(): void {
    this.#turns = [...this.#lanes.values()].sort((one, other) => one.first!.serial - other.first!.serial)
  }

  /** Whose turn it is: of the first ones in lanes that are not blocked, the one that came first. */
  next(): Waiter | undefined {
    const turns = this.#turns
    for (let [lane] = turns; lane !== undefined; [lane] = turns) {
      const { first } = lane
      const second = turns[1]?.first
      if (first !== undefined && (second === undefined || first.serial < second.serial)) return first
      // Its first one has been taken out since: those behind it came later than others.
      turns.shift()
      if (first !== undefined) turns.splice(placeOf(turns, first.serial), 0, lane)
    }
    return undefined
  }

  /** There is nobody for this one now, nor for those behind it. It is the one that `next` has given last. */
  block({ lane }: Waiter): void {
    if (this.#turns[0] === lane) this.#turns.shift()
  }

  /** One lane after the other. The waiter that is given may be taken out. */
  *all(): Generator<Waiter> {
    for (const lane of this.#lanes.values()) {
      let waiter = lane.first
      while (waiter !== undefined) {
        const { after } = waiter
        yield waiter
        waiter = after
      }
    }
  }
}

/** Where in lanes that are in order one belongs whose first has that serial number. */
function placeOf(lanes: readonly Lane[], serial: number): number {
  let low = 0
  let high = lanes.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (lanes[middle]!.first!.serial < serial) low = middle + 1
    else high = middle
  }
  return low
}
