import {
  type Field,
  framing,
  readChunks,
  readLength,
  readLines,
  type State,
  token,
  values,
  words,
} from './strict-parts.ts'

/**
 * Reads HTTP/1.1 as strictly as RFC 9112 allows it, and shares nothing with the program: what is whole here can be read
 * in one way only. Text is latin1, one character a byte.
 */

export interface StrictRequest {
  /** `broken` and `cut` speak of the body: a head that is either makes no request. */
  readonly state: State
  /** What breaks the body. */
  readonly why: string
  readonly method: string
  readonly target: string
  readonly version: '1.0' | '1.1'
  readonly fields: readonly Field[]
  /** What of it is well framed. */
  readonly body: Buffer
  /** The client expects its connection to end with the answer: what follows is no request. */
  readonly last: boolean
  /** It asks to switch protocols: what follows may be anything. */
  readonly upgrade: boolean
  /** Where its head ends in the bytes, and where it ends as a whole. */
  readonly headEnd: number
  readonly end: number
}

/** Requests off one connection. */
export interface RequestStream {
  readonly requests: readonly StrictRequest[]
  /** What is behind them: nothing, the beginning of one more, or something that is no request. */
  readonly rest: 'none' | 'cut' | 'broken' | 'ignored'
  readonly why: string
  /** Where the rest begins. */
  readonly at: number
}

export interface StrictAnswer {
  readonly state: State
  readonly why: string
  /** Interim ones that came before. */
  readonly interim: readonly { readonly status: number; readonly fields: readonly Field[] }[]
  /** 0 where no final head came. */
  readonly status: number
  readonly version: '1.0' | '1.1'
  readonly fields: readonly Field[]
  readonly framing: 'none' | 'length' | 'chunked' | 'close'
  readonly body: Buffer
  readonly trailers: readonly Field[]
  /** The connection ends with it. */
  readonly last: boolean
  readonly end: number
}

/** How the bytes end: more may come, or the sender has ended them in order or not. */
export type Ended = 'open' | 'fin' | 'reset'

// Bytes above ASCII stand for themselves in a name that is not written in ASCII, as web servers take them.
const hostText = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9\-._~!$&'()*+,;=%\x80-\xff]*)(?::[0-9]*)?$/
const targetText = /^[\x21-\x7e\x80-\xff]+$/
const empty = Buffer.alloc(0)

/** @returns a request; `cut` where its head is not there yet; a text that says why it is none */
export function readRequest(bytes: Buffer, from: number): StrictRequest | 'cut' | { readonly why: string } {
  const lines = readLines(bytes, from)
  if (lines === 'cut' || 'why' in lines) return lines
  const { first, fields, end: headEnd } = lines
  const [, method, target, minor] = /^([^ ]+) ([^ ]+) HTTP\/1\.([0-9])$/.exec(first) ?? []
  if (method === undefined || target === undefined) {
    return { why: `a request line ${JSON.stringify(first.slice(0, 80))}` }
  }
  // A later one of the same major version means what the latest known one does (RFC 9110 section 2.5).
  const version = minor === '0' ? '1.0' : '1.1'
  if (!token.test(method)) return { why: 'a method' }
  if (method === 'CONNECT') return { why: 'a tunnel that nobody offers' }
  if (!targetText.test(target) || originForm(method, target) === undefined) return { why: 'a target' }
  const hosts = values(fields, 'host')
  if (hosts.length > 1 || (hosts.length === 0 && version === '1.1')) return { why: `${hosts.length} hosts` }
  if (hosts.length === 1 && !hostText.test(hosts[0]!)) return { why: 'a host' }
  const how = framing(fields, version, 0)
  if (typeof how === 'object') return how
  const options = words(fields, 'connection')
  const last = version === '1.0' ? !options.includes('keep-alive') : options.includes('close')
  const upgrade = options.includes('upgrade') && values(fields, 'upgrade').length > 0
  const head = { method, target, version, fields, last, upgrade, headEnd } as const
  if (how === 'chunked') return { ...head, ...readChunks(bytes, headEnd) }
  return { ...head, ...readLength(bytes, headEnd, Number(how)) }
}

/** The target as a peer is to see it: without scheme and host, and without a fragment. */
export function originForm(method: string, target: string): string | undefined {
  if (target === '*') return method === 'OPTIONS' ? '*' : undefined
  const path = target.startsWith('/') ? target : /^https?:\/\/[^/?#]+(.*)$/i.exec(target)?.[1]
  if (path === undefined) return undefined
  const [whole = ''] = path.split('#')
  return whole.startsWith('/') ? whole : `/${whole}`
}

/** Every request of a connection, as far as they can be told apart for certain. */
export function readRequests(bytes: Buffer): RequestStream {
  const requests: StrictRequest[] = []
  let at = 0
  const done = (rest: RequestStream['rest'], why = ''): RequestStream => ({ requests, rest, why, at })
  for (;;) {
    // Empty lines in front of a request line are passed over (RFC 9112 section 2.2).
    while (bytes.toString('latin1', at, at + 2) === '\r\n') at += 2
    if (at === bytes.length) return done('none')
    const request = readRequest(bytes, at)
    if (request === 'cut') return done('cut')
    if (!('method' in request)) return done('broken', request.why)
    requests.push(request)
    at = request.end
    if (request.state === 'broken') return done('broken', request.why)
    if (request.state === 'cut') return done('cut')
    if (request.last) return done(at === bytes.length ? 'none' : 'ignored')
  }
}

/**
 * Reads the answer to a request.
 * @param method of the request
 * @param upgrade whether the request asked to switch protocols
 */
export function readAnswer(
  bytes: Buffer,
  from: number,
  method: string,
  upgrade: boolean,
  ended: Ended,
): StrictAnswer {
  const interim: { status: number; fields: readonly Field[] }[] = []
  let at = from
  const headless = (state: State, why: string): StrictAnswer => {
    const none = {
      status: 0,
      version: '1.1',
      fields: [],
      framing: 'none',
      body: empty,
      trailers: [],
    } as const
    return { state, why, interim, ...none, last: true, end: at }
  }
  for (;;) {
    const lines = readLines(bytes, at)
    if (lines === 'cut') return headless('cut', 'no head')
    if ('why' in lines) return headless('broken', lines.why)
    const match = /^HTTP\/(1\.[01]) ([1-5][0-9][0-9])(?: [\t\x20-\x7e\x80-\xff]*)?$/.exec(lines.first)
    if (!match) return headless('broken', `a status line ${JSON.stringify(lines.first.slice(0, 80))}`)
    const version = match[1] === '1.0' ? '1.0' : '1.1'
    const status = Number(match[2])
    const { fields } = lines
    const without = method === 'HEAD' || status < 200 || status === 204 || status === 304
    const how = framing(fields, version, 'close')
    if (typeof how === 'object') return headless('broken', how.why)
    at = lines.end
    if (status < 200 && status !== 101) {
      interim.push({ status, fields })
      continue
    }
    if (status === 101 && !upgrade) return headless('broken', 'a switch of protocols that nobody asked for')
    const options = words(fields, 'connection')
    const ends = version === '1.0' ? !options.includes('keep-alive') : options.includes('close')
    const head = { interim, status, version, fields } as const
    if (without) {
      const body = { state: 'whole', why: '', body: empty, trailers: [] } as const
      return { ...head, framing: 'none', ...body, last: ends, end: at }
    }
    if (how === 'chunked') return { ...head, framing: 'chunked', last: ends, ...readChunks(bytes, at) }
    if (how !== 'close') return { ...head, framing: 'length', last: ends, ...readLength(bytes, at, how) }
    const state = ended === 'fin' ? 'whole' : 'cut'
    const body = bytes.subarray(at)
    return { ...head, framing: 'close', last: true, state, why: '', body, trailers: [], end: bytes.length }
  }
}
