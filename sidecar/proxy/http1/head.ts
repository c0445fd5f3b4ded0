import type { AttemptReason } from '../../../feedback/reasons.ts'

/** The head of a response, and what it says of the body that follows. */
export interface ResponseHead {
  readonly status: number
  readonly reasonPhrase: string
  /** Names and values in turn, as received (latin1). */
  readonly headers: string[]
  /** How the body ends. `length` counts down from `bodyLength`. */
  readonly framing: 'none' | 'length' | 'chunked' | 'close'
  /** Bytes of body announced; 0 unless framing is `length`. */
  readonly bodyLength: number
  /** Whether the connection may carry another request once the body has ended. */
  readonly persistent: boolean
}

/** Why a head cannot be accepted. */
export interface HeadFault {
  readonly reason: AttemptReason
  readonly detail: string
}

/** What is needed of the request to read the response to it (RFC 9112 section 6.3). */
export interface HeadContext {
  readonly method: string
  /** Whether the request asked to switch protocols: only then may a 101 come. */
  readonly upgrade: boolean
}

const statusLine = /^HTTP\/1\.([01]) ([1-5][0-9][0-9])(?: (.*))?$/
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
// Everything but visible latin1, space and tab: a line break that is not CRLF falls under it too, since the head
// is split at CRLF first. Two parsers could disagree on where such a line ends.
const illegal = /[^\t\x20-\x7e\x80-\xff]/

/**
 * Reads a response head strictly: what two parsers could read in two ways is refused (RFC 9112 sections 4, 5, 6).
 * @param text the head without its final empty line, latin1
 */
export function readHead(text: string, context: HeadContext): ResponseHead | HeadFault {
  let end = text.indexOf('\r\n')
  if (end < 0) end = text.length
  const match = statusLine.exec(text.slice(0, end))
  if (!match) return fault('invalid status line')
  const minor = match[1]!
  const status = Number(match[2])
  const reasonPhrase = match[3] ?? ''
  if (illegal.test(reasonPhrase)) return fault('invalid reason phrase')
  const headers: string[] = []
  let length: string | undefined
  let encoding: string | undefined
  let connection = ''
  while (end < text.length) {
    const start = end + 2
    end = text.indexOf('\r\n', start)
    if (end < 0) end = text.length
    const line = text.slice(start, end)
    const colon = line.indexOf(':')
    // A line that begins with a blank continues the one before (obs-fold), which is obsolete and ambiguous.
    if (colon <= 0) return fault('invalid header line')
    const name = line.slice(0, colon)
    if (!token.test(name)) return fault('invalid header name')
    const value = trim(line, colon + 1)
    if (illegal.test(value)) return fault(`invalid value of header ${name}`)
    headers.push(name, value)
    if (name.length === 14 && name.toLowerCase() === 'content-length') {
      if (length !== undefined && length !== value) return fault('conflicting content-length')
      length = value
    } else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') {
      if (encoding !== undefined) return fault('repeated transfer-encoding')
      encoding = value
    } else if (name.length === 10 && name.toLowerCase() === 'connection') {
      connection += `,${value.toLowerCase()}`
    }
  }
  if (length !== undefined && !/^[0-9]{1,15}$/.test(length)) return fault('invalid content-length')
  if (encoding !== undefined) {
    if (length !== undefined) return fault('both content-length and transfer-encoding')
    if (minor === '0') return fault('transfer-encoding in HTTP/1.0')
    if (encoding.toLowerCase() !== 'chunked') return fault('unknown transfer-encoding')
  }
  if (status === 101 && !context.upgrade) return fault('unasked 101')
  const persistent =
    minor === '1' ? !hasToken(connection, 'close') : hasToken(connection, 'keep-alive') && status !== 101
  const bodyless = context.method === 'HEAD' || status < 200 || status === 204 || status === 304
  if (bodyless) {
    // A 204 that announces a body may well send one: the connection is not trusted any further.
    const odd = status === 204 && (encoding !== undefined || (length !== undefined && Number(length) > 0))
    return { status, reasonPhrase, headers, framing: 'none', bodyLength: 0, persistent: persistent && !odd }
  }
  if (encoding !== undefined) {
    return { status, reasonPhrase, headers, framing: 'chunked', bodyLength: 0, persistent }
  }
  if (length !== undefined) {
    const bodyLength = Number(length)
    const framing = bodyLength === 0 ? 'none' : 'length'
    return { status, reasonPhrase, headers, framing, bodyLength, persistent }
  }
  return { status, reasonPhrase, headers, framing: 'close', bodyLength: 0, persistent: false }
}

/**
 * Reads trailer lines.
 * @returns names and values in turn; undefined when a line is malformed
 */
export function readTrailers(text: string): string[] | undefined {
  const trailers: string[] = []
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon <= 0) return undefined
    const name = line.slice(0, colon)
    const value = trim(line, colon + 1)
    if (!token.test(name) || illegal.test(value)) return undefined
    trailers.push(name, value)
  }
  return trailers
}

function trim(line: string, from: number): string {
  let start = from
  let end = line.length
  while (start < end && blank(line.charCodeAt(start))) start += 1
  while (end > start && blank(line.charCodeAt(end - 1))) end -= 1
  return line.slice(start, end)
}

function blank(code: number): boolean {
  return code === 32 || code === 9
}

/** Whether a comma-separated, lower-case list has the token. */
export function hasToken(list: string, wanted: string): boolean {
  if (list === '') return false
  for (const item of list.split(',')) if (item.trim() === wanted) return true
  return false
}

function fault(detail: string): HeadFault {
  return { reason: 'invalid_header', detail }
}
