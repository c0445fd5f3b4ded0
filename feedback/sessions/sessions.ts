import { hash } from 'node:crypto'
import { Lock } from '../lock.ts'
import { longestSid, SessionEntries, type SessionKey, type SessionRecord } from './entries.ts'

/** What another thread needs to join a table; can be posted to it. */
export interface SharedSessions {
  readonly name: string
  readonly slots: number
  readonly threads: number
  readonly buffer: SharedArrayBuffer
}

/** How a session is to be bound. */
export interface Binding {
  /** How long a session lasts that nobody uses, milliseconds. */
  readonly timeout: number
  /** Whether one that is not there is made. */
  readonly create: boolean
  /** Whether this use makes it last longer. */
  readonly refresh: boolean
  /**
   * Id of the peer that the session was bound to as the request that uses it was sent; empty: there was no such session;
   * undefined: the request said nothing of it.
   */
  readonly from?: string | undefined
}

/** Sessions that have run out and are removed with each new one, so that those that are counted are mostly alive. */
const removedAtOnce = 4
/** Whoever shares is told of a session in use anew after that part of its time. */
const toldPart = 1 / 16
/** That sessions are dropped for want of room is said at most so often, milliseconds. */
const sayEvery = 60_000

/** Places of the counters. */
const created = 0
const rebound = 1
const evicted = 2
const saidAt = 3
const saidEvicted = 4

/** The key of a session with such an id (latin1). */
export function sessionKey(id: string): SessionKey {
  const key = new Int32Array(4)
  hash('md5', Buffer.from(id, 'latin1'), 'buffer').copy(new Uint8Array(key.buffer))
  return key
}

/**
 * Which peer each session is bound to: a table of fixed size that all threads share. Where there is no room for another
 * session the one that was left alone longest goes.
 */
export class Sessions {
  readonly name: string
  readonly threads: number
  readonly #entries: SessionEntries
  readonly #lock: Lock | undefined

  /**
   * @param slots how many fit; see `slotsOf`
   * @param threads how many work on it; 0: only this one
   */
  constructor(name: string, slots: number, threads = 0, buffer?: SharedArrayBuffer) {
    this.name = name
    this.threads = threads
    this.#entries = new SessionEntries(slots, buffer)
    this.#lock = threads > 0 ? new Lock(this.#entries.words, 0) : undefined
  }

  /** How many sessions fit into so many bytes. */
  static slotsOf(bytes: number): number {
    return SessionEntries.slotsOf(bytes)
  }

  /** A table that another thread has made. */
  static attach({ name, slots, threads, buffer }: SharedSessions): Sessions {
    return new Sessions(name, slots, threads, buffer)
  }

  share(): SharedSessions {
    const { name, slots, threads } = this
    return { name, slots, threads, buffer: this.#entries.buffer }
  }

  get slots(): number {
    return this.#entries.slots
  }
  get buffer(): SharedArrayBuffer {
    return this.#entries.buffer
  }
  /** Sessions in the table; some of them may have run out. */
  get size(): number {
    return this.#entries.size
  }
  /** How many were made here, were bound to another peer, and were dropped for want of room, ever. */
  get created(): number {
    return this.#entries.counters[created]!
  }
  get rebound(): number {
    return this.#entries.counters[rebound]!
  }
  get evicted(): number {
    return this.#entries.counters[evicted]!
  }

  /** @returns id of the peer that a session is bound to; empty where there is no such session, or it has run out */
  find(key: SessionKey, now: number, timeout: number): string {
    return this.#look((entries) => {
      const slot = entries.find(key)
      return slot < 0 || runOut(entries, slot, now, timeout) ? '' : entries.sidOf(slot)
    })
  }

  /**
   * Binds a session to a peer, and counts that as a use of it.
   * @returns how many sessions were dropped for want of room since that was said last, where it is to be said now
   */
  bind(key: SessionKey, sid: string, now: number, binding: Binding): number {
    if (sid.length > longestSid) return 0
    return this.#change((entries) => {
      const slot = entries.find(key)
      if (slot < 0 || runOut(entries, slot, now, binding.timeout)) {
        if (slot >= 0) entries.remove(slot)
        return binding.create ? create(entries, { key, sid, boundAt: now, usedAt: now }, binding) : 0
      }
      if (binding.refresh) entries.usedAt[slot] = now
      const current = entries.sidOf(slot)
      if (current === sid || !moves(current, binding)) {
        if (entries.usedAt[slot]! - entries.toldAt[slot]! >= binding.timeout * toldPart) entries.tell(slot)
      } else {
        entries.turn(slot, sid, now)
        entries.counters[rebound]! += 1
        entries.tell(slot)
      }
      entries.touch(slot)
      return 0
    })
  }

  /** Takes in what another instance, or table, says of sessions: the newest binding holds. */
  merge(records: readonly SessionRecord[]): void {
    this.#change((entries) => {
      for (const record of records) merge(entries, record)
    })
  }

  /**
   * Others have bound a session to another peer later than it was bound here.
   * @param boundAt when it was bound here as far as they knew: where it has been bound again since, that holds
   */
  yieldTo(newest: SessionRecord, boundAt: number): void {
    this.#change((entries) => {
      const slot = entries.find(newest.key)
      if (slot >= 0 && entries.boundAt[slot] === boundAt) entries.turn(slot, newest.sid, newest.boundAt)
    })
  }

  /** Every session, the one that was left alone longest first. */
  all(): SessionRecord[] {
    return this.#look((entries) => {
      const records: SessionRecord[] = []
      for (let slot = entries.oldest; slot >= 0; slot = entries.newerThan(slot))
        records.push(entries.record(slot))
      return records
    })
  }

  /** Some of the sessions that there is something to tell of, first those that have waited longest; they wait no more. */
  news(most: number): SessionRecord[] {
    return this.#change((entries) => {
      const records: SessionRecord[] = []
      while (records.length < most) {
        const slot = entries.told()
        if (slot === undefined) break
        entries.toldAt[slot] = entries.usedAt[slot]!
        records.push(entries.record(slot))
      }
      return records
    })
  }

  /** These have not been told after all. */
  untold(records: readonly SessionRecord[]): void {
    this.#change((entries) => {
      for (const { key } of records) {
        const slot = entries.find(key)
        if (slot >= 0) entries.tell(slot)
      }
    })
  }

  /** There is everything to tell. */
  tellAll(): void {
    this.#change((entries) => {
      for (let slot = entries.oldest; slot >= 0; slot = entries.newerThan(slot)) entries.tell(slot)
    })
  }

  /** Removes some of those that have run out. */
  expire(now: number, timeout: number, most = 1000): void {
    this.#change((entries) => removeRunOut(entries, now, timeout, most))
  }

  #look<T>(work: (entries: SessionEntries) => T): T {
    this.#lock?.take()
    try {
      this.#entries.heal()
      return work(this.#entries)
    } finally {
      this.#lock?.free()
    }
  }

  #change<T>(work: (entries: SessionEntries) => T): T {
    return this.#look((entries) => {
      entries.begin()
      const result = work(entries)
      entries.end()
      return result
    })
  }
}

function runOut({ usedAt }: SessionEntries, slot: number, now: number, timeout: number): boolean {
  return usedAt[slot]! + timeout <= now
}

function removeRunOut(entries: SessionEntries, now: number, timeout: number, most: number): void {
  for (let i = 0; i < most; i++) {
    const slot = entries.oldest
    if (slot < 0 || !runOut(entries, slot, now, timeout)) return
    entries.remove(slot)
  }
}

/**
 * Whether a request takes along a session that is bound to another peer than the one where it ended: it knows of that
 * binding, or said nothing of the session. Of one that was moved, or begun, while it was on its way it has nothing to say,
 * though its answer has the id once more: others have been there since.
 */
function moves(current: string, { from }: Binding): boolean {
  return from === undefined || from === current
}

function create(entries: SessionEntries, record: SessionRecord, { timeout }: Binding): number {
  const now = record.usedAt
  removeRunOut(entries, now, timeout, removedAtOnce)
  const dropped = entries.size >= entries.slots
  if (dropped) drop(entries)
  entries.counters[created]! += 1
  entries.tell(entries.insert(record))
  return dropped ? toSay(entries, now) : 0
}

function drop(entries: SessionEntries): void {
  entries.remove(entries.oldest)
  entries.counters[evicted]! += 1
}

function toSay({ counters }: SessionEntries, now: number): number {
  if (counters[saidAt] !== 0 && now - counters[saidAt]! < sayEvery) return 0
  const since = counters[evicted]! - counters[saidEvicted]!
  counters[saidAt] = now
  counters[saidEvicted] = counters[evicted]!
  return since
}

function merge(entries: SessionEntries, record: SessionRecord): void {
  const { key, sid, boundAt, usedAt } = record
  if (sid === '' || sid.length > longestSid) return
  const slot = entries.find(key)
  if (slot < 0) {
    if (entries.size >= entries.slots) {
      // It has been left alone for longer than all others, and would be the next to go.
      if (entries.usedAt[entries.oldest]! >= usedAt) return
      drop(entries)
    }
    entries.toldAt[entries.insert(record)] = usedAt
    return
  }
  if (entries.sidOf(slot) !== sid) {
    if (boundAt > entries.boundAt[slot]!) entries.turn(slot, sid, boundAt)
    // Who has bound it elsewhere hears that this is newer, or else it is found that it is not.
    else entries.tell(slot)
  }
  if (usedAt <= entries.usedAt[slot]!) return
  entries.usedAt[slot] = usedAt
  entries.toldAt[slot] = usedAt
  entries.touch(slot)
}
