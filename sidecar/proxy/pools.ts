import { monotonic } from '../../feedback/clock.ts'
import { holdGroup } from '../../feedback/held.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { Zone } from '../../feedback/zone.ts'
import type { Group } from '../balance/group.ts'
import type { Queue } from '../balance/queue.ts'
import type { Connection } from './http1/connection.ts'
import { type Keeping, PeerSessions } from './http2-peer/sessions.ts'

/** What `keepalive` and its kin say of a group. */
export interface PoolOptions {
  /** Most idle connections of the whole group in this thread; 0 keeps none. */
  readonly keepalive: number
  /** Requests a connection may carry. */
  readonly requests: number
  /** How long after opening it may be kept, milliseconds. */
  readonly time: number
  /** How long it may be idle, milliseconds. */
  readonly timeout: number
}

/** What several pools have in common. */
export interface Room {
  /** How many connections rest in all of them. */
  resting: number
  /** How many may; those that come when it is full are closed. */
  most: number
}

/** How many addresses are remembered that have left. */
const mostLeft = 1000

/** A group as requests meet it: who picks, the connections kept to its peers, and where requests wait for one. */
export interface PeerGroup {
  readonly balancing: Group
  readonly pool: Pool
  /** Undefined where requests do not wait. */
  readonly queue?: Queue | undefined
  /** Of all its forms one after the other; undefined: it has this one for good. */
  readonly forms?: Forms | undefined
}

/**
 * Which form of a group is in force. All of them know this, and none knows another: a tunnel that holds an early one for
 * days is not to hold all that came after it.
 */
export interface Forms {
  latest: PeerGroup | undefined
}

/** The form of a group that is in force. */
export function latest(group: PeerGroup): PeerGroup {
  return group.forms?.latest ?? group
}

/**
 * The idle connections of one group: taken after a peer was chosen, by its address, the most recent first; when
 * full, the one that has been idle longest closes (as in nginx's upstream keepalive module).
 */
export class Pool implements Keeping {
  #options: PoolOptions
  #zone: Zone
  /** Undefined: it has nothing in common with others. To be given before anything is kept. */
  room: Room | undefined = undefined
  /** By lane, the most recent last. */
  #idle = new Map<string, Connection[]>()
  /** All idle ones, the longest idle first. */
  #order = new Set<Connection>()
  /** Addresses that have left the group and may have connections in use, the first to leave first. */
  readonly #left = new Set<string>()
  #sweeper: NodeJS.Timeout | undefined = undefined
  #sessions: PeerSessions | undefined = undefined

  constructor(zone: Zone, options: PoolOptions) {
    this.#zone = zone
    this.#options = options
  }

  /** Takes over new settings, as a reload brings them. */
  configure(options: PoolOptions): void {
    this.#options = options
    this.#shrink()
    this.#sessions?.shrink()
  }

  get options(): PoolOptions {
    return this.#options
  }

  /** The sessions with those of its peers that speak HTTP/2. */
  get sessions(): PeerSessions {
    this.#sessions ??= new PeerSessions(this)
    return this.#sessions
  }

  get size(): number {
    return this.#order.size
  }

  /**
   * @param lane what the connection has to be good for, where kept ones to the peer differ
   * @returns a connection to the peer that can carry another exchange; undefined when none is idle
   */
  take(peer: Peer, now: number, lane = peer.name): Connection | undefined {
    const stack = this.#idle.get(lane)
    if (!stack) return undefined
    for (;;) {
      const connection = stack[stack.length - 1]
      if (!connection) return undefined
      this.#remove(connection)
      if (connection.usable && !this.#expired(connection, now)) return connection
      connection.destroy()
    }
  }

  /** How long the connection has rested that `take` would give, milliseconds; 0 where there is none. */
  rested(peer: Peer, now: number, lane = peer.name): number {
    const connection = this.#idle.get(lane)?.at(-1)
    return connection === undefined ? 0 : now - connection.restedAt
  }

  /** Keeps a connection whose exchange has ended well, or closes it. */
  put(connection: Connection, now: number): void {
    const { keepalive, requests, time } = this.#options
    const worn = connection.requests >= requests || now - connection.openedAt >= time
    if (
      keepalive === 0 ||
      this.full ||
      worn ||
      this.left(connection.key) ||
      !connection.usable ||
      connection.dirty
    ) {
      connection.destroy()
      return
    }
    connection.rest(now)
    connection.onIdleClose = () => this.#remove(connection)
    const stack = this.#idle.get(connection.lane)
    if (stack) stack.push(connection)
    else this.#idle.set(connection.lane, [connection])
    this.#order.add(connection)
    this.count(1)
    this.#shrink()
    this.#sweeper ??= setInterval(() => this.#sweep(), 1000).unref()
  }

  /** A peer has left the group: connections to it are kept no more, those in use neither. */
  leave(name: string): void {
    this.#left.add(name)
    // Connections to the first ones have ended long since.
    if (this.#left.size > mostLeft)
      for (const oldest of this.#left.values().take(1)) this.#left.delete(oldest)
    this.close(name)
    this.#sessions?.leave(name)
  }

  /** Whether the peer of this address has left the group. */
  left(key: string): boolean {
    return this.#left.size > 0 && this.#left.has(key)
  }

  /** Whether there is room for no more connections that rest. */
  get full(): boolean {
    return this.room !== undefined && this.room.resting >= this.room.most
  }

  /** These are in the group, whoever had left it before. */
  welcome(peers: readonly Peer[]): void {
    if (this.#left.size > 0) for (const { name } of peers) this.#left.delete(name)
  }

  /** Closes the idle connections of one peer, or all. */
  close(peerName?: string): void {
    for (const connection of [...this.#order]) {
      if (peerName !== undefined && connection.key !== peerName) continue
      this.#remove(connection)
      connection.destroy()
    }
  }

  #expired(connection: Connection, now: number): boolean {
    const { time, timeout } = this.#options
    return now - connection.restedAt >= timeout || now - connection.openedAt >= time
  }

  #remove(connection: Connection): void {
    connection.onIdleClose = undefined
    if (!this.#order.delete(connection)) return
    const stack = this.#idle.get(connection.lane)
    if (stack) {
      const at = stack.lastIndexOf(connection)
      if (at >= 0) stack.splice(at, 1)
      if (stack.length === 0) this.#idle.delete(connection.lane)
    }
    this.count(-1)
  }

  #shrink(): void {
    while (this.#order.size > this.#options.keepalive) {
      const [oldest] = this.#order
      if (!oldest) return
      this.#remove(oldest)
      oldest.destroy()
    }
  }

  /** Closes what has been idle too long. The order is by the moment of rest, so the first fresh one ends it. */
  #sweep(): void {
    const now = monotonic()
    for (const connection of this.#order) {
      if (now - connection.restedAt < this.#options.timeout) break
      this.#remove(connection)
      connection.destroy()
    }
    if (this.#order.size === 0) {
      clearInterval(this.#sweeper)
      this.#sweeper = undefined
    }
  }

  /** As many connections more are kept that rest. */
  count(change: 1 | -1): void {
    this.#zone.enter()
    holdGroup(this.#zone, 'keepalive', change)
    if (this.room !== undefined) this.room.resting += change
    this.#zone.leave()
  }
}
