import { type HeadContext, type HeadFault, type ResponseHead, readHead, readTrailers } from './head.ts'

/** What a parser tells as a response comes in. All calls happen inside `feed`. */
export interface ResponseEvents {
  /** A 1xx other than 101. */
  interim(status: number, headers: string[]): void
  head(head: ResponseHead): void
  /** A part of the body, without framing. The buffer is not used again. */
  data(chunk: Buffer): void
  /** The message is complete. `trailers` holds names and values in turn; undefined when there were none. */
  end(trailers: string[] | undefined): void
}

const states = { head: 0, length: 1, close: 2, chunkSize: 3, chunkData: 4, chunkEnd: 5, trailers: 6, done: 7 }

/** Longest chunk-size line (extensions included) and longest trailer section, bytes. */
const maxChunkLine = 4096
const maxTrailers = 16384

/**
 * Reads HTTP/1.1 responses off a connection, one at a time: `begin` before each, then `feed`. Strict where a
 * lenient reading could be taken for another message (RFC 9112 sections 6 and 7).
 */
export class ResponseParser {
  /** Bytes that came after the end of the message: of a tunnel after 101, else a reason to distrust the peer. */
  rest: Buffer | undefined = undefined
  #events: ResponseEvents
  #context: HeadContext = { method: 'GET', upgrade: false }
  #maxHead = 0
  #state = states.done
  #left = 0
  /** Unfinished head or line. */
  #held: Buffer | undefined = undefined
  #trailer = ''
  #interims = 0

  constructor(events: ResponseEvents) {
    this.#events = events
  }

  /** Makes ready for the response to a request. `maxHead`: most bytes of head, interim ones each. */
  begin(events: ResponseEvents, context: HeadContext, maxHead: number): void {
    this.#events = events
    this.#context = context
    this.#maxHead = maxHead
    this.#state = states.head
    this.#held = undefined
    this.#trailer = ''
    this.#interims = 0
    this.rest = undefined
  }

  /** Whether the message is complete. */
  get done(): boolean {
    return this.#state === states.done
  }

  /** Whether any byte of the response has come. */
  get began(): boolean {
    return this.#state !== states.head || this.#held !== undefined || this.#interims > 0
  }

  /**
   * Takes what came.
   * @returns undefined while all is well; a fault ends the connection
   */
  feed(chunk: Buffer): HeadFault | undefined {
    let at = 0
    while (at < chunk.length) {
      if (this.#state === states.length) {
        const part = at === 0 && chunk.length <= this.#left ? chunk : chunk.subarray(at, at + this.#left)
        at += part.length
        this.#left -= part.length
        this.#events.data(part)
        if (this.#left === 0) this.#finish(undefined)
      } else if (this.#state === states.close) {
        this.#events.data(at === 0 ? chunk : chunk.subarray(at))
        return undefined
      } else if (this.#state === states.chunkData) {
        const part = chunk.subarray(at, at + this.#left)
        at += part.length
        this.#left -= part.length
        this.#events.data(part)
        if (this.#left === 0) this.#state = states.chunkEnd
      } else if (this.#state === states.done) {
        this.rest = at === 0 ? chunk : chunk.subarray(at)
        return undefined
      } else {
        const next = this.#state === states.head ? this.#head(chunk, at) : this.#line(chunk, at)
        if (typeof next !== 'number') return next
        at = next
      }
    }
    return undefined
  }

  /**
   * The peer closed its side.
   * @returns whether that ended the message well: a body that ends with the connection
   */
  close(): boolean {
    if (this.#state !== states.close) return false
    this.#finish(undefined)
    return true
  }

  #finish(trailers: string[] | undefined): void {
    this.#state = states.done
    this.#events.end(trailers)
  }

  /** @returns where to go on in the chunk, or a fault */
  #head(chunk: Buffer, from: number): number | HeadFault {
    const fresh = from === 0 ? chunk : chunk.subarray(from)
    const before = this.#held?.length ?? 0
    const all = this.#held ? Buffer.concat([this.#held, fresh]) : fresh
    // The empty line may straddle the chunks: look from three bytes before the join.
    const end = all.indexOf('\r\n\r\n', Math.max(0, before - 3), 'latin1')
    if (end > this.#maxHead || (end < 0 && all.length > this.#maxHead)) {
      return { reason: 'header_overflow', detail: 'header larger than proxy_buffer_size' }
    }
    if (end < 0) {
      // What cannot become a status line is refused at once instead of waited for.
      const start = all.toString('latin1', 0, 7)
      if (!'HTTP/1.'.startsWith(start)) return { reason: 'invalid_header', detail: 'invalid status line' }
      this.#held = all
      return chunk.length
    }
    this.#held = undefined
    const head = readHead(all.toString('latin1', 0, end), this.#context)
    if ('detail' in head) return head
    const at = from + end + 4 - before
    if (head.status < 200 && head.status !== 101) {
      this.#interims += 1
      if (this.#interims > 32) return { reason: 'invalid_header', detail: 'too many interim responses' }
      this.#events.interim(head.status, head.headers)
      return at
    }
    this.#left = head.bodyLength
    this.#state =
      head.framing === 'length'
        ? states.length
        : head.framing === 'chunked'
          ? states.chunkSize
          : head.framing === 'close'
            ? states.close
            : states.done
    this.#events.head(head)
    if (this.#state === states.done) this.#finish(undefined)
    return at
  }

  /** Reads a line of chunked framing: a size, the end of a chunk, or a trailer. */
  #line(chunk: Buffer, from: number): number | HeadFault {
    const newline = chunk.indexOf(10, from)
    const part = chunk.subarray(from, newline < 0 ? chunk.length : newline + 1)
    const held = this.#held
    const all = held ? Buffer.concat([held, part]) : part
    if (all.length > maxChunkLine) return body('chunk line too long')
    if (newline < 0) {
      this.#held = all
      return chunk.length
    }
    this.#held = undefined
    if (all.length < 2 || all[all.length - 2] !== 13) return body('bare line feed in chunked body')
    const line = all.toString('latin1', 0, all.length - 2)
    const fault = this.#chunkLine(line)
    return fault ?? newline + 1
  }

  #chunkLine(line: string): HeadFault | undefined {
    if (this.#state === states.chunkEnd) {
      if (line !== '') return body('chunk longer than its size')
      this.#state = states.chunkSize
      return undefined
    }
    if (this.#state === states.chunkSize) {
      const size = /^([0-9a-fA-F]{1,12})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?$/.exec(line)
      if (!size) return body('invalid chunk size')
      this.#left = Number.parseInt(size[1]!, 16)
      this.#state = this.#left === 0 ? states.trailers : states.chunkData
      return undefined
    }
    if (line !== '') {
      this.#trailer += this.#trailer === '' ? line : `\r\n${line}`
      return this.#trailer.length > maxTrailers ? body('trailers too long') : undefined
    }
    const trailers = this.#trailer === '' ? undefined : readTrailers(this.#trailer)
    if (this.#trailer !== '' && !trailers) return body('invalid trailer')
    this.#finish(trailers)
    return undefined
  }
}

function body(detail: string): HeadFault {
  return { reason: 'body_cut', detail }
}
