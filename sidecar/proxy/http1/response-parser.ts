import { BodyDecoder } from './body-decoder.ts'
import { bareLineFeed } from './fields.ts'
import { type HeadContext, type HeadFault, type ResponseHead, readHead } from './head.ts'

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

/** Interim responses before a final one. */
const mostInterims = 32

const noContext: HeadContext = { method: 'GET', upgrade: false }

/**
 * Reads HTTP/1.1 responses off a connection, one at a time: `begin` before each, then `feed`. Strict where a
 * lenient reading could be taken for another message (RFC 9112 sections 6 and 7).
 */
export class ResponseParser {
  /** Bytes that came after the end of the message: of a tunnel after 101, else a reason to distrust the peer. */
  rest: Buffer | undefined = undefined
  readonly #nobody: ResponseEvents
  #events: ResponseEvents
  #context: HeadContext = noContext
  #maxHead = 0
  #state: 'head' | 'body' | 'done' = 'done'
  readonly #body = new BodyDecoder()
  /** An unfinished head. */
  #held: Buffer | undefined = undefined
  #interims = 0

  /** @param nobody listens between two responses */
  constructor(nobody: ResponseEvents) {
    this.#nobody = nobody
    this.#events = nobody
  }

  /** Makes ready for the response to a request. `maxHead`: most bytes of head, interim ones each. */
  begin(events: ResponseEvents, context: HeadContext, maxHead: number): void {
    this.#events = events
    this.#context = context
    this.#maxHead = maxHead
    this.#state = 'head'
    this.#held = undefined
    this.#interims = 0
    this.rest = undefined
  }

  /** Forgets whom it has told: a connection at rest holds nothing of its last request. */
  forget(): void {
    this.#events = this.#nobody
    this.#context = noContext
    this.#body.begin('none', 0)
  }

  /** Whether the message is complete. */
  get done(): boolean {
    return this.#state === 'done'
  }

  /** Whether any byte of the response has come. */
  get began(): boolean {
    return this.#state !== 'head' || this.#held !== undefined || this.#interims > 0
  }

  /**
   * Takes what came.
   * @returns undefined while all is well; a fault ends the connection
   */
  feed(chunk: Buffer): HeadFault | undefined {
    const body = this.#body
    let at = 0
    while (at < chunk.length) {
      if (this.#state === 'body') {
        at = body.next(chunk, at)
        if (at < 0) return { reason: 'body_cut', detail: body.fault }
        const part = body.take()
        if (part) this.#events.data(part)
        if (body.done) this.#finish(body.trailers)
      } else if (this.#state === 'head') {
        const next = this.#head(chunk, at)
        if (typeof next !== 'number') return next
        at = next
      } else {
        this.rest = at === 0 ? chunk : chunk.subarray(at)
        return undefined
      }
    }
    return undefined
  }

  /**
   * The peer closed its side.
   * @returns whether that ended the message well: a body that ends with the connection
   */
  close(): boolean {
    if (this.#state !== 'body' || !this.#body.untilClose) return false
    this.#finish(undefined)
    return true
  }

  #finish(trailers: string[] | undefined): void {
    this.#state = 'done'
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
      if (!'HTTP/1.'.startsWith(start) || bareLineFeed(all, 0)) {
        return { reason: 'invalid_header', detail: 'invalid status line' }
      }
      this.#held = all
      return chunk.length
    }
    this.#held = undefined
    const head = readHead(all.toString('latin1', 0, end), this.#context)
    if ('detail' in head) return head
    const at = from + end + 4 - before
    if (head.status < 200 && head.status !== 101) {
      this.#interims += 1
      if (this.#interims > mostInterims) {
        return { reason: 'invalid_header', detail: 'too many interim responses' }
      }
      this.#events.interim(head.status, head.headers)
      return at
    }
    this.#body.begin(head.framing, head.bodyLength)
    this.#state = this.#body.done ? 'done' : 'body'
    this.#events.head(head)
    if (this.#state === 'done') this.#finish(undefined)
    return at
  }
}
