import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Subject } from './arena.ts'
import { readAnswer, readRequest } from './strict.ts'
import { variants } from './variants.ts'

/** Where a proxy can be made to do wrong. */
export interface Lie {
  /** Changes what a peer is sent for a request; several texts are sent one after the other. */
  readonly request?: (bytes: Buffer) => Buffer
  /** Changes what a client is sent for an answer. */
  readonly answer?: (bytes: Buffer, earlier: Buffer | undefined) => Buffer
  /** Asks the peer so many times. Default 1. */
  readonly asks?: number
  /** Passes what is no request on as it is, instead of refusing it. */
  readonly believes?: boolean
  /** Closes in order after an answer that broke off, as if it were whole. */
  readonly smooths?: boolean
}

const refusal =
  'HTTP/1.1 400 Bad Request\r\nServer: evenkeel\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'

/** A small proxy that serves one request a connection, honestly but for its lie. */
export class LyingProxy implements Subject {
  readonly #server: Server
  readonly #peer: number
  readonly #lie: Lie
  readonly #sockets = new Set<Socket>()
  #earlier: Buffer | undefined = undefined

  constructor(peer: number, lie: Lie) {
    this.#peer = peer
    this.#lie = lie
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      this.#keep(socket)
      void this.#serve(socket)
    })
  }

  static async open(peers: readonly number[], lie: Lie): Promise<LyingProxy> {
    // An arena has peers.
    const proxy = new LyingProxy(peers[0]!, lie)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  port(word: string): number {
    if (!variants.some(({ port }) => port === word)) throw new Error(`no port ${word}`)
    // A server on a port has such an address.
    return (this.#server.address() as AddressInfo).port
  }

  async settle(): Promise<string[]> {
    return []
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => this.#sockets.delete(socket))
  }

  async #serve(client: Socket): Promise<void> {
    const { request: changed, answer: turned, asks = 1, believes = false, smooths = false } = this.#lie
    const bytes = await received(client, (all) => {
      const request = readRequest(all, 0)
      return request !== 'cut' && (!('state' in request) || request.state !== 'cut')
    })
    const request = readRequest(bytes, 0)
    const readable = typeof request === 'object' && 'method' in request && request.state === 'whole'
    if (!readable && !believes) {
      client.end(refusal)
      return
    }
    const method = readable ? request.method : 'GET'
    const own = readable ? bytes.subarray(0, request.end) : bytes
    const sent = changed ? changed(own) : own
    let said: { bytes: Buffer; whole: boolean } | undefined
    for (let left = asks; left > 0; left--) said = await this.#ask(sent, method)
    if (!said) return
    const out = closing(turned ? turned(said.bytes, this.#earlier) : said.bytes)
    this.#earlier = said.bytes
    if (said.whole || smooths) client.end(out)
    else client.write(out, () => client.resetAndDestroy())
  }

  async #ask(bytes: Buffer, method: string): Promise<{ bytes: Buffer; whole: boolean }> {
    const peer = connect({ port: this.#peer, host: '127.0.0.1', noDelay: true })
    this.#keep(peer)
    peer.write(bytes)
    let ended = false
    peer.once('end', () => {
      ended = true
    })
    const all = await received(peer, (sofar) => readAnswer(sofar, 0, method, false, 'open').state === 'whole')
    peer.destroy()
    const answer = readAnswer(all, 0, method, false, ended ? 'fin' : 'open')
    return { bytes: all, whole: answer.state === 'whole' }
  }
}

/** What comes until it is enough, or the other side ends. */
function received(socket: Socket, enough: (bytes: Buffer) => boolean): Promise<Buffer> {
  return new Promise((resolve) => {
    let all: Buffer = Buffer.alloc(0)
    const done = () => {
      socket.removeListener('data', more)
      resolve(all)
    }
    const more = (chunk: Buffer) => {
      all = Buffer.concat([all, chunk])
      if (enough(all)) done()
    }
    socket.on('data', more)
    socket.once('end', done)
    socket.once('close', done)
  })
}

/** Only one request is served. */
function closing(bytes: Buffer): Buffer {
  const text = bytes.toString('latin1')
  const start = text.search(/HTTP\/1\.[01] (?!1)/)
  const line = text.indexOf('\r\n', start) + 2
  if (start < 0 || line < 2) return bytes
  return Buffer.from(`${text.slice(0, line)}Connection: close\r\n${text.slice(line)}`, 'latin1')
}
