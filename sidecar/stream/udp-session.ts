import type { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import { firstByte } from '../../feedback/observe-session.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import type { Peer } from '../../feedback/peer.ts'
import { connectVerdict } from '../../feedback/socket-error.ts'
import type { Droppable } from '../balance/drops.ts'
import { proxyHeader } from '../net/proxy-protocol.ts'
import { among } from './among.ts'
import { type End, ended, passed, peerLeft } from './record.ts'
import { Search } from './search.ts'
import type { GroupTarget, StreamServer } from './settings.ts'
import { UdpCourse } from './udp-course.ts'
import type { UdpClient, UdpSide } from './udp-host.ts'
import { type LinkOwner, UdpLink } from './udp-link.ts'
import type { Dated } from './watch.ts'

/** Where nothing has passed for so long, milliseconds, no answer is under way any more. */
export const quietMs = 1000
/** How long an answer may take that is under way when a session is ended from here, milliseconds. */
export const partingMs = 1000

/** Datagrams that may wait until the link to the peer is there: it takes no longer than a turn of the loop. */
const mostWaiting = 64

/**
 * One client's datagrams to one peer and back, from the first until it is over: when the peer has answered as often as
 * it was to, when nothing has passed for too long, or when the system says that nobody is there. That word comes after
 * a datagram was sent, so no other peer is asked: the client's next datagram begins another session.
 */
export class UdpSession implements LinkOwner, Dated, Droppable {
  readonly call: Call
  readonly client: UdpClient
  /** By what the listener finds it. */
  readonly key: string
  readonly #server: StreamServer
  readonly #side: UdpSide
  readonly #search: Search
  readonly #course: UdpCourse
  #attempt: Attempt | undefined
  #link: UdpLink | undefined
  #waiting: Uint8Array[] = []
  /** What was sent first, as long as it is not known that the system has taken it. */
  #unproven: Uint8Array[] | undefined
  /** When its client's next datagram is to be another session's; monotonic milliseconds. */
  #moveAt = Number.POSITIVE_INFINITY
  /** When it is to be ended, whatever passes; monotonic milliseconds. */
  #endAt = Number.POSITIVE_INFINITY
  /** Its peer has left its group. */
  #dropped = false
  #bound = true
  #over = false

  /** @param call begun, with the addresses of the client */
  constructor(
    call: Call,
    client: UdpClient,
    key: string,
    target: GroupTarget,
    server: StreamServer,
    side: UdpSide,
  ) {
    this.call = call
    this.client = client
    this.key = key
    this.#server = server
    this.#side = side
    this.#search = new Search(target, call, server.settings.retry)
    this.#course = new UdpCourse(server.settings, call.startedAt)
  }

  /** Takes its first datagram and goes to a peer with it. */
  begin(datagram: Uint8Array): void {
    this.take(datagram)
    this.#next()
    this.#side.expect(this.due)
  }

  /** A datagram came from the client. */
  take(datagram: Uint8Array): void {
    this.#course.asked(monotonic())
    this.call.requestLength += datagram.length
    if (this.#link?.connected) this.#send(datagram)
    else if (this.#waiting.length < mostWaiting) this.#waiting.push(datagram)
    else this.dropped(0, undefined)
    if (this.#course.full) this.#unbind()
  }

  /** Whether its client's datagrams come to that listener. */
  isOf(side: UdpSide): boolean {
    return side === this.#side
  }

  get peer(): Peer | undefined {
    return this.#attempt?.peer
  }

  /** How long it may go on after its peer has left; undefined: to its end. */
  get dropAfter(): number | undefined {
    return this.#server.settings.dropAfter
  }

  /** Its peer has left: its client is to have another one. An answer that is owed still has its moment. */
  drop(): void {
    if (this.#over) return
    this.#dropped = true
    this.#move(monotonic())
  }

  /** Whether the session is with one of these peers. */
  isWith(peers: readonly Peer[]): boolean {
    return among(peers, this.#attempt?.peer)
  }

  /** The next moment at which it is over unless something passes before. */
  get due(): number {
    return Math.min(this.#moveAt, this.#endAt, this.#course.due)
  }

  /** The moment has come. */
  late(now: number): void {
    if (this.#endAt <= now) this.end()
    else if (this.#moveAt <= now) this.#move(now)
    else if (this.#course.owing) {
      this.#fail({ ending: 'timeout', reason: 'timeout_read', detail: `${this.#course}` })
    } else this.#conclude({ ending: 'ok', detail: 'idle' })
  }

  /** Counts what has passed so far. */
  count(): void {
    if (!this.#over && this.#attempt) passed(this.call, this.#attempt, this.#server)
  }

  /** So many milliseconds in which nobody could do anything count for nothing. */
  forgive(ms: number): void {
    this.#course.forgive(ms)
  }

  /** Whether nothing is under way: no answer is owed, and nothing has passed for a while. */
  quiet(now: number): boolean {
    return this.#link?.unsent === 0 && this.#course.quiet(now, quietMs)
  }

  /** After so many milliseconds its client is to have another peer. */
  moveLater(ms: number): void {
    this.#moveAt = monotonic() + ms
    this.#side.expect(this.#moveAt)
  }

  /** Ends it after so many milliseconds. */
  endLater(ms: number): void {
    this.#endAt = monotonic() + ms
    this.#side.expect(this.#endAt)
  }

  /** Ends it from here. An answer that is still owed says nothing of the peer. */
  end(): void {
    if (this.#dropped) this.#conclude(peerLeft)
    else if (!this.#course.owing) this.#conclude({ ending: 'ok', detail: 'ended from here' })
    else {
      this.call.denial ??= 'shutdown'
      this.call.status = 502
      this.#conclude({ ending: 'aborted', reason: 'client_abort', detail: 'ended from here' })
    }
  }

  // What the link tells.

  connected(): void {
    const { proxyProtocol } = this.#server.settings
    const first = this.#waiting
    // As nginx has it, for its variables. Of the peer it says nothing.
    this.#attempt!.connectMs = monotonic() - this.#attempt!.startedAt
    this.#unproven = first
    this.#waiting = []
    for (const [i, datagram] of first.entries()) {
      const header = i === 0 && proxyProtocol ? proxyHeader(proxyProtocol, this.call, true) : undefined
      this.#send(header ? Buffer.concat([header, datagram]) : datagram)
    }
    // It has left meanwhile.
    if (this.#attempt?.peer?.dismissed) this.moveLater(this.#side.graceMs)
  }

  answered(datagram: Buffer): void {
    const now = monotonic()
    const attempt = this.#attempt!
    this.#course.answered(now)
    attempt.bytesReceived += datagram.length
    if (attempt.headerMs === undefined) {
      // There is no connection that could have been there before.
      attempt.accepted = true
      firstByte(attempt, this.call, now)
    }
    this.call.bytesSent += datagram.length
    // Before it goes: whoever has the answer may ask again at once, and whatever it asks finds this one written down.
    this.#check()
    this.#side.reply(this.client, datagram)
  }

  sent(): void {
    this.#unproven = undefined
    this.#check()
  }

  /** One of the client's datagrams goes nowhere, and nobody owes an answer to it. */
  dropped(length: number, why: string | undefined): void {
    if (why) this.#side.note(this.call, `a datagram of ${length} bytes could not be sent: ${why}`)
    this.#side.lost()
    if (this.#attempt) this.#attempt.bytesSent -= length
    this.#course.dropped()
    this.#check()
  }

  broken(error: NodeJS.ErrnoException): void {
    const back = this.#unproven
    const { ending, reason, local } = connectVerdict(error)
    const failure = { ending, reason, local, detail: error.message }
    if (!this.#link?.connected) this.#unreachable(failure)
    // That somebody refused shows that something was sent.
    else if (back !== undefined && error.code !== 'ECONNREFUSED' && this.#course.answeredAt === 0) {
      this.#waiting = back
      this.#attempt!.bytesSent = 0
      this.#unreachable(failure)
    } else if (local) {
      this.call.status = 502
      this.#conclude(failure)
    } else this.#fail(failure)
  }

  #next(): void {
    const attempt = this.#search.next()
    this.#attempt = attempt
    if (attempt?.peer === undefined) {
      this.call.status = 502
      this.#conclude({ ending: 'aborted' })
      return
    }
    const { address } = attempt.peer
    if (address.kind === 'tcp') {
      this.#link = new UdpLink(address.host, address.port, this)
      this.#link.open()
      return
    }
    const detail = 'datagrams cannot be sent to a Unix-domain socket'
    this.#unreachable({ ending: 'error', reason: 'unreachable', local: true, detail })
  }

  /** Nothing has left this machine for the peer: another one may be asked. */
  #unreachable(failure: Required<End> & { readonly local: boolean }): void {
    this.#letGo()
    if (this.#search.failed(this.#attempt!, failure)) this.#next()
    else {
      this.call.status = 502
      this.#conclude({ ending: 'aborted' })
    }
  }

  #send(datagram: Uint8Array): void {
    this.#attempt!.bytesSent += datagram.length
    this.#link?.send(datagram)
  }

  /** Whether it is over: once all that was to be sent was, and answered as often as was said. */
  #check(): void {
    if (this.#over || !this.#course.complete) return
    if (this.#waiting.length === 0 && this.#link?.unsent === 0) this.#conclude({ ending: 'ok' })
  }

  #fail(end: End): void {
    this.#attempt!.failed = true
    this.call.status = 502
    this.#conclude(end)
  }

  #conclude(end: End): void {
    if (this.#over) return
    this.#over = true
    this.#waiting = []
    const attempt = this.#attempt
    const { answeredAt } = this.#course
    if (attempt !== undefined && end.ending === 'ok' && answeredAt > 0) {
      // The pause that showed that it was over is no part of it.
      attempt.responseMs = answeredAt - attempt.startedAt
    }
    this.#letGo()
    this.#unbind()
    ended(this.call, attempt, end, this.#server, this.#side)
    this.#side.gone(this)
  }

  #letGo(): void {
    this.#link?.close()
    this.#link = undefined
    this.#unproven = undefined
  }

  /** What its client sends from now on begins another session. An answer to what it has sent already still comes. */
  #move(now: number): void {
    this.#moveAt = Number.POSITIVE_INFINITY
    this.#unbind()
    if (this.quiet(now)) this.end()
    else this.endLater(partingMs)
  }

  #unbind(): void {
    if (!this.#bound) return
    this.#bound = false
    this.#side.unbind(this)
  }
}
