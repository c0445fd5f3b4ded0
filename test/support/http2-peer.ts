import { once } from 'node:events'
import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type SecureServerOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2'
import type { AddressInfo } from 'node:net'

/** What a peer does with a request. */
export type Http2Answer = (
  stream: ServerHttp2Stream,
  fields: IncomingHttpHeaders,
  raw: readonly string[],
) => void

/** A peer that speaks HTTP/2, in this process. */
export class Http2Peer implements AsyncDisposable {
  readonly port: number
  /** Connections that are open, the oldest first. */
  readonly sessions: ServerHttp2Session[] = []
  /** Connections so far. */
  connections = 0
  /** Requests so far. */
  requests = 0
  /** Codes that clients ended streams with before they were answered. */
  readonly resets: number[] = []
  readonly #server: Http2Server | Http2SecureServer

  constructor(server: Http2Server | Http2SecureServer, answer: Http2Answer) {
    this.#server = server
    this.port = (server.address() as AddressInfo).port
    server.on('session', (session) => {
      this.connections += 1
      this.sessions.push(session)
      session.on('error', () => {})
      session.on('close', () => this.sessions.splice(this.sessions.indexOf(session), 1))
    })
    server.on('stream', (stream: ServerHttp2Stream, fields, _flags, raw: string[]) => {
      this.requests += 1
      stream.on('error', () => {})
      stream.on('aborted', () => this.resets.push(stream.rstCode))
      answer(stream, fields, raw)
    })
  }

  get address(): string {
    return `127.0.0.1:${this.port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const session of [...this.sessions]) session.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/** Starts a peer. @param port 0 takes a free one */
export async function http2Peer(
  answer: Http2Answer,
  options: ServerOptions = {},
  port = 0,
): Promise<Http2Peer> {
  const server = createServer(options)
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return new Http2Peer(server, answer)
}

/** The same inside of TLS. */
export async function http2TlsPeer(answer: Http2Answer, options: SecureServerOptions): Promise<Http2Peer> {
  const server = createSecureServer(options)
  server.on('tlsClientError', () => {}).on('unknownProtocol', (socket) => socket.destroy())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return new Http2Peer(server, answer)
}

/** Answers 200 with a text once the request is whole. */
export function say(stream: ServerHttp2Stream, text = 'ok'): void {
  stream.resume()
  stream.on('end', () => {
    if (stream.destroyed || stream.closed) return
    stream.respond({ ':status': 200 })
    stream.end(text)
  })
}
