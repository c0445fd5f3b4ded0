import { monotonic } from '../../../feedback/clock.ts'
import type { Address } from '../../../feedback/peer.ts'
import type { Connecting, ConnectionTls } from '../http1/connection.ts'
import { Dial, type DialTarget, lostError, type Waiter } from './dial.ts'
import type { PeerSession, SessionHolder } from './session.ts'
import type { PeerStream } from './stream.ts'

/** How sessions are kept, as the group says it. */
export interface Keeping {
  readonly options: SessionLimits
  /** Whether there is room for no more sessions without a stream. */
  readonly full: boolean
  /** Whether the peer of this address has left the group. */
  left(key: string): boolean
  /** As many sessions more have no stream. */
  count(change: 1 | -1): void
}

/** What `keepalive` and its kin say of sessions. */
export interface SessionLimits {
  /** Most sessions of the whole group in this thread that have no stream; 0 keeps none. */
  readonly keepalive: number
  /** Streams that a session may carry. */
  readonly requests: number
  /** How long after opening it takes new ones, milliseconds. */
  readonly time: number
  /** How long it may have none, milliseconds. */
  readonly timeout: number
}

/** Whoever waits for one session in the making are at most so many: the least that a peer is asked to take at once. */
const mostWaiting = 100

/** What there is for one peer: its address, and how TLS is spoken there. */
interface Lane {
  readonly sessions: PeerSession[]
  readonly dials: Dial[]
}

/**
 * The sessions of one group. Each stream is placed when its peer has been picked, on the oldest session of that peer that
 * has room; another session is opened where none has. So sessions live long and share out nothing by themselves.
 */
export class PeerSessions implements SessionHolder {
  readonly #keeping: Keeping
  readonly #lanes = new Map<string, Lane>()
  /** Those without a stream, the longest first. */
  readonly #idle = new Set<PeerSession>()
  #sweeper: NodeJS.Timeout | undefined = undefined

  constructor(keeping: Keeping) {
    this.#keeping = keeping
  }

  /** Sessions that take streams. */
  get size(): number {
    let size = 0
    for (const { sessions } of this.#lanes.values()) size += sessions.length
    return size
  }

  /** @returns a stream on a session that is there; undefined where none has room */
  take(lane: string, now: number): PeerStream | undefined {
    const { sessions } = this.#lanes.get(lane) ?? { sessions: [] }
    for (let i = 0; i < sessions.length; i += 1) {
      const session = sessions[i]!
      if (this.#worn(session, now)) {
        this.#drop(session)
        session.retire()
        i -= 1
      } else if (session.open) return this.#place(session, false)
    }
    return undefined
  }

  /** How long the session has rested that `take` would give a place on, milliseconds; 0 where there is none, or in use. */
  rested(lane: string, now: number): number {
    const session = this.#lanes.get(lane)?.sessions.find(({ open }) => open)
    return session === undefined || session.streams > 0 ? 0 : now - session.restedAt
  }

  /**
   * Opens a session, or waits for one that is being opened.
   * @param done called once, with a stream or with what went wrong; never after `cancel`
   */
  open(
    peer: { readonly address: Address; readonly name: string },
    tls: ConnectionTls | undefined,
    done: (result: PeerStream | NodeJS.ErrnoException) => void,
  ): Connecting {
    const target = { address: peer.address, key: peer.name, tls, lane: laneOf(peer.name, tls) }
    let dial = this.#dialTo(target)
    const waiter: Waiter = {
      done: (result) => {
        if (result instanceof Error) done(result)
        else if (result.open) done(this.#place(result, true))
        else if (!result.usable) done(result.failed ?? lostError('peer closed the connection at once'))
        else {
          // More wait than the peer takes at once: the others have a session of their own.
          dial = this.#dialTo(target)
          dial.waiters.add(waiter)
        }
      },
    }
    dial.waiters.add(waiter)
    return {
      cancel: () => {
        dial.waiters.delete(waiter)
        if (dial.waiters.size > 0) return
        dial.cancel()
        this.#forgetDial(target.lane, dial)
      },
    }
  }

  /** A peer has left the group: streams that run go on, and then its sessions close. */
  leave(key: string): void {
    for (const { sessions } of [...this.#lanes.values()]) {
      for (const session of sessions.filter((session) => session.key === key)) {
        this.#drop(session)
        session.retire()
      }
    }
  }

  /** Closes those beyond what is to be kept, as a reload may bring it. */
  shrink(): void {
    for (const session of this.#idle) {
      if (this.#idle.size <= this.#keeping.options.keepalive) return
      this.#drop(session)
      session.retire()
    }
  }

  // What sessions tell.

  freed(session: PeerSession): void {
    if (session.streams > 0 || session.lost) return
    session.restedAt = monotonic()
    if (!this.#kept(session)) return
    const { options, full } = this.#keeping
    if (this.#keeping.left(session.key) || full || options.keepalive === 0) {
      this.#drop(session)
      session.retire()
      return
    }
    this.#idle.add(session)
    this.#keeping.count(1)
    this.shrink()
    this.#sweeper ??= setInterval(() => this.#sweep(), 1000).unref()
  }

  closed(session: PeerSession): void {
    this.#drop(session)
  }

  /** One in the making that others may wait for too, or a new one. */
  #dialTo(target: DialTarget): Dial {
    const lane = this.#lane(target.lane)
    const known = lane.dials.find(({ waiters }) => waiters.size < mostWaiting)
    if (known !== undefined) return known
    const dial = new Dial(target, this, (dial, result) => {
      if (!(result instanceof Error)) lane.sessions.push(result)
      this.#forgetDial(target.lane, dial)
      const waiters = [...dial.waiters]
      dial.waiters.clear()
      for (const waiter of waiters) waiter.done(result)
    })
    lane.dials.push(dial)
    return dial
  }

  #forgetDial(name: string, dial: Dial): void {
    const lane = this.#lanes.get(name)
    if (lane === undefined) return
    forget(lane.dials, dial)
    this.#tidy(name, lane)
  }

  #place(session: PeerSession, fresh: boolean): PeerStream {
    if (this.#idle.delete(session)) this.#keeping.count(-1)
    return session.stream(fresh && session.begun === 0)
  }

  #lane(name: string): Lane {
    let lane = this.#lanes.get(name)
    if (lane === undefined) {
      lane = { sessions: [], dials: [] }
      this.#lanes.set(name, lane)
    }
    return lane
  }

  #worn(session: PeerSession, now: number): boolean {
    const { requests, time, timeout } = this.#keeping.options
    if (session.begun >= requests || now - session.openedAt >= time) return true
    return session.streams === 0 && session.begun > 0 && now - session.restedAt >= timeout
  }

  #kept(session: PeerSession): boolean {
    return this.#lanes.get(session.lane)?.sessions.includes(session) ?? false
  }

  /** It takes no more streams. */
  #drop(session: PeerSession): void {
    if (this.#idle.delete(session)) this.#keeping.count(-1)
    const lane = this.#lanes.get(session.lane)
    if (lane === undefined) return
    forget(lane.sessions, session)
    this.#tidy(session.lane, lane)
  }

  #tidy(name: string, { sessions, dials }: Lane): void {
    if (sessions.length === 0 && dials.length === 0) this.#lanes.delete(name)
  }

  #sweep(): void {
    const now = monotonic()
    for (const session of this.#idle) {
      if (now - session.restedAt < this.#keeping.options.timeout) break
      this.#drop(session)
      session.retire()
    }
    if (this.#idle.size > 0) return
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
  }
}

/** What sessions are shared by. @param peer its address in text */
export function laneOf(peer: string, tls: ConnectionTls | undefined): string {
  return tls?.name.lane ?? peer
}

function forget<T>(list: T[], item: T): void {
  const at = list.indexOf(item)
  if (at >= 0) list.splice(at, 1)
}
