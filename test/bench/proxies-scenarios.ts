/** How clients reach a proxy where that is not HTTP/1.1 in the clear; h2load is the client then, except for `once`. */
export interface Front {
  readonly tls: boolean
  readonly http2: boolean
  /** At once on a connection; 1 with HTTP/1.1. */
  readonly streams: number
  /** Whether each request has a connection of its own. */
  readonly once: boolean
  /** Whether requests are calls of gRPC, which the peer is asked by HTTP/2 as well. */
  readonly calls?: boolean
}

/** What clients do to every proxy. */
export interface Scenario {
  readonly name: string
  readonly title: string
  /** The head of its column in README. */
  readonly column: string
  readonly connections: number
  readonly ask: AskName
  /** Requests a second at which latency is measured, far below what any can do; undefined: in the closed loop. */
  readonly rate: number | undefined
  /** Whether subjects that differ by a setting (logs, metrics) are measured too. */
  readonly variants: boolean
  /** undefined: HTTP/1.1 in the clear. */
  readonly front?: Front
}

export const scenarios: readonly Scenario[] = [
  {
    name: 'small',
    title: 'small GET, 16 connections',
    column: 'GET',
    connections: 16,
    ask: 'small',
    rate: 1000,
    variants: true,
  },
  {
    name: 'conn1',
    title: 'small GET, 1 connection',
    column: 'GET, 1 conn.',
    connections: 1,
    ask: 'small',
    rate: undefined,
    variants: false,
  },
  {
    name: 'conn1000',
    title: 'small GET, 1,000 connections',
    column: 'GET, 1,000 conn.',
    connections: 1000,
    ask: 'small',
    rate: 1000,
    variants: false,
  },
  {
    name: 'body100k',
    title: 'GET of 100 KiB, 16 connections',
    column: '100 KiB',
    connections: 16,
    ask: 'body100k',
    rate: 500,
    variants: false,
  },
  {
    name: 'body10m',
    title: 'GET of 10 MiB, 4 connections',
    column: '10 MiB',
    connections: 4,
    ask: 'body10m',
    rate: undefined,
    variants: false,
  },
  {
    name: 'post',
    title: 'POST of 10 KiB, 16 connections',
    column: 'POST 10 KiB',
    connections: 16,
    ask: 'post',
    rate: 1000,
    variants: false,
  },
  {
    name: 'websocket',
    title: 'WebSocket echo of 32 bytes, 16 connections',
    column: 'WebSocket',
    connections: 16,
    ask: 'websocket',
    rate: 1000,
    variants: false,
  },
  {
    name: 'tls',
    title: 'small GET over TLS 1.3, 16 connections',
    column: 'TLS',
    connections: 16,
    ask: 'small',
    rate: 1000,
    variants: false,
    front: { tls: true, http2: false, streams: 1, once: false },
  },
  {
    name: 'tls-handshake',
    title: 'small GET over TLS 1.3, a new connection each, 4 at once',
    column: 'TLS, new conn.',
    connections: 4,
    ask: 'small',
    rate: undefined,
    variants: false,
    front: { tls: true, http2: false, streams: 1, once: true },
  },
  {
    name: 'h2',
    title: 'small GET by HTTP/2 over TLS 1.3, 4 connections of 16 streams',
    column: 'HTTP/2, TLS',
    connections: 4,
    ask: 'small',
    rate: 1000,
    variants: false,
    front: { tls: true, http2: true, streams: 16, once: false },
  },
  {
    name: 'h2c',
    title: 'small GET by HTTP/2 in the clear, 4 connections of 16 streams',
    column: 'HTTP/2',
    connections: 4,
    ask: 'small',
    rate: 1000,
    variants: false,
    front: { tls: false, http2: true, streams: 16, once: false },
  },
  {
    name: 'grpc',
    title: 'call of gRPC with a message of 32 bytes, in the clear, 4 connections of 16 streams',
    column: 'gRPC',
    connections: 4,
    ask: 'small',
    rate: 1000,
    variants: false,
    front: { tls: false, http2: true, streams: 16, once: false, calls: true },
  },
]

/** What is sent, and how much comes back. */
export interface Ask {
  readonly request: Buffer
  /** Length of the answer's body, or of a whole message. */
  readonly length: number
  /** What opens the tunnel that requests and answers go through as messages; undefined: HTTP all along. */
  readonly opening?: Buffer
}

const fields = 'Host: example.com\r\nUser-Agent: bench\r\nAccept: */*\r\n'
export const postLength: number = 10 * 1024

const key = 'ZXZlbmtlZWwgYmVuY2ggIQ=='
const message = Buffer.from('a message of thirty-two bytes...')
/** A text message; a client's has a mask, here one of zeros, so that what stands in it can be read. */
const masked = Buffer.concat([Buffer.from([0x81, 0x80 | message.length, 0, 0, 0, 0]), message])
export const unmasked: Buffer = Buffer.concat([Buffer.from([0x81, message.length]), message])

/** A message of gRPC, in either direction. */
export const callMessage: Buffer = Buffer.concat([Buffer.from([0, 0, 0, 0, 32]), Buffer.alloc(32, 'c')])

export type AskName = 'small' | 'body100k' | 'body10m' | 'post' | 'websocket'

export const asks: Readonly<Record<AskName, Ask>> = {
  small: { request: Buffer.from(`GET /small HTTP/1.1\r\n${fields}\r\n`), length: 6 },
  body100k: { request: Buffer.from(`GET /100k HTTP/1.1\r\n${fields}\r\n`), length: 100 * 1024 },
  body10m: { request: Buffer.from(`GET /10m HTTP/1.1\r\n${fields}\r\n`), length: 10 * 1024 * 1024 },
  post: {
    request: Buffer.concat([
      Buffer.from(
        `POST /post HTTP/1.1\r\n${fields}Content-Type: application/octet-stream\r\nContent-Length: ${postLength}\r\n\r\n`,
      ),
      Buffer.alloc(postLength, 'p'),
    ]),
    length: 6,
  },
  websocket: {
    request: masked,
    length: unmasked.length,
    opening: Buffer.from(
      `GET /ws HTTP/1.1\r\n${fields}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
    ),
  },
}
