import type { Socket } from 'node:net'
import type { Dispatcher } from 'undici'
import { monotonic } from '../feedback/clock.ts'
import { Type } from '../feedback/schema-type.ts'
import { answer, brokenMishap, type Mishap, mishap } from './answer.ts'
import { connectInterval, dialSecure } from './dial.ts'
import { HttpAnswer, unsent } from './http-answer.ts'
import { askHttp2 } from './http2.ts'
import { loadHttp2 } from './http2-link.ts'
import type { Answer, Asking, ProbeKind, Question, Target } from './probe.ts'
import { sizeOf } from './size.ts'

const args = Type.Object(
  {
    http_version: Type.Optional(
      Type.Enum(['1.1', '2'], { description: 'which HTTP is spoken; that of the location unless given' }),
    ),
    max_body: Type.Optional(
      Type.String({ format: 'size', description: 'how much of the body is read; 256k unless given' }),
    ),
  },
  { additionalProperties: false },
)

export const http = {
  name: 'http',
  summary: "Sends the location's request on a fresh connection and judges the answer.",
  args,
  http: true,
  leastInterval: connectInterval,
  async caveat({ http_version }) {
    // So that the first probe's time is the peer's and not the library's.
    await (http_version === '2' ? loadHttp2() : load())
    return undefined
  },
  async check(target, { max_body = '256k', http_version }, asking) {
    const { question } = asking
    if (!question) throw new Error(`probe of "${target.name}" has no request to send`)
    const byVersion = http_version === '2' ? askHttp2 : ask
    return byVersion(target, question, sizeOf(max_body), asking)
  },
} as const satisfies ProbeKind<typeof args>

/** The library takes 25 MB and a tenth of a second: only programs that ask over HTTP have it. */
function load() {
  return import('undici')
}

async function ask(
  { address }: Target,
  question: Question,
  maxBody: number,
  { signal }: Asking,
): Promise<Answer> {
  const { Client } = await load()
  const startedAt = monotonic()
  const socket = await dialSecure(address, signal, question.connectTimeout, question.secure)
  if ('failure' in socket) return answer(startedAt, socket)
  const connectMs = monotonic() - startedAt
  let used = false
  // The origin is only a form: the connection is there, and so is the request's Host.
  const client = new Client('http://localhost', {
    connect(_options, done) {
      // The library would ask again on another connection where it holds that to be safe.
      if (used) return done(new Error('one connection a probe'), null)
      used = true
      queueMicrotask(() => done(null, socket))
    },
    maxHeaderSize: question.maxHead,
    // The probe's own time-out holds over all.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  try {
    const reading = new Reading(startedAt, connectMs, socket, maxBody)
    client.dispatch(request(question), reading)
    const abort = () => reading.answer.late('header')
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    try {
      return await reading.answer.whole
    } finally {
      signal.removeEventListener('abort', abort)
    }
  } finally {
    socket.destroy()
    await client.destroy()
  }
}

function request({ method, target, headers }: Question): Dispatcher.DispatchOptions {
  const sent: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    if (!unsent.has(headers[i]!.toLowerCase())) sent.push(headers[i]!, headers[i + 1]!)
  }
  return { method, path: target, headers: sent, reset: true }
}

/** Reads one response, as much of it as is wanted. */
class Reading implements Dispatcher.DispatchHandler {
  readonly answer: HttpAnswer
  /** What broke the connection: the library takes a reset for the end of a body that has no length. */
  #broken: Error | undefined = undefined

  constructor(startedAt: number, connectMs: number, socket: Socket, maxBody: number) {
    this.answer = new HttpAnswer(startedAt, connectMs, maxBody)
    socket.on('error', (error) => {
      this.#broken = error
    })
  }

  onRequestStart(): void {}

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (status < 200) return
    if (this.answer.head(status, texts(controller.rawHeaders))) this.#cut(controller)
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (this.answer.data(piece)) this.#cut(controller)
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (this.#broken) this.answer.end(mishap('error', 'body_cut', this.#broken.message))
    else this.answer.end({ trailers: texts(controller.rawTrailers) })
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.answer.end(this.answer.begun ? mishap('error', 'body_cut', error.message) : headMishap(error))
  }

  /** What is wanted has been read: the rest stays where it is. */
  #cut(controller: Dispatcher.DispatchController): void {
    this.answer.end({})
    controller.abort(new Error('enough was read'))
  }
}

/** Why no acceptable header came, in the library's words. */
function headMishap(error: NodeJS.ErrnoException): Mishap {
  const { code = '', name, message } = error
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return mishap('invalid_header', 'header_overflow', message)
  // What the parser refuses, lengths that contradict each other, `100 Continue` and `101` for which nobody asked.
  if (
    name === 'HTTPParserError' ||
    code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH' ||
    /^bad (response|upgrade)$/.test(message)
  ) {
    return mishap('invalid_header', 'invalid_header', message)
  }
  // It does not send such a request: the configuration's fault.
  if (code === 'UND_ERR_INVALID_ARG') return mishap('error', 'unreachable', message, true)
  return brokenMishap(code === 'UND_ERR_SOCKET' ? undefined : error)
}

function texts(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  if (!Array.isArray(raw)) return []
  return raw.map((text) => (typeof text === 'string' ? text : Buffer.from(text).toString('latin1')))
}
