import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2'
import type { Socket } from 'node:net'
import { monotonic } from '../feedback/clock.ts'
import { Http2Lifetime } from '../feedback/http2-lifetime.ts'
import type { Address } from '../feedback/peer.ts'
import { Type } from '../feedback/schema-type.ts'
import { answer, brokenMishap, type Mishap, mishap, shown } from './answer.ts'
import { connectInterval, dialSecure } from './dial.ts'
import { checkRequest, servingStatus, statusName } from './grpc-health.ts'
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
    await load()
    return undefined
  },
  async check({ address }, { service = '' }, { signal, question }) {
    const { connect } = await load()
    const startedAt = monotonic()
    const { secure, connectTimeout } = question ?? { connectTimeout: Number.POSITIVE_INFINITY }
    const socket = await dialSecure(address, signal, connectTimeout, secure)
    if ('failure' in socket) return answer(startedAt, { ...socket, passed: false })
    const connectMs = monotonic() - startedAt
    const lifetime = new Http2Lifetime(socket)
    const session = connect('http://localhost', {
      createConnection: () => socket,
      settings: { enablePush: false },
    })
    lifetime.begun()
    const exchange = new Exchange(startedAt, connectMs, session, lifetime, socket)
    const abort = () => exchange.abort()
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    exchange.ask(authority(address), service)
    try {
      return await exchange.answer
    } finally {
      signal.removeEventListener('abort', abort)
      session.destroy()
      socket.destroy()
    }
  },
} as const satisfies ProbeKind<typeof args>

/** Only programs that ask over gRPC have it: it takes 10 MB. */
function load() {
  return import('node:http2')
}

function authority(address: Address): string {
  if (address.kind === 'unix') return 'localhost'
  const { host, port } = address
  return host.includes(':') ? `[${host.replace(/%.*/, '')}]:${port}` : `${host}:${port}`
}

/** Largest answer that is read, bytes; a health answer has seven. */
const largestAnswer = 4096

/** One call of `Check`. */
class Exchange {
  readonly answer: Promise<Answer>
  #settle: (answer: Answer) => void
  #startedAt: number
  #connectMs: number
  #session: ClientHttp2Session
  #lifetime: Http2Lifetime
  #headerMs: number | undefined = undefined
  #headers: readonly string[] = []
  #trailers: readonly string[] = []
  #status: number | undefined = undefined
  /** `grpc-status` and `grpc-message`: of the trailers, or of the header where that is all that comes. */
  #grpcStatus: string | undefined = undefined
  #grpcMessage = ''
  #body: Buffer = Buffer.alloc(0)
  #goaway: string | undefined = undefined
  /** What broke the connection. */
  #broken: Error | undefined = undefined

  constructor(
    startedAt: number,
    connectMs: number,
    session: ClientHttp2Session,
    lifetime: Http2Lifetime,
    socket: Socket,
  ) {
    this.#startedAt = startedAt
    this.#connectMs = connectMs
    this.#session = session
    this.#lifetime = lifetime
    const { promise, resolve } = Promise.withResolvers<Answer>()
    this.answer = promise
    this.#settle = resolve
    socket.on('error', (error) => {
      this.#broken ??= error
    })
    session.on('goaway', (code) => {
      this.#goaway = `GOAWAY ${errorName(code)}`
    })
    session.on('error', (error) => this.#fail(error))
    session.on('close', () => this.#fail(this.#broken))
  }

  /** The time is over. */
  abort(): void {
    this.#fail(undefined, mishap('timeout', 'timeout_read', 'no answer in time'))
  }

  ask(authority: string, service: string): void {
    // A session that has ended already says so by its own events.
    if (this.#session.destroyed) return
    const stream = this.#session.request({
      ':method': 'POST',
      ':authority': authority,
      ':path': '/grpc.health.v1.Health/Check',
      te: 'trailers',
      'content-type': 'application/grpc',
      'user-agent': 'evenkeel',
    })
    this.#lifetime.stream(stream, this.#session)
    stream.on('response', (headers, _flags, raw) => {
      this.#headerMs = monotonic() - this.#startedAt
      this.#status = headers[':status']
      this.#headers = fields(raw)
      this.#readStatus(headers)
    })
    stream.on('trailers', (trailers, _flags, raw) => {
      this.#trailers = fields(raw)
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
    if (this.#session.destroyed && this.#grpcStatus === undefined) return
    const { rstCode = 0 } = stream
    if (rstCode !== 0 && this.#grpcStatus === undefined && this.#goaway === undefined) {
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

  #fail(error: NodeJS.ErrnoException | undefined, how: Mishap = this.#mishap(error)): void {
    this.#end({ ...how, passed: false })
  }

  /** What ended the session. The library's own errors are of what the peer sent. */
  #mishap(error: NodeJS.ErrnoException | undefined): Mishap {
    if (this.#goaway !== undefined) return mishap('error', 'closed', this.#goaway)
    if (error?.code?.startsWith('ERR_HTTP2_')) {
      return mishap('invalid_header', 'invalid_header', `no HTTP/2 answer: ${error.message}`)
    }
    return brokenMishap(error)
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

/** Names and values in turn, without those of the protocol itself (`:status`). */
function fields(raw: readonly string[]): string[] {
  const kept: string[] = []
  for (let i = 0; i < raw.length; i += 2) {
    if (!raw[i]!.startsWith(':')) kept.push(raw[i]!, raw[i + 1]!)
  }
  return kept
}

/** The text of a `grpc-message`, which is UTF-8 behind percent signs; as it stands where that is not so. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Error codes of HTTP/2 by number, RFC 9113 section 7. */
const errorNames = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
  'INADEQUATE_SECURITY',
  'HTTP_1_1_REQUIRED',
] as const

function errorName(code: number): string {
  return errorNames[code] ?? String(code)
}
