import type { ClientHttp2Stream, connect, IncomingHttpHeaders } from 'node:http2'
import type { Socket } from 'node:net'
import { monotonic } from '../feedback/clock.ts'
import { Type } from '../feedback/schema-type.ts'
import { answer, type Mishap, mishap, shown } from './answer.ts'
import { connectInterval, dialSecure } from './dial.ts'
import { checkRequest, servingStatus, statusName } from './grpc-health.ts'
import { authorityOf, errorName, Http2Link, loadHttp2, ownFields } from './http2-link.ts'
import type { Answer, ProbeKind } from './probe.ts'

const args = Type.Object(
  {
    service: Type.Optional(
      Type.String({ description: 'the service to ask after; without it the server as a whole' }),
    ),
  },
  { additionalProperties: false },
)

/** HTTP/2 without asking first, as gRPC's own clients do it; inside of TLS where the location speaks it. */
export const grpc = {
  name: 'grpc',
  summary: "Asks gRPC's health service over HTTP/2: passed when it says SERVING.",
  args,
  http: false,
  leastInterval: connectInterval,
  async caveat() {
    // So that the first probe's time is the peer's and not the library's.
    await loadHttp2()
    return undefined
  },
  async check({ address }, { service = '' }, { signal, question }) {
    const { connect } = await loadHttp2()
    const startedAt = monotonic()
    const { secure, connectTimeout } = question ?? { connectTimeout: Number.POSITIVE_INFINITY }
    const socket = await dialSecure(address, signal, connectTimeout, secure)
    if ('failure' in socket) return answer(startedAt, { ...socket, passed: false })
    const exchange = new Exchange(startedAt, connect, socket, secure ? 'https' : 'http')
    const abort = () => exchange.abort()
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    exchange.ask(authorityOf(address), service)
    try {
      return await exchange.answer
    } finally {
      signal.removeEventListener('abort', abort)
      exchange.destroy()
    }
  },
} as const satisfies ProbeKind<typeof args>

/** Largest answer that is read, bytes; a health answer has seven. */
const largestAnswer = 4096

/** One call of `Check`. */
class Exchange {
  readonly answer: Promise<Answer>
  #settle: (answer: Answer) => void
  #startedAt: number
  #connectMs: number
  #scheme: 'http' | 'https'
  #link: Http2Link
  #headerMs: number | undefined = undefined
  #headers: readonly string[] = []
  #trailers: readonly string[] = []
  #status: number | undefined = undefined
  /** `grpc-status` and `grpc-message`: of the trailers, or of the header where that is all that comes. */
  #grpcStatus: string | undefined = undefined
  #grpcMessage = ''
  #body: Buffer = Buffer.alloc(0)

  constructor(startedAt: number, open: typeof connect, socket: Socket, scheme: 'http' | 'https') {
    this.#startedAt = startedAt
    this.#connectMs = monotonic() - startedAt
    this.#scheme = scheme
    const { promise, resolve } = Promise.withResolvers<Answer>()
    this.answer = promise
    this.#settle = resolve
    this.#link = new Http2Link(open, socket, scheme, (error) => this.#fail(error))
  }

  /** The time is over. */
  abort(): void {
    this.#fail(undefined, mishap('timeout', 'timeout_read', 'no answer in time'))
  }

  ask(authority: string, service: string): void {
    // A session that has ended already says so by its own events.
    if (this.#link.ended) return
    const fields = [':method', 'POST', ':scheme', this.#scheme, ':path', '/grpc.health.v1.Health/Check']
    fields.push(':authority', authority, 'te', 'trailers', 'content-type', 'application/grpc')
    fields.push('user-agent', 'evenkeel')
    const stream = this.#link.request(fields, false)
    stream.on('response', (headers, _flags, raw) => {
      this.#headerMs = monotonic() - this.#startedAt
      this.#status = headers[':status']
      this.#headers = ownFields(raw)
      this.#readStatus(headers)
    })
    stream.on('trailers', (trailers, _flags, raw) => {
      this.#trailers = ownFields(raw)
      this.#readStatus(trailers)
    })
    stream.on('data', (piece: Buffer) => {
      this.#body = Buffer.concat([this.#body, piece])
      if (this.#body.length <= largestAnswer) return
      this.#end({ passed: false, detail: `answer of more than ${largestAnswer} bytes` })
    })
    stream.on('error', (error) => this.#lost(stream, error))
    stream.on('close', () => this.#lost(stream, undefined))
    stream.end(checkRequest(service))
  }

  destroy(): void {
    this.#link.destroy()
  }

  #readStatus(headers: IncomingHttpHeaders): void {
    const status = headers['grpc-status']
    const message = headers['grpc-message']
    if (status === undefined) return
    this.#grpcStatus = String(status)
    this.#grpcMessage = message === undefined ? '' : String(message)
  }

  /** The stream has ended, well or not. */
  #lost(stream: ClientHttp2Stream, error: Error | undefined): void {
    // What ended the whole connection says more than that this stream ended with it.
    if (this.#link.ended && this.#grpcStatus === undefined) return
    const { rstCode = 0 } = stream
    if (rstCode !== 0 && this.#grpcStatus === undefined && !this.#link.goingAway) {
      this.#fail(error, mishap('error', 'reset', `RST_STREAM ${errorName(rstCode)}`))
    } else if (this.#status === undefined) this.#fail(error)
    else this.#judge()
  }

  /** An answer came: what it says. */
  #judge(): void {
    const { detail, passed = false } = this.#verdict()
    this.#end({ passed, detail })
  }

  #verdict(): { detail: string; passed?: boolean } {
    const status = this.#grpcStatus
    if (status === undefined) return { detail: `status ${this.#status} without grpc-status` }
    if (status !== '0') {
      const message = this.#grpcMessage === '' ? '' : `: ${shown(decoded(this.#grpcMessage))}`
      return { detail: `grpc-status ${shown(statusName(status))}${message}` }
    }
    const serving = servingStatus(this.#body)
    return { detail: serving ?? 'malformed answer', passed: serving === 'SERVING' }
  }

  #fail(error: Error | undefined, how: Mishap = this.#link.mishap(error)): void {
    this.#end({ ...how, passed: false })
  }

  #end(how: Partial<Answer>): void {
    this.#settle(
      answer(this.#startedAt, {
        ...how,
        status: this.#status,
        headers: this.#headers,
        trailers: this.#trailers,
        connectMs: this.#connectMs,
        headerMs: this.#headerMs,
      }),
    )
  }
}

/** The text of a `grpc-message`, which is UTF-8 behind percent signs; as it stands where that is not so. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
