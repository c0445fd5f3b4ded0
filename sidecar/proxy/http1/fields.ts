/** Header and trailer lines, read strictly (RFC 9112 section 5). All text is latin1, one character a byte. */

/** Letters, digits and hyphens: a name that no two peers take for different ones. */
export const plainName = /^[A-Za-z0-9-]+$/
/** RFC 9110 section 5.6.2: names of fields and methods. */
export const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
// Everything but visible latin1, space and tab: a line break that is not CRLF falls under it too, since lines are
// split at CRLF first. Two parsers could disagree on where such a line ends.
const illegal = /[^\t\x20-\x7e\x80-\xff]/

/** The fields of a head, and those that its framing hangs on. */
export interface Fields {
  /** Names and values in turn, as received. */
  readonly headers: string[]
  /** `Content-Length` as received; undefined when absent. Several lines are all the same. */
  readonly length: string | undefined
  /** Lines of `Content-Length`. */
  readonly lengths: number
  /** `Transfer-Encoding` as received; undefined when absent. There is one line at most. */
  readonly encoding: string | undefined
  /** All values of `Connection`, lower case, separated by commas; empty when absent. */
  readonly connection: string
  /** Whether a name has other characters than letters, digits and hyphens. */
  readonly odd: boolean
}

/**
 * Reads header lines.
 * @param text a head without its final empty line
 * @param from where its first line ends: at a CRLF, or at the end of the text
 * @returns what is wrong, where something is
 */
export function readFields(text: string, from: number): Fields | string {
  const headers: string[] = []
  let length: string | undefined
  let lengths = 0
  let encoding: string | undefined
  let connection = ''
  let odd = false
  let end = from
  while (end < text.length) {
    const start = end + 2
    end = text.indexOf('\r\n', start)
    if (end < 0) end = text.length
    const colon = text.indexOf(':', start)
    // A line that begins with a blank continues the one before (obs-fold), which is obsolete and ambiguous.
    if (colon <= start || colon >= end) return 'invalid header line'
    const name = text.slice(start, colon)
    if (!plainName.test(name)) {
      if (!token.test(name)) return 'invalid header name'
      odd = true
    }
    const value = trim(text, colon + 1, end)
    if (illegal.test(value)) return `invalid value of header ${name}`
    headers.push(name, value)
    if (name.length === 14 && name.toLowerCase() === 'content-length') {
      if (length !== undefined && length !== value) return 'conflicting content-length'
      length = value
      lengths += 1
    } else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') {
      if (encoding !== undefined) return 'repeated transfer-encoding'
      encoding = value
    } else if (name.length === 10 && name.toLowerCase() === 'connection') {
      connection = connection === '' ? value.toLowerCase() : `${connection},${value.toLowerCase()}`
    }
  }
  if (length !== undefined && !/^[0-9]{1,15}$/.test(length)) return 'invalid content-length'
  if (encoding !== undefined && length !== undefined) return 'both content-length and transfer-encoding'
  return { headers, length, lengths, encoding, connection, odd }
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
    const value = trim(line, colon + 1, line.length)
    if (!token.test(name) || illegal.test(value)) return undefined
    trailers.push(name, value)
  }
  return trailers
}

/** Whether the first line ends with a line feed alone: what follows would never be the end of a head. */
export function bareLineFeed(head: Buffer, from: number): boolean {
  const at = head.indexOf(10, from)
  return at >= 0 && (at === from || head[at - 1] !== 13)
}

/** Whether a text may be sent as a value or a reason phrase. */
export function isFieldText(text: string): boolean {
  return !illegal.test(text)
}

function trim(text: string, from: number, to: number): string {
  let start = from
  let end = to
  while (start < end && blank(text.charCodeAt(start))) start += 1
  while (end > start && blank(text.charCodeAt(end - 1))) end -= 1
  return text.slice(start, end)
}

function blank(code: number): boolean {
  return code === 32 || code === 9
}

/** Whether a comma-separated, lower-case list has the token. */
export function hasToken(list: string, wanted: string): boolean {
  if (list === '') return false
  if (list === wanted) return true
  if (!list.includes(wanted)) return false
  for (const item of list.split(',')) if (item.trim() === wanted) return true
  return false
}
