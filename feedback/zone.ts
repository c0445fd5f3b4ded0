import { Bell } from './bell.ts'
import { exemplarSize } from './exemplar.ts'
import { type GroupField, groupIndex } from './fields.ts'
import { Lock, lockWords } from './lock.ts'
import type { Peer } from './peer.ts'
import { type Held, headWords, ZoneNumbers } from './zone-numbers.ts'

/** What another thread needs to work on the same zone; can be posted to it. */
export interface SharedZone {
  /** Tells zones apart over all reloads. */
  readonly id: number
  readonly name: string
  readonly capacity: number
  readonly threads: number
  readonly buffer: SharedArrayBuffer
}

/** Places of the words of the head: the lock, whether the zone has moved to another buffer, and its bell. */
const movedWord = lockWords
const bellWord = movedWord + 1

let serial = 0

/**
 * The state of one group: every number kept of its peers, column by column, in one shared buffer. A column of a
 * field lies together, so a method that walks the group reads memory in a row.
 *
 * A zone outlives reloads. `grow` lays it out anew and puts longer columns in the place of the old ones, so a column
 * is to be taken from the zone whenever it is used, and not to be kept.
 *
 * Where several threads work on it, whoever changes numbers does so between `enter` and `leave`. In a program of one
 * thread both do nothing.
 */
export class Zone extends ZoneNumbers {
  readonly id: number
  name: string
  /** Rings when somebody who waits in the group's queue may find a peer; see `wake`. */
  bell!: Bell
  /** This thread's row; undefined in a thread that only looks on, and where there is one thread. */
  row: Held | undefined = undefined
  /** Told of the new place of a zone that grows, before any thread can come upon the old one's end. */
  onMove: ((shared: SharedZone) => void) | undefined = undefined
  /** Brings a zone that has moved to its new place, by `move`. For threads that did not move it. */
  follow: (() => void) | undefined = undefined
  readonly #retired: Peer[] = []
  readonly #thread: number
  #words!: Int32Array
  #lock: Lock | undefined = undefined

  /** @param threads how many threads will work on it; 0: only this one */
  constructor(name: string, capacity: number, threads = 0, shared?: SharedZone, thread = -1) {
    super(threads)
    this.name = name
    this.#thread = thread
    this.id = shared ? shared.id : serial
    if (shared === undefined) serial += 1
    this.#lay(capacity, shared?.buffer)
  }

  /**
   * A zone that another thread has made.
   * @param thread which of its rows is this thread's, from 0; -1: it only looks on
   */
  static attach(shared: SharedZone, thread: number): Zone {
    return new Zone(shared.name, shared.capacity, shared.threads, shared, thread)
  }

  /** For another thread. */
  share(): SharedZone {
    const { id, name, capacity, threads, buffer } = this
    return { id, name, capacity, threads, buffer }
  }

  #lay(capacity: number, buffer: SharedArrayBuffer | undefined): void {
    this.lay(capacity, buffer)
    this.#words = new Int32Array(this.buffer, 0, headWords)
    this.#lock = this.threads > 0 ? new Lock(this.#words, 0) : undefined
    this.bell = new Bell(this.#words, bellWord)
    this.row = this.held[this.#thread]
  }

  /** From here to `leave` no other thread changes the zone. Nothing in between may await, throw or enter again. */
  enter(): void {
    if (this.#lock === undefined) return
    this.#lock.take()
    while (Atomics.load(this.#words, movedWord) !== 0) {
      this.#lock.free()
      if (this.follow === undefined) throw new Error(`zone "${this.name}" has moved and nobody says where`)
      this.follow()
      this.#lock.take()
    }
  }

  leave(): void {
    this.#lock?.free()
  }

  /**
   * A peer may be ready that was not: whoever waits for one is to look, in whichever thread. To be called after `leave`.
   * Costs one comparison as long as nobody waits.
   */
  wake(): void {
    if (this.group[groupIndex.queueWaiting]! > 0) this.bell.ring()
  }

  /** Peers that the configuration no longer has and that still carry a call; see carry.ts. */
  get retired(): Peer[] {
    this.#prune()
    return this.#retired
  }

  #prune(): void {
    const list = this.#retired
    for (let i = list.length - 1; i >= 0; i--) if (this.#isFree(list[i]!.index)) list.splice(i, 1)
  }

  #isFree(index: number): boolean {
    return this.peers.tenant[index]! <= 0 && this.peers.conns[index]! <= 0
  }

  /** How many slots are free. */
  get room(): number {
    let free = 0
    for (let index = 0; index < this.capacity; index++) if (this.#isFree(index)) free += 1
    return free
  }

  /** Makes room for more peers. Every slot keeps its index and its numbers. */
  grow(capacity: number): void {
    if (capacity <= this.capacity) return
    this.enter()
    const words = this.#words
    const lock = this.#lock
    const { bell } = this
    const before = [...this.all()]
    this.#lay(capacity, undefined)
    let i = 0
    for (const numbers of this.all()) numbers.set(before[i++]!)
    this.bell.succeed(bell)
    this.onMove?.(this.share())
    Atomics.store(words, movedWord, 1)
    lock?.free()
    // Whoever listens at the old place is to go on at the new one.
    bell.ring()
  }

  /** Goes where another thread has moved it. */
  move(shared: SharedZone): void {
    this.#lay(shared.capacity, shared.buffer)
  }

  get(field: GroupField): number {
    return this.group[groupIndex[field]]!
  }

  set(field: GroupField, value: number): void {
    this.group[groupIndex[field]] = value
  }

  /** Adds to a number of the group; a negative amount takes away. */
  add(field: GroupField, amount: number): void {
    this.group[groupIndex[field]]! += amount
  }

  /**
   * Takes a free slot and clears it; a new peer counts as one that always succeeded. Only one thread of a program does
   * so, the one that reads the configuration.
   * @returns undefined when the zone is full
   */
  allocate(): number | undefined {
    // Its list must not name a slot that is somebody else's from now on.
    this.#prune()
    for (let index = 0; index < this.capacity; index++) {
      if (!this.#isFree(index)) continue
      // Memory that was never written stays unwritten: most of it is counters of statuses that nobody sends.
      for (const column of this.columns()) if (column[index] !== 0) column[index] = 0
      for (const exemplars of this.headerExemplars) {
        const at = exemplarSize * index
        if (exemplars[at + 1] !== 0) exemplars.fill(0, at, at + exemplarSize)
      }
      this.peers.ok[index] = 1
      this.peers.weightFactor[index] = 1
      this.settle(index)
      return index
    }
    return undefined
  }

  /** Gives a slot to another tenant: Peer objects of the one before no longer count as the configuration's. */
  settle(index: number): void {
    this.add('tenants', 1)
    this.peers.tenant[index] = this.get('tenants')
  }

  /**
   * Takes the tenancy of a slot away. Once no call is in progress there it is free.
   * @param dismissed whether what is bound to the peer has to end soon; see `Peer.dismissed`
   */
  free(index: number, dismissed = true): void {
    this.peers.tenant[index] = dismissed ? 0 : -1
  }
}
