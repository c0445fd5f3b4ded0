import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type OutgoingHttpHeaders,
} from 'node:http2'

/** An answer as it came on a stream. */
export interface Answered {
  /** 0 where none came. */
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
  /** Undefined where none came. */
  readonly trailers: Readonly<Record<string, unknown>> | undefined
  /** Interim answers that came before. */
  readonly interim: readonly number[]
  /** What the stream was closed with: 0 is in order. */
  readonly code: number
}

/** A client of an HTTP/2 server. */
export class Http2 implements AsyncDisposable {
  readonly session: ClientHttp2Session
  /** Codes of the GOAWAY frames that came. */
  readonly goaways: number[] = []
  readonly #closed: Promise<void>

  constructor(session: ClientHttp2Session) {
    this.session = session
    session.on('error', () => {})
    this.#closed = new Promise((resolve) => session.once('close', resolve))
    session.on('goaway', (code) => this.goaways.push(code))
  }

  get closed(): Promise<void> {
    return this.#closed
  }

  /** Begins a request. @param end whether it has no body */
  begin(fields: OutgoingHttpHeaders = {}, end = true): ClientHttp2Stream {
    const stream = this.session.request({ ':path': '/', ...fields }, { endStream: end })
    stream.on('error', () => {})
    return stream
  }

  /** Sends a request and reads what comes. */
  ask(fields: OutgoingHttpHeaders = {}, body?: string | Buffer): Promise<Answered> {
    const stream = this.begin(fields, body === undefined)
    if (body !== undefined) stream.end(body)
    return answerOn(stream)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.session.destroy()
    await this.#closed
  }
}

/** Connects without TLS, knowing what is spoken. */
export async function http2(port: number, options: Parameters<typeof connect>[1] = {}): Promise<Http2> {
  // What it is to send counts, too.
  const session = connect(`http://127.0.0.1:${port}`, { maxSessionMemory: 1000, ...options })
  const client = new Http2(session)
  await Promise.race([new Promise((resolve) => session.once('remoteSettings', resolve)), client.closed])
  return client
}

/** What comes on a stream, until it is closed. */
export function answerOn(stream: ClientHttp2Stream): Promise<Answered> {
  return new Promise((resolve) => {
    let status = 0
    let headers: Readonly<Record<string, unknown>> = {}
    let trailers: Readonly<Record<string, unknown>> | undefined
    const interim: number[] = []
    const pieces: Buffer[] = []
    stream.on('headers', (fields) => interim.push(Number(fields[':status'])))
    stream.on('response', (fields) => {
      status = Number(fields[':status'])
      headers = fields
    })
    stream.on('trailers', (fields) => {
      trailers = fields
    })
    stream.on('data', (piece: Buffer) => pieces.push(piece))
    stream.on('close', () => {
      const body = Buffer.concat(pieces).toString('latin1')
      resolve({ status, headers, body, trailers, interim, code: stream.rstCode ?? 0 })
    })
  })
}
