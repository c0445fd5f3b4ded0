import type { Attempt } from '../../feedback/outcome.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { QueueOptions } from '../../feedback/upstream.ts'
import { anyWaiting, enterQueue, leaveQueue, overflowQueue, type WaitEnd } from '../../feedback/waiting.ts'
import type { Zone } from '../../feedback/zone.ts'
import { exclusion } from './eligible.ts'
import type { Group } from './group.ts'
import { Lanes, Waiter } from './lanes.ts'
import type { Env } from './method.ts'
import { Selection, system } from './pick.ts'

/** Who calls a queue when it has to look. */
export interface QueueAlarm {
  /** It is to be called at this moment at the latest, in place of the one said before; Infinity: there is no need. */
  set(at: number): void
  /** It is to be called, too, when the zone's bell rings next. */
  listen(zone: Zone): void
}

const never = Number.POSITIVE_INFINITY
/** Even where nothing is heard that is a reason to, it is looked for peers every so many milliseconds. */
const lookEveryMs = 500
/** Requests that wait in other threads have this much of a start over one that comes, milliseconds. */
const headStartMs = 2

/**
 * The requests of one group that wait in this thread until a peer is ready for them: first come, first served, among
 * those that may go to the same peers. One that waits for a peer of its own (by its track, by a session, or since it has
 * been at the others) holds up nobody who could go elsewhere.
 *
 * Whoever waits is picked for under the zone's lock, as everybody is, so that `max_conns` holds over all threads. Queues of
 * several threads take what is free as they come upon it: there is no order between them, but that new requests go behind
 * those that wait in any of them.
 */
export class Queue {
  #options: QueueOptions
  readonly #alarm: QueueAlarm
  readonly #env: Env
  /** The one in force; undefined before the first request and before `follow`. */
  #group: Group | undefined = undefined
  readonly #lanes = new Lanes()
  #serial = 0
  /** Nobody has waited too long before that moment. */
  #soonest = never
  #closed = false

  /** @param alarm made with what it is to call */
  constructor(options: QueueOptions, alarm: (call: () => void) => QueueAlarm, env: Env = system) {
    this.#options = options
    this.#alarm = alarm(() => this.serve())
    this.#env = env
  }

  /** How many wait in this thread. */
  get size(): number {
    return this.#lanes.size
  }

  get options(): QueueOptions {
    return this.#options
  }

  /** Takes over new limits, as a reload brings them, for those who wait too. */
  configure(options: QueueOptions): void {
    this.#options = options
    this.#soonest = this.#earliest()
  }

  /** Whether a request that comes has to go behind others, of whatever thread. */
  crowded({ upstream }: Group): boolean {
    return anyWaiting(upstream.zone)
  }

  /**
   * A request for which nobody is ready, or before which others wait, begins to wait. It may find a peer at once.
   * @returns undefined when the queue is full
   */
  enter(selection: Selection): Waiter | undefined {
    const now = this.#env.now()
    this.#group ??= selection.group
    const { zone } = this.#group.upstream
    const full = this.size >= this.#options.number
    if (full && !this.#closed) {
      overflowQueue(zone)
      return undefined
    }
    this.#serial += 1
    const waiter = new Waiter(this.#own(selection), now, this.#serial)
    if (this.#closed) {
      waiter.settle('closed', 0, undefined)
      return waiter
    }
    const elsewhere = enterQueue(zone, this.size)
    this.#soonest = Math.min(this.#soonest, now + this.#options.timeout)
    const first = this.#lanes.add(waiter)
    if (first && !elsewhere) this.serve()
    else {
      // Behind others of its kind there is nothing to find: they are called, and it is behind them then.
      this.#alarm.listen(zone)
      this.#setAlarm(now, first ? now + headStartMs : never)
    }
    return waiter
  }

  /** Its client has left. Nothing happens where it waits no more. */
  leave(waiter: Waiter): void {
    if (waiter.lane === undefined) return
    const now = this.#env.now()
    this.#end(waiter, 'left', now)
    if (this.size === 0) this.#setAlarm(now)
  }

  /** Looks for peers for those who wait, as many as there are, and sends away who has waited too long. */
  serve(): void {
    const group = this.#group
    if (this.size === 0 || group === undefined) return
    // Before it looks, so that what happens meanwhile is heard.
    this.#alarm.listen(group.upstream.zone)
    const now = this.#env.now()
    this.#lanes.begin()
    for (let waiter = this.#lanes.next(); waiter !== undefined; waiter = this.#lanes.next())
      this.#serve(waiter, now)
    if (now >= this.#soonest) this.#expire(now)
    this.#setAlarm(now)
  }

  /**
   * The group as a reload has left it: whoever waits goes on waiting for a peer of this one, in the same order.
   * @param group of the same zone
   */
  follow(group: Group): void {
    const old = this.#group
    this.#group = group
    if (old !== group) {
      const now = this.#env.now()
      for (const waiter of this.#lanes.clear()) {
        try {
          waiter.selection = this.#own(waiter.selection)
        } catch (error) {
          this.#fail(waiter, error, now)
          continue
        }
        this.#lanes.add(waiter)
      }
      this.#soonest = this.#earliest()
    }
    this.serve()
  }

  /** The group is no more: nobody waits any longer, now or later. */
  close(): void {
    const now = this.#env.now()
    this.#closed = true
    for (const waiter of this.#lanes.all()) this.#end(waiter, 'closed', now)
    this.#setAlarm(now)
    // Whoever listens to its bell would do so for ever.
    this.#group?.upstream.zone.bell.ring()
  }

  #serve(waiter: Waiter, now: number): void {
    const { selection } = waiter
    try {
      selection.again()
      const attempt = selection.next()
      if (attempt === undefined) this.#lanes.block(waiter)
      else this.#end(waiter, 'picked', now, attempt)
    } catch (error) {
      // A mistake of ours with one request must not hold up those behind it.
      this.#fail(waiter, error, now)
    }
  }

  /**
   * A search of the request's in the group in force: it may have been routed by a configuration that is so no more. What
   * it has tried there is no reason for anything here.
   */
  #own(selection: Selection): Selection {
    const group = this.#group!
    return selection.group === group ? selection : new Selection(group, selection.call, this.#env)
  }

  #fail(waiter: Waiter, error: unknown, now: number): void {
    this.#leave(waiter, 'closed', now)
    waiter.fail(error)
  }

  #end(waiter: Waiter, end: WaitEnd, now: number, attempt?: Attempt): void {
    waiter.settle(end, this.#leave(waiter, end, now), attempt)
  }

  /** @returns how long it has waited */
  #leave(waiter: Waiter, end: WaitEnd, now: number): number {
    this.#lanes.remove(waiter)
    if (this.size === 0) this.#soonest = never
    const ms = now - waiter.since
    leaveQueue(this.#group!.upstream.zone, end, ms)
    return ms
  }

  #expire(now: number): void {
    const { timeout } = this.#options
    for (const waiter of this.#lanes.all())
      if (now >= waiter.since + timeout) this.#end(waiter, 'timeout', now)
    this.#soonest = this.#earliest()
  }

  /** When the first of those who wait has waited too long. */
  #earliest(): number {
    let earliest = never
    for (const { since } of this.#lanes.all()) earliest = Math.min(earliest, since + this.#options.timeout)
    return earliest
  }

  /** @param at there is a reason to look then */
  #setAlarm(now: number, at = never): void {
    if (this.size === 0) this.#alarm.set(never)
    else this.#alarm.set(Math.min(at, this.#soonest, now + lookEveryMs, this.#backAt(now)))
  }

  /** When a peer that is set aside may be tried again, the first of them. */
  #backAt(now: number): number {
    const { upstream } = this.#group!
    let at = never
    const look = (peer: Peer) => {
      if (exclusion(peer, upstream, now) !== 'unavailable') return
      at = Math.min(at, upstream.zone.peers.checkedAt[peer.index]! + peer.options.fail_timeout)
    }
    for (const peer of upstream.peers) look(peer)
    for (const peer of upstream.backups) look(peer)
    return at
  }
}
