import type { ClientHttp2Stream, connect } from 'node:http2'
import type { Socket } from 'node:net'
import { monotonic } from '../feedback/clock.ts'
import { onWhole } from '../feedback/http2-whole.ts'
import { answer, type Mishap, mishap } from './answer.ts'
import { dialSecure } from './dial.ts'
import { HttpAnswer, unsent } from './http-answer.ts'
import { authorityOf, errorName, Http2Link, loadHttp2, ownFields } from './http2-link.ts'
import type { Answer, Asking, Question, Target } from './probe.ts'

/**
 * Asks the same as over HTTP/1.1, of a peer that speaks HTTP/2: inside of TLS it has to choose it, without TLS it has to
 * know.
 */
export async function askHttp2(
  { address }: Target,
  question: Question,
  maxBody: number,
  { signal }: Asking,
): Promise<Answer> {
  const { connect } = await loadHttp2()
  const startedAt = monotonic()
  const { secure, connectTimeout } = question
  const socket = await dialSecure(address, signal, connectTimeout, secure)
  if ('failure' in socket) return answer(startedAt, socket)
  if (secure !== undefined && !choseHttp2(socket)) {
    socket.destroy()
    return answer(startedAt, mishap('error', 'tls', 'peer does not choose HTTP/2'))
  }
  const scheme = secure ? 'https' : 'http'
  const exchange = new Exchange(startedAt, connect, socket, scheme, question.maxHead, maxBody)
  const abort = () => exchange.abort()
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    exchange.ask(fieldsOf(question, scheme, authorityOf(address)))
    return await exchange.answer.whole
  } finally {
    signal.removeEventListener('abort', abort)
    exchange.destroy()
  }
}

function choseHttp2(socket: Socket): boolean {
  return 'alpnProtocol' in socket && socket.alpnProtocol === 'h2'
}

/** Fields that HTTP/2 says in another way, or has no use for. */
const renamed: ReadonlySet<string> = new Set(['host', 'http2-settings'])

const invalidValue = /[\r\n\0]/

/**
 * The request as HTTP/2 has it.
 * @param host whom it is for where it names nobody
 * @returns why it cannot be sent, where that is so
 */
function fieldsOf({ method, target, headers }: Question, scheme: string, host: string): string[] | Mishap {
  let authority = ''
  const fields: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!.toLowerCase()
    const value = headers[i + 1]!.trim()
    // The library would send it, and its peer not answer.
    if (name === '') return mishap('error', 'unreachable', 'invalid request: header without a name', true)
    if (invalidValue.test(value)) return mishap('error', 'unreachable', `invalid ${headers[i]} header`, true)
    if (name === 'host') authority = value
    // Of TE there is one word left (RFC 9113 section 8.2.2).
    if (unsent.has(name) || renamed.has(name) || (name === 'te' && value !== 'trailers')) continue
    fields.push(name, value)
  }
  const pseudo = [':method', method, ':scheme', scheme, ':path', target, ':authority', authority || host]
  return [...pseudo, ...fields]
}

/** One request and its answer. */
class Exchange {
  readonly answer: HttpAnswer
  #link: Http2Link
  #maxHead: number
  #trailers: readonly string[] = []
  /** The peer has said that its answer is whole. */
  #whole = false

  constructor(
    startedAt: number,
    open: typeof connect,
    socket: Socket,
    scheme: 'http' | 'https',
    maxHead: number,
    maxBody: number,
  ) {
    this.#maxHead = maxHead
    this.answer = new HttpAnswer(startedAt, monotonic() - startedAt, maxBody)
    this.#link = new Http2Link(open, socket, scheme, (error) => this.answer.lost(this.#link.mishap(error)))
  }

  /** The time is over. */
  abort(): void {
    this.answer.late(this.#link.settled ? 'header' : 'SETTINGS')
  }

  ask(fields: string[] | Mishap): void {
    // A session that has ended already says so by its own events.
    if ('failure' in fields) this.answer.end(fields)
    else if (!this.#link.ended) this.#send(fields)
  }

  destroy(): void {
    this.#link.destroy()
  }

  #send(fields: string[]): void {
    let stream: ClientHttp2Stream
    try {
      stream = this.#link.request(fields, true)
    } catch (error) {
      // The library's word on a field or a method that cannot be sent; its peer has not been asked.
      this.answer.end(mishap('error', 'unreachable', `invalid request: ${(error as Error).message}`, true))
      return
    }
    this.#hear(stream)
  }

  #hear(stream: ClientHttp2Stream): void {
    onWhole(stream, () => {
      this.#whole = true
    })
    // Interim answers have events of their own.
    stream.on('response', (headers, _flags, raw) => this.#head(headers[':status'] ?? 0, ownFields(raw)))
    stream.on('data', (piece: Buffer) => {
      if (this.answer.data(piece)) this.answer.end({})
    })
    stream.on('trailers', (_trailers, _flags, raw) => {
      this.#trailers = ownFields(raw)
    })
    stream.on('end', () => {
      if (this.#whole && stream.rstCode === 0) this.answer.end({ trailers: this.#trailers })
    })
    stream.on('error', (error) => this.#broken(stream, error))
    stream.on('close', () => this.#broken(stream, undefined))
  }

  #head(status: number, headers: readonly string[]): void {
    if (status < 200 || status > 599) {
      this.answer.end(mishap('invalid_header', 'invalid_header', 'invalid status'))
    } else if (lengthOf(headers) > this.#maxHead) {
      this.answer.end(mishap('invalid_header', 'header_overflow', 'response head is too large'))
    } else if (this.answer.head(status, headers)) {
      // What is wanted has been read: the rest stays where it is.
      this.answer.end({})
    }
  }

  /** The stream has ended before its answer was whole, or with it. */
  #broken(stream: ClientHttp2Stream, error: Error | undefined): void {
    // What ended the whole connection says more than that this stream ended with it.
    if (this.#link.ended) return
    const { rstCode = 0 } = stream
    // The library itself ends a stream so whose head is none, or whose body has not the length that its head said.
    const breach = rstCode === 1 && !this.answer.begun
    const how: Mishap = breach
      ? mishap('invalid_header', 'invalid_header', 'stream ended by PROTOCOL_ERROR')
      : rstCode === 0 && error === undefined
        ? mishap('error', 'closed', 'stream ended without an answer')
        : mishap('error', 'reset', `RST_STREAM ${errorName(rstCode)}`)
    this.answer.lost(this.#link.goingAway && !this.answer.begun ? this.#link.mishap(error) : how)
  }
}

/** How long a head would be as text, bytes. @param flat names and values in turn */
function lengthOf(flat: readonly string[]): number {
  let length = 0
  for (let i = 0; i < flat.length; i += 2) length += flat[i]!.length + flat[i + 1]!.length + 4
  return length
}
