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
  /** Settles once it waits no more. */
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

  constructor(selection: Selection, since: number, serial: number) {
    this.selection = selection
    this.since = since
    this.serial = serial
    this.ended = new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  settle(end: WaitEnd, ms: number, attempt: Attempt | undefined): void {
    this.#settle({ end, selection: this.selection, attempt, ms })
  }
}

/** Requests that may go to the same peers, so that where the first finds nobody no other would; in the order of coming. */
class Lane {
  readonly name: string
  /** Undefined in one that is about to go. */
  first: Waiter | undefined = undefined
  last: Waiter | undefined = undefined
  /** The round in which its first found nobody. */
  blocked = 0

  constructor(name: string) {
    this.name = name
  }
}

/** All that wait in one queue, by what peers they may go to. A waiter is taken out in constant time, wherever it stands. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>()
  #size = 0
  #round = 0

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
    this.#round += 1
  }

  /** Whose turn it is: of the first ones in lanes that are not blocked, the one that came first. */
  next(): Waiter | undefined {
    let next: Waiter | undefined
    for (const { first, blocked } of this.#lanes.values()) {
      if (blocked === this.#round || first === undefined) continue
      if (next === undefined || first.serial < next.serial) next = first
    }
    return next
  }

  /** There is nobody for this one now, nor for those behind it. */
  block({ lane }: Waiter): void {
    if (lane !== undefined) lane.blocked = this.#round
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
