import { monotonic } from '../../feedback/clock.ts'
import { countAttempt } from '../../feedback/observe-bytes.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { Droppable, Drops } from '../balance/drops.ts'
import type { BodyFault, RequestBody } from './body.ts'
import { type Connecting, type Connection, type ConnectionTls, openConnection } from './http1/connection.ts'
import type { HeadFault, ResponseHead } from './http1/head.ts'
import { laneOf, type PeerSessions } from './http2-peer/sessions.ts'
import { PeerStream } from './http2-peer/stream.ts'
import type { StreamEvents } from './http2-peer/stream-home.ts'
import type { RequestTrailers } from './http2-peer/trailers.ts'
import {
  bodyFailure,
  connectFailure,
  failure,
  lostDetail,
  lostFailure,
  peerLeft,
  type TryFailure,
} from './try-failure.ts'
import { type Phase, TryTimer, type Waiting } from './try-timer.ts'

/** What the first half of a try gives: the head of the answer, or how it failed. */
export type TryResult = { readonly kind: 'head'; readonly head: ResponseHead } | TryFailure

/** Who takes the body of the answer, once somebody does. */
export interface ResponseSink {
  /** @returns false when it wants no more until `resume` of the try is called */
  data(chunk: Buffer): boolean
  end(trailers: string[] | undefined): void
  cut(failure: TryFailure): void
}

export interface TryOptions {
  /** All in milliseconds. */
  readonly connectTimeout: number
  readonly sendTimeout: number
  readonly readTimeout: number
  /** Largest response head, bytes. */
  readonly maxHead: number
  readonly method: string
  /** Whether the request asks to switch protocols. */
  readonly upgrade: boolean
  /** Speaks TLS on a fresh connection; undefined: nobody does. */
  readonly tls: ConnectionTls | undefined
  /** Sessions of HTTP/2 to ask on; undefined: the peer speaks HTTP/1.1. */
  readonly http2: PeerSessions | undefined
  /** What may follow the body, for peers that speak HTTP/2. */
  readonly trailers: RequestTrailers | undefined
  /** Who ends it where its peer leaves; undefined: nobody does. */
  readonly drops: Drops | undefined
  /** Told of 1xx answers. */
  readonly interim: (status: number, headers: string[]) => void
}

/**
 * One try of a request, on one connection or one stream of HTTP/2: connect or reuse, write, wait for the head, then
 * hand the body on.
 * A peer's failure is a value here and never an exception.
 */
export class Try implements StreamEvents, Waiting, Droppable {
  readonly attempt: Attempt
  /** Whether any byte of the request was handed to an open connection. */
  sent = false
  /** Whether the whole request was. */
  sentAll = false
  /** Whether the peer has said that it has not looked at it. */
  unseen = false
  /** The whole answer came, and the connection can be kept. */
  finished = false
  #options: TryOptions
  #link: Connection | PeerStream | undefined = undefined
  #again = false
  #connecting: Connecting | undefined = undefined
  #head = ''
  #body: RequestBody | Buffer | undefined = undefined
  #settle: ((result: TryResult) => void) | undefined = undefined
  #over = false
  #answered: ResponseHead | undefined = undefined
  #sink: ResponseSink | undefined = undefined
  /** What came of the body before somebody took it. */
  #early: Buffer[] = []
  #earlyEnd: { trailers: string[] | undefined } | undefined = undefined
  #earlyCut: TryFailure | undefined = undefined
  #paused = false
  readonly #timer = new TryTimer(this)
  #sentBefore = 0
  #readBefore = 0
  /** The second of the attempt in which its bytes were last counted. */
  #seconds = 0

  constructor(attempt: Attempt, options: TryOptions) {
    this.attempt = attempt
    this.#options = options
  }

  /** What a kept connection has to be good for; undefined: any to its peer is. */
  get lane(): string | undefined {
    return this.#options.tls?.name.lane
  }

  /** Undefined for a stream of HTTP/2, too. */
  get connection(): Connection | undefined {
    return this.#link instanceof PeerStream ? undefined : this.#link
  }

  get peer(): Peer | undefined {
    return this.attempt.peer
  }

  /** Whether any byte of the answer has come. */
  get answered(): boolean {
    return this.#link?.answered ?? false
  }

  /**
   * Sends the request.
   * @param reused an idle connection to the peer; undefined opens one
   * @param head request line and headers with the final empty line, latin1
   * @param again whether it goes to the same peer once more
   */
  start(
    peer: Peer,
    reused: Connection | undefined,
    head: string,
    body: RequestBody | Buffer | undefined,
    again = false,
  ): Promise<TryResult> {
    this.#head = head
    this.#body = body
    this.#again = again
    return new Promise((resolve) => {
      this.#settle = resolve
      const { http2, tls, connectTimeout } = this.#options
      const link =
        http2 === undefined || again ? reused : http2.take(laneOf(peer.name, tls), this.attempt.startedAt)
      if (link) {
        this.attempt.reused = true
        this.attempt.connectMs = 0
        this.#write(link)
        return
      }
      this.#timer.arm('connect', connectTimeout)
      this.#connecting =
        http2 === undefined
          ? openConnection(peer.address, peer.name, (result) => this.#opened(result), tls)
          : http2.open(peer, tls, (result) => this.#opened(result))
    })
  }

  #opened(result: Connection | PeerStream | NodeJS.ErrnoException): void {
    this.#connecting = undefined
    if (this.#over) return
    if (result instanceof Error) {
      this.#fail(connectFailure(result))
      return
    }
    this.attempt.connectMs = monotonic() - this.attempt.startedAt
    this.#write(result)
  }

  /** Takes the body: what has come already, then what comes. */
  pipe(sink: ResponseSink): void {
    this.#sink = sink
    const early = this.#early
    this.#early = []
    let more = true
    for (const chunk of early) more = sink.data(chunk)
    if (this.#earlyCut) sink.cut(this.#earlyCut)
    else if (this.#earlyEnd) sink.end(this.#earlyEnd.trailers)
    else if (!more) this.pause()
    else this.resume()
  }

  /** Stops reading from the peer: the client is slower. The read time-out rests meanwhile. */
  pause(): void {
    if (this.#over || this.finished) return
    this.#paused = true
    this.#link?.pause()
  }

  resume(): void {
    if (this.#over || this.finished || !this.#paused) return
    this.#paused = false
    this.#timer.mark()
    this.#link?.resume()
  }

  /** Gives up: nobody wants the answer. Closes the connection; no result follows. */
  abandon(): void {
    this.#close()
    this.#link?.destroy()
  }

  /** The peer has left its group. */
  drop(): void {
    this.abandonFor(peerLeft)
  }

  /** The connection has been taken over by a tunnel: the try has no more to do with it. */
  release(): void {
    this.#close()
    this.#link = undefined
  }

  /** Ends a try whose head has settled it (it goes on to another peer, or a local page stands in). */
  discard(): void {
    if (!this.finished) this.abandon()
  }

  // What the connection tells.

  activity(): void {
    const seconds = Math.trunc((this.#timer.mark() - this.attempt.startedAt) / 1000)
    if (seconds === this.#seconds || this.#over) return
    // What lasts for long shows its bytes meanwhile.
    this.#seconds = seconds
    this.#count()
    countAttempt(this.attempt)
  }

  interim(status: number, headers: string[]): void {
    this.#options.interim(status, headers)
  }

  head(head: ResponseHead): void {
    this.#answered = head
    if (this.#timer.phase === 'send') this.#timer.arm('read', this.#options.readTimeout)
    this.#resolve({ kind: 'head', head })
  }

  data(chunk: Buffer): void {
    this.attempt.bodyLength += chunk.length
    if (!this.#sink) {
      // Somebody takes it before the next read, as a rule; if not, that read is the last.
      if (this.#early.push(chunk) > 1) this.pause()
      return
    }
    if (!this.#sink.data(chunk)) this.pause()
  }

  end(trailers: string[] | undefined): void {
    if (this.#over) return
    if (this.#answered?.status === 101) {
      this.#close()
      return
    }
    this.#close()
    this.finished = true
    if (this.#sink) this.#sink.end(trailers)
    else this.#earlyEnd = { trailers }
  }

  fault(fault: HeadFault): void {
    const reason = fault.reason
    if (reason === 'body_cut') this.#fail(failure('error', 'body_cut', fault.detail))
    else this.#fail(failure('invalid_header', reason, fault.detail))
  }

  lost(error: NodeJS.ErrnoException | undefined): void {
    if (this.#answered) this.#fail(failure('error', 'body_cut', lostDetail(error)))
    else if (this.attempt.reused && this.#link?.untouched)
      this.#fail(failure('stale', 'stale', lostDetail(error)))
    else this.#fail(lostFailure(error))
  }

  refused(detail: string): void {
    this.unseen = true
    // It may come of a session that was just closing; the second time it is the peer that will not have it.
    if (this.#again) this.#fail(failure('error', 'refused', detail))
    else this.#fail(failure('stale', 'stale', detail))
  }

  unsent(detail: string): void {
    this.unseen = true
    this.#fail({ ...failure('error', 'unreachable', detail), local: true })
  }

  drain(): void {
    this.activity()
    // The peer has taken what there was: what is waited for now is its answer, or more from the client.
    if (this.#timer.phase === 'send') this.#timer.arm('read', this.#options.readTimeout)
    if (this.#body && !Buffer.isBuffer(this.#body) && !this.sentAll) this.#body.resume()
  }

  // What the request body tells.

  write(chunk: Buffer): boolean {
    const link = this.#link
    if (this.#over || !link) return false
    if (chunk.length === 0) return true
    const more = link.write(chunk)
    this.#timer.mark()
    if (!more && !this.#answered) this.#timer.arm('send', this.#options.sendTimeout)
    return more
  }

  broken(why: BodyFault): void {
    // The peer has part of a request that will never be whole: only closing tells it so.
    this.abandonFor(bodyFailure(why))
  }

  /** Ends the try with a result of the caller's. */
  abandonFor(failure: TryFailure): void {
    if (this.#over || this.finished) return
    this.#fail(failure)
  }

  #write(link: Connection | PeerStream): void {
    this.#link = link
    this.#sentBefore = link.bytesWritten
    this.#readBefore = link.bytesRead
    link.begin(this, this.#options, this.#options.maxHead)
    this.#timer.arm('read', this.#options.readTimeout)
    this.sent = true
    const body = this.#body
    if (body === undefined) {
      link.send(this.#head, 'none')
      this.sentAll = true
      return
    }
    link.cork()
    if (Buffer.isBuffer(body)) {
      const empty = body.length === 0 && this.#options.trailers?.possible !== true
      link.send(this.#head, empty ? 'none' : 'plain')
      if (body.length > 0 && !link.write(body)) this.#timer.arm('send', this.#options.sendTimeout)
      this.sentAll = true
      link.finish()
    } else {
      link.send(this.#head, body.length === undefined ? 'chunked' : 'plain')
      body.attach({
        write: (chunk) => this.write(chunk),
        end: () => this.#endBody(),
        broken: (why) => this.broken(why),
      })
    }
    link.uncork()
  }

  #endBody(): void {
    if (this.#over || !this.#link) return
    this.sentAll = true
    this.#link.finish()
    this.#timer.mark()
  }

  // What the timer asks and tells.

  get resting(): boolean {
    if (this.#paused) return true
    // A request body that the client still sends is the client's slowness and not the peer's.
    const streamed = this.#body !== undefined && !Buffer.isBuffer(this.#body)
    return this.#timer.phase === 'read' && !this.#answered && streamed && !this.sentAll
  }

  late(phase: Phase): void {
    if (this.#link instanceof PeerStream) this.#link.late()
    if (phase === 'connect') this.#fail(failure('timeout', 'timeout_connect', 'connect timed out'))
    else if (this.#answered) this.#fail(failure('timeout', 'body_timeout', 'no more of the body came'))
    else if (phase === 'send') this.#fail(failure('timeout', 'timeout_send', 'peer takes no more'))
    else this.#fail(failure('timeout', 'timeout_read', 'no answer'))
  }

  #fail(failed: TryFailure): void {
    if (this.#over) return
    this.#close()
    this.#link?.destroy()
    if (!this.#answered) this.#resolve(failed)
    else if (this.#sink) this.#sink.cut(failed)
    else this.#earlyCut = failed
  }

  #resolve(result: TryResult): void {
    const settle = this.#settle
    this.#settle = undefined
    settle?.(result)
  }

  #close(): void {
    this.#count()
    this.#over = true
    this.#timer.stop()
    this.#options.drops?.delete(this)
    this.#connecting?.cancel()
    this.#connecting = undefined
    if (this.#body && !Buffer.isBuffer(this.#body)) this.#body.detach()
  }

  #count(): void {
    const link = this.#link
    if (!link || this.finished) return
    this.attempt.bytesSent = link.bytesWritten - this.#sentBefore
    this.attempt.bytesReceived = link.bytesRead - this.#readBefore
  }
}
