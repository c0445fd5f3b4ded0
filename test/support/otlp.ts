import { once } from 'node:events'
import { createServer as createHttp, type IncomingHttpHeaders } from 'node:http'
import { createServer as createHttp2, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo, Server, Socket } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { type ReceivedSpan, readJson, readProtobuf } from './otlp-message.ts'
import { until } from './until.ts'

/** What a receiver was sent besides spans. */
export interface Delivery {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly spans: number
}

/** Receives spans as a collector does, by OTLP over HTTP or over gRPC, and keeps them. */
export class Receiver implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = []
  readonly deliveries: Delivery[] = []
  /** Status of its answers over HTTP; 0: it never answers. */
  status = 200
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor(kind: 'http' | 'grpc') {
    this.#server = kind === 'http' ? this.#http() : this.#grpc()
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    this.#server.unref()
  }

  async listen(port = 0): Promise<this> {
    this.#server.listen(port, '127.0.0.1')
    await once(this.#server, 'listening')
    return this
  }

  get port(): number {
    // It listens on TCP.
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** Waits until so many spans have come that fit. */
  async received(count: number, fits: (span: ReceivedSpan) => boolean = () => true): Promise<ReceivedSpan[]> {
    const fitting = () => this.spans.filter(fits)
    await until(() => fitting().length >= count)
    return fitting()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  #take(path: string, headers: IncomingHttpHeaders, spans: readonly ReceivedSpan[]): void {
    this.spans.push(...spans)
    this.deliveries.push({ path, headers, spans: spans.length })
  }

  #http(): Server {
    return createHttp((request, response) => {
      const pieces: Buffer[] = []
      request.on('data', (piece: Buffer) => pieces.push(piece))
      request.on('end', () => {
        const raw = Buffer.concat(pieces)
        const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw
        const type = request.headers['content-type'] ?? ''
        if (this.status === 0) return
        if (this.status !== 200) {
          response.writeHead(this.status).end()
          return
        }
        const json = type.startsWith('application/json')
        this.#take(request.url ?? '', request.headers, json ? readJson(body.toString()) : readProtobuf(body))
        response.writeHead(200, { 'content-type': type }).end(json ? '{}' : '')
      })
    })
  }

  #grpc(): Server {
    const server = createHttp2()
    server.on('stream', (stream: ServerHttp2Stream, headers) => {
      const pieces: Buffer[] = []
      stream.on('data', (piece: Buffer) => pieces.push(piece))
      stream.on('error', () => {})
      stream.on('end', () => {
        // One message: whether it is packed, its length, and itself.
        const all = Buffer.concat(pieces)
        const message = all.subarray(5, 5 + all.readUInt32BE(1))
        const body = all[0] === 1 ? gunzipSync(message) : message
        this.#take(headers[':path'] ?? '', headers, readProtobuf(body))
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
        stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
        stream.end(Buffer.alloc(5))
      })
    })
    return server
  }
}
