import { createServer, type Server, type Socket } from 'node:net'
import { acceptKey } from '../support/client.ts'
import { preface } from '../support/http2-frames.ts'
import { Calls } from './proxies-calls.ts'
import { asks, postLength, unmasked } from './proxies-scenarios.ts'

/*
 * A peer that costs little: answers are bytes made beforehand, and requests are looked at no closer than is needed
 * to know that they came whole.
 */

const date = 'Date: Mon, 01 Jan 2024 00:00:00 GMT\r\n'

function answer(body: Buffer): Buffer {
  const head = `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n${date}\r\n`
  return Buffer.concat([Buffer.from(head), body])
}

const small = answer(Buffer.from('hello\n'))
const body100k = answer(Buffer.alloc(asks.body100k.length, 'h'))
const body10m = answer(Buffer.alloc(asks.body10m.length, 'm'))
const bad = Buffer.from(`HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n${date}\r\n`)
/** To a key, which not every proxy passes on as it is (RFC 6455, section 4.2.2). */
function switching(key: string): string {
  return `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptKey(key)}\r\n\r\n`
}

const headEnd = Buffer.from('\r\n\r\n')
const chunksEnd = Buffer.from('0\r\n\r\n')

class Connection {
  readonly #socket: Socket
  /** What came of a head, or of a body whose length is not said, so far. */
  #before: Buffer = Buffer.alloc(0)
  /** Bytes of a body that are still to come; -1: it ends with the last chunk. */
  #left = 0
  /** Bytes of a message that came so far; undefined before there is a tunnel. */
  #message: number | undefined
  /** Undefined where HTTP/1.1 is spoken. */
  #calls: Calls | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    // Without an encoding it is bytes that come.
    socket.on('data', (chunk) => this.#data(chunk as Buffer))
    // A proxy that is killed resets its connections.
    socket.on('error', () => {})
  }

  #data(chunk: Buffer): void {
    if (this.#calls !== undefined) this.#calls.take(chunk)
    else if (this.#message !== undefined) this.#echo(chunk.length)
    else if (this.#left > 0) this.#body(chunk.length)
    else if (this.#left < 0) this.#chunks(chunk)
    else this.#head(this.#before.length === 0 ? chunk : Buffer.concat([this.#before, chunk]))
  }

  #head(text: Buffer): void {
    const end = text.indexOf(headEnd)
    if (end < 0) {
      this.#before = text
      return
    }
    if (text.indexOf(preface) === 0) {
      this.#calls = new Calls(this.#socket)
      this.#calls.take(text.subarray(preface.length))
      return
    }
    this.#before = Buffer.alloc(0)
    const rest = text.length - end - headEnd.length
    // The letter after the slash of the target.
    const letter = String.fromCharCode(text[text.indexOf('/') + 1] ?? 0)
    if (letter === 's') this.#socket.write(small)
    else if (text[0] === 0x50) this.#post(text, end, rest)
    else if (letter === 'w') {
      this.#message = 0
      const key = /\r\nsec-websocket-key: *(\S+)/i.exec(text.toString('latin1', 0, end))?.[1]
      this.#socket.write(switching(key ?? ''))
    } else if (text.includes('/100k ')) this.#socket.write(body100k)
    else if (text.includes('/10m ')) this.#socket.write(body10m)
    else this.#socket.write(bad)
  }

  #post(text: Buffer, end: number, rest: number): void {
    const length = /\r\ncontent-length: *(\d+)/i.exec(text.toString('latin1', 0, end))?.[1]
    if (length === undefined) {
      this.#left = -1
      this.#chunks(text.subarray(end + headEnd.length))
    } else if (Number(length) === postLength) {
      this.#left = postLength
      this.#body(rest)
    } else this.#socket.write(bad)
  }

  #body(length: number): void {
    this.#left -= length
    if (this.#left === 0) this.#socket.write(small)
  }

  #chunks(chunk: Buffer): void {
    this.#before = Buffer.concat([this.#before, chunk])
    if (!this.#before.subarray(-chunksEnd.length).equals(chunksEnd)) return
    const whole = this.#before.length >= postLength
    this.#before = Buffer.alloc(0)
    this.#left = 0
    this.#socket.write(whole ? small : bad)
  }

  /** All messages are one message: only how much came decides when to answer. */
  #echo(length: number): void {
    this.#message = (this.#message ?? 0) + length
    while (this.#message >= asks.websocket.request.length) {
      this.#message -= asks.websocket.request.length
      this.#socket.write(unmasked)
    }
  }
}

/** @returns a server that listens on a free port of the loopback address */
export function startPeer(): Promise<{ server: Server; port: number }> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => new Connection(socket))
    server.once('error', reject)
    server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
      const address = server.address()
      if (typeof address === 'object' && address) resolve({ server, port: address.port })
    })
  })
}
