import { lockWords } from '../lock.ts'

/** The md5 of a session's id: four words of 32 bits. */
export type SessionKey = Int32Array

/** A session as others are told of it. Monotonic milliseconds. */
export interface SessionRecord {
  readonly key: SessionKey
  /** Id of its peer, at most 32 bytes (latin1). */
  readonly sid: string
  /** When it was bound to that peer. */
  readonly boundAt: number
  /** When it was used last; under `norefresh` when it was created. */
  readonly usedAt: number
}

/** Longest id of a peer, bytes. */
export const longestSid = 32

/** Words before the numbers: the lock, and places. */
const headWords = 16
const at = {
  dirty: lockWords,
  size: lockWords + 1,
  newest: lockWords + 2,
  oldest: lockWords + 3,
  free: lockWords + 4,
  fresh: lockWords + 5,
  queueFrom: lockWords + 6,
  queueLength: lockWords + 7,
  seed: lockWords + 8,
}
/** Doubles after them, for counters. */
const counters = 8
/** Of an entry: three moments, six links of which the hash has up to two, key, peer, and three marks. */
const slotBytes = 3 * 8 + 6 * 4 + 16 + longestSid + 3

/**
 * Entries of sessions in shared memory: found by their keys, and in the order of their use. To be called with the lock
 * held that the first words are for.
 *
 * Places are from 1 on where they are links, and 0 is none: memory that was never written is an empty table. Before a
 * change `begin` leaves a mark that `end` takes away: where a thread dies in between, all links are made anew from the
 * entries, of which only whole ones are live.
 */
export class SessionEntries {
  /** How many fit. */
  readonly slots: number
  readonly buffer: SharedArrayBuffer
  readonly words: Int32Array
  readonly counters: Float64Array
  readonly usedAt: Float64Array
  readonly boundAt: Float64Array
  readonly toldAt: Float64Array
  readonly #buckets: Int32Array
  readonly #next: Int32Array
  readonly #newer: Int32Array
  readonly #older: Int32Array
  readonly #queue: Int32Array
  readonly #keys: Int32Array
  readonly #sids: Buffer
  readonly #lengths: Uint8Array
  readonly #live: Uint8Array
  readonly #queued: Uint8Array

  constructor(slots: number, buffer?: SharedArrayBuffer) {
    this.slots = slots
    const buckets = 2 ** Math.ceil(Math.log2(slots))
    const bytes = 4 * headWords + 8 * counters + (slotBytes - 8) * slots + 4 * buckets
    this.buffer = buffer ?? new SharedArrayBuffer(bytes)
    let offset = 0
    const place = (bytes: number): [SharedArrayBuffer, number] => {
      offset += bytes
      return [this.buffer, offset - bytes]
    }
    const doubles = (length: number) => new Float64Array(...place(8 * length), length)
    const words = (length: number) => new Int32Array(...place(4 * length), length)
    const octets = (length: number) => new Uint8Array(...place(length), length)
    this.words = words(headWords)
    this.counters = doubles(counters)
    this.usedAt = doubles(slots)
    this.boundAt = doubles(slots)
    this.toldAt = doubles(slots)
    this.#buckets = words(buckets)
    this.#next = words(slots)
    this.#newer = words(slots)
    this.#older = words(slots)
    this.#queue = words(slots)
    this.#keys = words(4 * slots)
    this.#sids = Buffer.from(...place(longestSid * slots), longestSid * slots)
    this.#lengths = octets(slots)
    this.#live = octets(slots)
    this.#queued = octets(slots)
    // Whoever knew it could make many keys fall into one place.
    if (buffer === undefined) this.words[at.seed] = Math.floor(Math.random() * 2 ** 32)
  }

  /** How many fit into so many bytes. */
  static slotsOf(bytes: number): number {
    return Math.max(1, Math.floor((bytes - 4 * headWords - 8 * counters) / slotBytes))
  }

  get size(): number {
    return this.words[at.size]!
  }

  /** The entry that was left alone longest; -1 where there is none. */
  get oldest(): number {
    return this.words[at.oldest]! - 1
  }

  /** The one that was used next after it; -1 where there is none. */
  newerThan(slot: number): number {
    return this.#newer[slot]! - 1
  }

  begin(): void {
    this.words[at.dirty] = 1
  }

  end(): void {
    this.words[at.dirty] = 0
  }

  /** To be done before anything else: a thread may have died in the middle of a change. */
  heal(): void {
    const { words } = this
    if (words[at.dirty] === 0) return
    this.#buckets.fill(0)
    this.#queued.fill(0)
    for (const word of [at.size, at.newest, at.oldest, at.free, at.queueFrom, at.queueLength]) words[word] = 0
    const live: number[] = []
    for (let slot = 0; slot < words[at.fresh]!; slot++) {
      if (this.#live[slot] === 1) live.push(slot)
      else this.#release(slot)
    }
    live.sort((one, other) => this.usedAt[one]! - this.usedAt[other]!)
    for (const slot of live) {
      this.#chain(slot)
      this.#link(slot)
      this.tell(slot)
    }
    words[at.size] = live.length
    words[at.dirty] = 0
  }

  /** @returns -1 where there is none */
  find(key: SessionKey): number {
    const keys = this.#keys
    for (let link = this.#buckets[this.#bucket(key, 0)]!; link > 0; link = this.#next[link - 1]!) {
      const k = 4 * (link - 1)
      if (keys[k] === key[0] && keys[k + 1] === key[1] && keys[k + 2] === key[2] && keys[k + 3] === key[3]) {
        return link - 1
      }
    }
    return -1
  }

  sidOf(slot: number): string {
    const from = longestSid * slot
    return this.#sids.toString('latin1', from, from + this.#lengths[slot]!)
  }

  record(slot: number): SessionRecord {
    const key = this.#keys.slice(4 * slot, 4 * slot + 4)
    return { key, sid: this.sidOf(slot), boundAt: this.boundAt[slot]!, usedAt: this.usedAt[slot]! }
  }

  /** Adds an entry, as the one that was used last. There must be room, and none with its key. */
  insert({ key, sid, boundAt, usedAt }: SessionRecord): number {
    const { words } = this
    let slot = words[at.free]! - 1
    if (slot >= 0) words[at.free] = this.#next[slot]!
    else {
      slot = words[at.fresh]!
      words[at.fresh] = slot + 1
    }
    this.#keys.set(key, 4 * slot)
    this.usedAt[slot] = usedAt
    this.toldAt[slot] = 0
    this.turn(slot, sid, boundAt)
    this.#chain(slot)
    this.#link(slot)
    words[at.size]! += 1
    return slot
  }

  /** Binds an entry to another peer. */
  turn(slot: number, sid: string, boundAt: number): void {
    this.#live[slot] = 0
    this.#sids.write(sid, longestSid * slot, 'latin1')
    this.#lengths[slot] = sid.length
    this.boundAt[slot] = boundAt
    this.#live[slot] = 1
  }

  /** Makes an entry the one that was used last. */
  touch(slot: number): void {
    this.#unlink(slot)
    this.#link(slot)
  }

  remove(slot: number): void {
    this.#live[slot] = 0
    const bucket = this.#bucket(this.#keys, 4 * slot)
    const next = this.#next[slot]!
    if (this.#buckets[bucket] === slot + 1) this.#buckets[bucket] = next
    else {
      let link = this.#buckets[bucket]!
      while (this.#next[link - 1] !== slot + 1) link = this.#next[link - 1]!
      this.#next[link - 1] = next
    }
    this.#unlink(slot)
    this.#release(slot)
    this.words[at.size]! -= 1
  }

  /** Puts an entry into the queue of those that there is something to tell of: once, so that it never overflows. */
  tell(slot: number): void {
    if (this.#queued[slot] !== 0) return
    const { words } = this
    this.#queued[slot] = 1
    this.#queue[(words[at.queueFrom]! + words[at.queueLength]!) % this.slots] = slot
    words[at.queueLength]! += 1
  }

  /** Takes the next one out of that queue; undefined where there is none. */
  told(): number | undefined {
    const { words } = this
    while (words[at.queueLength]! > 0) {
      const slot = this.#queue[words[at.queueFrom]!]!
      words[at.queueFrom] = (words[at.queueFrom]! + 1) % this.slots
      words[at.queueLength]! -= 1
      this.#queued[slot] = 0
      if (this.#live[slot] === 1) return slot
    }
    return undefined
  }

  #bucket(key: Int32Array, from: number): number {
    let mixed = this.words[at.seed]!
    for (let i = 0; i < 4; i++) {
      mixed = Math.imul(mixed ^ key[from + i]!, 0x85ebca6b)
      mixed ^= mixed >>> 15
    }
    return mixed & (this.#buckets.length - 1)
  }

  #chain(slot: number): void {
    const bucket = this.#bucket(this.#keys, 4 * slot)
    this.#next[slot] = this.#buckets[bucket]!
    this.#buckets[bucket] = slot + 1
  }

  #release(slot: number): void {
    this.#next[slot] = this.words[at.free]!
    this.words[at.free] = slot + 1
  }

  #link(slot: number): void {
    const { words } = this
    const head = words[at.newest]!
    this.#newer[slot] = 0
    this.#older[slot] = head
    if (head > 0) this.#newer[head - 1] = slot + 1
    else words[at.oldest] = slot + 1
    words[at.newest] = slot + 1
  }

  #unlink(slot: number): void {
    const { words } = this
    const newer = this.#newer[slot]!
    const older = this.#older[slot]!
    if (newer > 0) this.#older[newer - 1] = older
    else words[at.newest] = older
    if (older > 0) this.#newer[older - 1] = newer
    else words[at.oldest] = newer
  }
}
