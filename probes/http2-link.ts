import type { ClientHttp2Session, ClientHttp2Stream, connect } from 'node:http2'
import type { Socket } from 'node:net'
import { Http2Lifetime } from '../feedback/http2-lifetime.ts'
import type { Address } from '../feedback/peer.ts'
import { brokenMishap, type Mishap, mishap } from './answer.ts'

/** Only programs that ask over HTTP/2 have it: it takes 10 MB. */
export function loadHttp2(): Promise<typeof import('node:http2')> {
  return import('node:http2')
}

/** A connection for one question that speaks HTTP/2 without asking first. */
export class Http2Link {
  readonly #session: ClientHttp2Session
  readonly #lifetime: Http2Lifetime
  readonly #socket: Socket
  #settled = false
  #goaway: string | undefined = undefined
  /** What broke the connection. */
  #broken: Error | undefined = undefined

  /**
   * @param open of the library
   * @param socket connected
   * @param lost told, perhaps more than once, that the connection has ended; the error is undefined where it ended in order
   */
  constructor(
    open: typeof connect,
    socket: Socket,
    scheme: 'http' | 'https',
    lost: (error: NodeJS.ErrnoException | undefined) => void,
  ) {
    this.#socket = socket
    this.#lifetime = new Http2Lifetime(socket)
    const session = open(`${scheme}://localhost`, {
      createConnection: () => socket,
      settings: { enablePush: false },
      // As of peers that requests go to; the default would refuse heads of 128 fields.
      maxHeaderListPairs: 1000,
      // Peers may say a field twice that Node would want once. Its types know this of servers alone.
      ...{ strictSingleValueFields: false },
    })
    this.#lifetime.begun()
    this.#session = session
    socket.on('error', (error) => {
      this.#broken ??= error
    })
    session.on('remoteSettings', () => {
      this.#settled = true
    })
    session.on('goaway', (code) => {
      this.#goaway = `GOAWAY ${errorName(code)}`
    })
    session.on('error', lost)
    session.on('close', () => lost(this.#broken))
  }

  /** Whether the peer has said how it speaks HTTP/2: one that does not know it never does. */
  get settled(): boolean {
    return this.#settled
  }

  /** Whether it takes no more streams. */
  get ended(): boolean {
    return this.#session.destroyed
  }

  /** Whether the peer has said that it goes away. */
  get goingAway(): boolean {
    return this.#goaway !== undefined
  }

  /** @param fields names and values in turn, those that begin with a colon first */
  request(fields: string[], endStream: boolean): ClientHttp2Stream {
    const stream = this.#session.request(fields, { endStream })
    this.#lifetime.stream(stream, this.#session)
    return stream
  }

  /** What ended the connection. The library's own errors are of what the peer sent. */
  mishap(error: NodeJS.ErrnoException | undefined): Mishap {
    if (this.#goaway !== undefined) return mishap('error', 'closed', this.#goaway)
    if (error?.code?.startsWith('ERR_HTTP2_')) {
      return mishap('invalid_header', 'invalid_header', `no HTTP/2 answer: ${error.message}`)
    }
    if (error !== undefined || this.#settled) return brokenMishap(error)
    return mishap('error', 'closed', 'connection closed by the peer before its SETTINGS')
  }

  destroy(): void {
    this.#session.destroy()
    this.#socket.destroy()
  }
}

/** What a request is for that names no host. */
export function authorityOf(address: Address): string {
  if (address.kind === 'unix') return 'localhost'
  const { host, port } = address
  return host.includes(':') ? `[${host.replace(/%.*/, '')}]:${port}` : `${host}:${port}`
}

/** Names and values in turn, without those of the protocol itself (`:status`). */
export function ownFields(raw: readonly string[]): string[] {
  const kept: string[] = []
  for (let i = 0; i < raw.length; i += 2) {
    if (!raw[i]!.startsWith(':')) kept.push(raw[i]!, raw[i + 1]!)
  }
  return kept
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

export function errorName(code: number): string {
  return errorNames[code] ?? String(code)
}
