import { connect, type Socket } from 'node:net'
import type { Ask } from './proxies-scenarios.ts'

const headEnd = Buffer.from('\r\n\r\n')
const ok = Buffer.from('HTTP/1.1 200 ')

/** One for all connections: what was read is looked at before the next reading. */
const buffer = Buffer.allocUnsafe(256 * 1024)

export interface Owner {
  /** The answer came whole. */
  done(client: Client): void
  /** Something came that is not the answer, or nothing will come any more. */
  failed(error: Error): void
}

/** A connection to a proxy with one request at a time. Looks at status and length of every answer. */
export class Client {
  /** When the request in progress was sent, or was due. */
  since = 0
  owner: Owner
  readonly #ask: Ask
  readonly #socket: Socket
  /** Bytes of the answer that are still to come; 0 while its head is not whole. */
  #left = 0
  #waiting = false
  #tunnel = false
  #opened: (() => void) | undefined
  /** What came of a head so far. */
  #before: Buffer | undefined

  /** @param opened is told when requests may be sent */
  constructor(port: number, ask: Ask, owner: Owner, opened: () => void) {
    this.owner = owner
    this.#ask = ask
    this.#opened = opened
    this.#socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer,
        callback: (length) => {
          this.#data(buffer.subarray(0, length))
          return true
        },
      },
    })
    this.#socket.once('connect', () => {
      if (ask.opening) this.#socket.write(ask.opening)
      else this.#open()
    })
    this.#socket.on('error', (error) => this.owner.failed(error))
    this.#socket.on('end', () => this.owner.failed(new Error('the proxy closed a connection')))
  }

  send(since: number): void {
    this.since = since
    this.#waiting = true
    this.#socket.write(this.#ask.request)
  }

  close(): void {
    this.owner = { done() {}, failed() {} }
    this.#socket.destroy()
  }

  #open(): void {
    this.#opened?.()
    this.#opened = undefined
  }

  #data(chunk: Buffer): void {
    if (this.#left > 0) this.#take(chunk.length)
    else if (this.#tunnel) {
      this.#left = this.#ask.length
      this.#take(chunk.length)
    } else this.#head(chunk)
  }

  #fail(text: string): void {
    this.owner.failed(new Error(text))
  }

  #head(chunk: Buffer): void {
    const text = this.#before ? Buffer.concat([this.#before, chunk]) : chunk
    const end = text.indexOf(headEnd)
    if (end < 0) {
      this.#before = Buffer.from(text)
      return
    }
    this.#before = undefined
    const rest = text.length - end - headEnd.length
    if (this.#ask.opening) this.#switched(text, rest)
    else if (ok.compare(text, 0, ok.length) !== 0) this.#fail(`an answer that begins ${start(text)}`)
    else {
      // The peer's length has to be said as it is: then counting bytes finds where the next answer begins.
      const length = contentLength(text.subarray(0, end + 2))
      this.#left = this.#ask.length
      if (length === this.#ask.length) this.#take(rest)
      else this.#fail(`an answer of ${length} bytes`)
    }
  }

  #switched(text: Buffer, rest: number): void {
    if (!text.toString('latin1', 0, 13).startsWith('HTTP/1.1 101 ') || rest > 0) {
      this.#fail(`no tunnel, but ${start(text)}`)
      return
    }
    this.#tunnel = true
    this.#open()
  }

  #take(length: number): void {
    if (!this.#waiting || length > this.#left) {
      this.#fail(`more bytes than the answer has: ${length} when ${this.#left} are due`)
      return
    }
    this.#left -= length
    if (this.#left > 0) return
    this.#waiting = false
    this.owner.done(this)
  }
}

function start(text: Buffer): string {
  return JSON.stringify(text.toString('latin1', 0, 40))
}

const names = [Buffer.from('\r\nContent-Length: '), Buffer.from('\r\ncontent-length: ')]

/** @returns NaN where it is not said */
function contentLength(head: Buffer): number {
  for (const name of names) {
    let at = head.indexOf(name)
    if (at < 0) continue
    let length = 0
    for (at += name.length; head[at] !== 0x0d; at++) length = length * 10 + (head[at] ?? Number.NaN) - 0x30
    return length
  }
  return Number.NaN
}
