import type { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { Peer } from '../../feedback/peer.ts'
import { Drops } from '../balance/drops.ts'
import { bindUdp, type UdpBind } from '../net/bind-udp.ts'
import { openNow, type Sharing, serialOf } from '../net/sharing.ts'
import type { StreamNews } from './sessions.ts'
import type { StreamServer } from './settings.ts'
import { UdpListener, type UdpOwner } from './udp-listener.ts'
import { partingMs, type UdpSession } from './udp-session.ts'
import { Watch } from './watch.ts'

/** The UDP side of `stream`: all addresses that datagrams come to in this thread. */
export class UdpListeners implements UdpOwner {
  readonly counts
  graceMs = 30_000
  readonly #sharing: Sharing
  readonly #limit: number
  /** Most sessions of this thread. */
  readonly #share: number
  readonly #news: StreamNews
  readonly #open = new Map<string, UdpListener>()
  /** Those whose address is listened on no more, with their last sessions. */
  readonly #leaving = new Map<string, UdpListener>()
  readonly #sessions = new Set<UdpSession>()
  readonly #watch = new Watch(this.#sessions)
  readonly #drops: Drops
  #stopped = false

  /**
   * @param limit most connections and sessions of clients at once, those of all threads and of `http` together
   * @param drops ends sessions whose peers leave
   */
  constructor(sharing: Sharing, limit: number, news: StreamNews, drops = new Drops()) {
    this.#drops = drops
    this.counts = sharing.tally.own
    this.#sharing = sharing
    this.#limit = limit
    // Anybody can claim to be a thousand clients: those of TCP keep half of the room whatever comes here.
    this.#share = Math.max(1, Math.floor(limit / 2 / sharing.threads))
    this.#news = news
  }

  /** Addresses listened on, with the port that was taken where port 0 was asked for. */
  addresses(): string[] {
    return [...this.#open.values()].map(({ bind, port }) => bind.key.replace(/:\d+$/, `:${port}`))
  }

  /**
   * Listens on what is wanted: new addresses are opened first, those that stay are left alone, and those that are gone
   * take no new clients; their sessions end within a second. When one cannot be opened, everything stays as it was.
   * Datagrams that come before `use` are lost.
   * @throws ListenError
   */
  async apply(binds: readonly UdpBind[]): Promise<void> {
    const opened: UdpListener[] = []
    try {
      for (const bind of binds) {
        if (this.#open.has(bind.key) || this.#returns(bind.key)) continue
        const socket = await bindUdp(bind, this.#sharing.threads > 1)
        opened.push(new UdpListener(bind, socket, this))
      }
    } catch (error) {
      for (const listener of opened) listener.stop()
      throw error
    }
    for (const listener of opened) this.#open.set(listener.bind.key, listener)
    const wanted = new Set(binds.map(({ key }) => key))
    for (const [key, listener] of this.#open) {
      if (wanted.has(key)) continue
      this.#open.delete(key)
      this.#leave(listener)
    }
    for (const [key, listener] of this.#leaving) {
      if (listener.closed) this.#leaving.delete(key)
      else if (wanted.has(key)) {
        this.#leaving.delete(key)
        this.#open.set(key, listener)
        listener.resume()
      }
    }
    // The end may have come while it was opened.
    if (this.#stopped) this.stopListening()
  }

  /** Whether the address was given up a moment ago, and its socket is still there. */
  #returns(key: string): boolean {
    return this.#leaving.get(key)?.closed === false
  }

  #leave(listener: UdpListener): void {
    listener.server = undefined
    listener.stop()
    if (!listener.closed) this.#leaving.set(listener.bind.key, listener)
    const now = monotonic()
    for (const session of this.#sessions) {
      if (!session.isOf(listener)) continue
      // They share its socket, and the address is to be free for others.
      if (session.quiet(now)) session.end()
      else session.endLater(partingMs)
    }
  }

  /** Has new sessions served so from now on; those that there are go on as they began. @param servers by address */
  use(servers: ReadonlyMap<string, StreamServer>): void {
    for (const [key, listener] of this.#open) listener.server = servers.get(key)
  }

  /** Takes no new clients, for good. Sessions go on. */
  stopListening(): void {
    this.#stopped = true
    for (const listener of this.#open.values()) listener.stop()
  }

  /** Ends sessions that nobody uses at the moment. */
  closeIdle(): void {
    const now = monotonic()
    for (const session of this.#sessions) if (session.quiet(now)) session.end()
  }

  /** Ends every session. */
  end(): void {
    for (const session of this.#sessions) session.end()
  }

  /**
   * The same with those to peers that a reload takes away.
   * @param graceMs how long they have until then
   */
  endOf(gone: readonly Peer[], graceMs: number): void {
    this.graceMs = graceMs
    for (const session of this.#sessions) if (session.isWith(gone)) session.moveLater(graceMs)
  }

  /** Ends everything. */
  destroy(): void {
    this.stopListening()
    this.end()
  }

  // What listeners and sessions need.

  admit(): number | undefined {
    const { counts } = this
    if (openNow(this.#sharing) >= this.#limit || this.#sessions.size >= this.#share) {
      counts.dropped += 1
      this.#news.dropped()
      return undefined
    }
    counts.accepted += 1
    return serialOf(this.#sharing)
  }

  begun(session: UdpSession): void {
    this.#sessions.add(session)
    if (session.dropAfter !== undefined) this.#drops.add(session, session.dropAfter)
    this.counts.open += 1
  }

  gone(session: UdpSession): void {
    this.#drops.delete(session)
    if (this.#sessions.delete(session)) this.counts.open -= 1
  }

  expect(at: number): void {
    this.#watch.expect(at)
  }

  lost(): void {
    this.counts.lost += 1
  }

  complain(call: Call, text: string): void {
    this.#news.complain(call, text)
  }

  note(call: Call, text: string): void {
    this.#news.note(call, text)
  }
}
