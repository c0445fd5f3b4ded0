import { monotonic } from '../../feedback/clock.ts'
import { countAttempt } from '../../feedback/observe-bytes.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { BodyFault, RequestBody } from './body.ts'
import {
  type Connecting,
  type Connection,
  type ConnectionTls,
  type ExchangeEvents,
  openConnection,
} from './http1/connection.ts'
import type { HeadFault, ResponseHead } from './http1/head.ts'
import {
  bodyFailure,
  connectFailure,
  failure,
  lostDetail,
  lostFailure,
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
  /** Told of 1xx answers. */
  readonly interim: (status: number, headers: string[]) => void
}

/**
 * One try of a request on one connection: connect or reuse, write, wait for the head, then hand the body on.
 * A peer's failure is a value here and never an exception.
 */
export class Try implements ExchangeEvents, Waiting {
  readonly attempt: Attempt
  /** Whether any byte of the request was handed to an open connection. */
  sent = false
  /** Whether the whole request was. */
  sentAll = false
  /** The whole answer came, and the connection can be kept. */
  finished = false
  #options: TryOptions
  #connection: Connection | undefined = undefined
  #connecting: Connecting | undefined = undefined
  #head = ''
  #body: RequestBody | Buffer | undefined = undefined
  #chunked = false
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

  get connection(): Connection | undefined {
    return this.#connection
  }

  /**
   * Sends the request.
   * @param reused an idle connection to the peer; undefined opens one
   * @param head request line and headers with the final empty line, latin1
   */
  start(
    peer: Peer,
    reused: Connection | undefined,
    head: string,
    body: RequestBody | Buffer | undefined,
  ): Promise<TryResult> {
    this.#head = head
    this.#body = body
    this.#chunked = body !== undefined && !Buffer.isBuffer(body) && body.length === undefined
    return new Promise((resolve) => {
      this.#settle = resolve
      if (reused) {
        this.attempt.reused = true
        this.attempt.connectMs = 0
        this.#write(reused)
        return
      }
      this.#timer.arm('connect', this.#options.connectTimeout)
      this.#connecting = openConnection(
        peer.address,
        peer.name,
        (result) => {
          this.#connecting = undefined
          if (this.#over) return
          if (result instanceof Error) {
            this.#fail(connectFailure(result))
            return
          }
          this.attempt.connectMs = monotonic() - this.attempt.startedAt
          this.#write(result)
        },
        this.#options.tls,
      )
    })
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
    this.#connection?.socket.pause()
  }

  resume(): void {
    if (this.#over || this.finished || !this.#paused) return
    this.#paused = false
    this.#timer.mark()
    this.#connection?.socket.resume()
  }

  /** Gives up: nobody wants the answer. Closes the connection; no result follows. */
  abandon(): void {
    this.#close()
    this.#connection?.destroy()
  }

  /** The connection has been taken over by a tunnel: the try has no more to do with it. */
  release(): void {
    this.#close()
    this.#connection = undefined
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
    else if (this.attempt.reused && !this.#connection?.answered)
      this.#fail(failure('stale', 'stale', lostDetail(error)))
    else this.#fail(lostFailure(error))
  }

  drain(): void {
    this.activity()
    // The peer has taken what there was: what is waited for now is its answer, or more from the client.
    if (this.#timer.phase === 'send') this.#timer.arm('read', this.#options.readTimeout)
    if (this.#body && !Buffer.isBuffer(this.#body) && !this.sentAll) this.#body.resume()
  }

  // What the request body tells.

  write(chunk: Buffer): boolean {
    const connection = this.#connection
    if (this.#over || !connection) return false
    if (chunk.length === 0) return true
    let more: boolean
    if (this.#chunked) {
      connection.socket.cork()
      connection.write(`${chunk.length.toString(16)}\r\n`)
      connection.write(chunk)
      more = connection.write('\r\n')
      connection.socket.uncork()
    } else {
      more = connection.write(chunk)
    }
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

  #write(connection: Connection): void {
    this.#connection = connection
    this.#sentBefore = connection.socket.bytesWritten
    this.#readBefore = connection.socket.bytesRead
    connection.begin(this, this.#options, this.#options.maxHead)
    this.#timer.arm('read', this.#options.readTimeout)
    this.sent = true
    const body = this.#body
    if (body === undefined) {
      connection.write(this.#head)
      this.sentAll = true
    } else if (Buffer.isBuffer(body)) {
      connection.socket.cork()
      connection.write(this.#head)
      if (body.length > 0 && !connection.write(body)) this.#timer.arm('send', this.#options.sendTimeout)
      connection.socket.uncork()
      this.sentAll = true
    } else {
      connection.socket.cork()
      connection.write(this.#head)
      body.attach({
        write: (chunk) => this.write(chunk),
        end: () => this.#endBody(),
        broken: (why) => this.broken(why),
      })
      connection.socket.uncork()
    }
  }

  #endBody(): void {
    if (this.#over || !this.#connection) return
    this.sentAll = true
    if (this.#chunked) this.#connection.write('0\r\n\r\n')
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
    if (phase === 'connect') this.#fail(failure('timeout', 'timeout_connect', 'connect timed out'))
    else if (this.#answered) this.#fail(failure('timeout', 'body_timeout', 'no more of the body came'))
    else if (phase === 'send') this.#fail(failure('timeout', 'timeout_send', 'peer takes no more'))
    else this.#fail(failure('timeout', 'timeout_read', 'no answer'))
  }

  #fail(failed: TryFailure): void {
    if (this.#over) return
    this.#close()
    this.#connection?.destroy()
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
    this.#connecting?.cancel()
    this.#connecting = undefined
    if (this.#body && !Buffer.isBuffer(this.#body)) this.#body.detach()
  }

  #count(): void {
    const socket = this.#connection?.socket
    if (!socket || this.finished) return
    this.attempt.bytesSent = socket.bytesWritten - this.#sentBefore
    this.attempt.bytesReceived = socket.bytesRead - this.#readBefore
  }
}
