import type { Socket } from 'node:net'
import type { OutgoingResponse } from '../client-side.ts'
import { ResponseLife } from '../response-life.ts'
import type { ClientHead } from './request-head.ts'

/** Up to this many bytes head and body go out as one text: the socket then needs no memory of its own for them. */
const inOneText = 8192

/** Told when a response is over. */
export interface ResponseEnd {
  /** All of it has been handed to the system, or the connection has closed first. */
  over(response: ClientResponse): void
}

/** The response to a client's request, framed as its protocol wants it. */
export class ClientResponse extends ResponseLife implements OutgoingResponse {
  /** Whether it is the connection's last. Set before `writeHead`. */
  last: boolean
  /** Whether the body goes in chunks. */
  #chunked = false
  /** Whether the length of the body was announced. */
  #counted = false
  readonly #socket: Socket
  readonly #head: ClientHead
  readonly #end: ResponseEnd
  /** Whether no body may follow the head. */
  #bodyless = false
  /** What waits to go out with what comes next. */
  #pending = ''
  #held = false

  constructor(socket: Socket, head: ClientHead, end: ResponseEnd) {
    super()
    this.#socket = socket
    this.#head = head
    this.#end = end
    this.last = !head.persistent || head.upgrade
  }

  /** Bytes that the system has not taken yet. */
  get backlog(): number {
    return this.#socket.writableLength + this.#pending.length
  }

  /** Whether it is the end of the connection that tells the end of its body. */
  get untilClose(): boolean {
    return this.headersSent && !this.#chunked && !this.#counted && !this.#bodyless
  }

  /** Sends an interim response. */
  interim(status: number, phrase: string, headers: readonly string[]): void {
    if (this.headersSent || this.closed) return
    let text = `HTTP/1.1 ${status} ${phrase}\r\n`
    for (let i = 0; i < headers.length; i += 2) text += `${headers[i]!}: ${headers[i + 1]!}\r\n`
    this.#send(`${text}\r\n`)
  }

  /**
   * Makes the head, which goes out with the first of the body, or by `flush`.
   * @param headers names and values in turn, without `Connection` and `Transfer-Encoding`
   */
  writeHead(status: number, phrase: string, headers: readonly string[]): void {
    const { version, method } = this.#head
    const empty = status === 204 || status < 200
    this.headersSent = true
    this.#bodyless = empty || status === 304 || method === 'HEAD'
    let text = `HTTP/1.1 ${status} ${phrase}\r\n`
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i]!
      if (name.length === 14 && name.toLowerCase() === 'content-length') {
        // RFC 9110 section 8.6.
        if (empty) continue
        this.#counted = true
      }
      text += `${name}: ${headers[i + 1]!}\r\n`
    }
    if (!this.#bodyless && !this.#counted) {
      // Without a length and without chunks only the connection's end can tell the body's.
      if (version === '1.1') this.#chunked = true
      else this.last = true
    }
    text += this.last ? 'Connection: close\r\n' : 'Connection: keep-alive\r\n'
    this.#pending += this.#chunked ? `${text}Transfer-Encoding: chunked\r\n\r\n` : `${text}\r\n`
  }

  /** From now on what is written is kept together, until `release`, where it is little. */
  hold(): void {
    this.#held = true
  }

  release(): void {
    this.#held = false
    this.flush()
  }

  /** Sends what waits to go out. */
  flush(): void {
    if (this.#pending === '' || this.#held) return
    const text = this.#pending
    this.#pending = ''
    this.#send(text)
  }

  /** @returns false when no more should be written until the writer is told that it has `drained` */
  write(chunk: Buffer): boolean {
    if (this.#bodyless || this.closed || this.ended || chunk.length === 0) return true
    const before = this.#chunked ? `${chunk.length.toString(16)}\r\n` : ''
    const after = this.#chunked ? '\r\n' : ''
    const pending = this.#pending + before
    if (pending.length + chunk.length <= inOneText && (pending !== '' || this.#held)) {
      this.#pending = pending + chunk.toString('latin1') + after
      this.flush()
      return !this.#socket.writableNeedDrain
    }
    this.#pending = ''
    if (pending === '' && after === '') return this.#send(chunk)
    this.#socket.cork()
    if (pending !== '') this.#send(pending)
    this.#send(chunk)
    if (after !== '') this.#send(after)
    this.#socket.uncork()
    return !this.#socket.writableNeedDrain
  }

  /**
   * The response is whole.
   * @param trailers names and values in turn, for a body in chunks
   */
  end(trailers?: readonly string[]): void {
    if (this.ended || this.closed) return
    if (this.#chunked) {
      let text = '0\r\n'
      if (trailers) {
        for (let i = 0; i < trailers.length; i += 2) text += `${trailers[i]!}: ${trailers[i + 1]!}\r\n`
      }
      this.#pending += `${text}\r\n`
    }
    this.ended = true
    this.#held = false
    this.flush()
    this.#settle()
  }

  protected over(): void {
    this.#pending = ''
    this.#end.over(this)
  }

  #settle(): void {
    if (this.closed) return
    if (this.#socket.writableLength > 0) {
      // An empty write is called back after all before it, whether or not `drain` will be told of.
      this.#socket.write('', (error) => {
        // What a connection takes with it as it breaks has not been handed to anybody.
        if (!error && this.#socket.writableLength === 0) this.#settle()
      })
      return
    }
    this.finish()
  }

  #send(data: string | Buffer): boolean {
    // After a refusal the connection is being closed: nothing of a late answer may follow it.
    if (!this.#socket.writable) return false
    this.bytes += data.length
    return typeof data === 'string' ? this.#socket.write(data, 'latin1') : this.#socket.write(data)
  }
}
