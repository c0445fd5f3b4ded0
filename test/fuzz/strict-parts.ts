/** Lines, fields and bodies, read as strictly as RFC 9112 allows it: see `strict.ts`. */

export interface Field {
  readonly name: string
  readonly value: string
}

export const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const fieldText = /^[\t\x20-\x7e\x80-\xff]*$/

/** `cut`: the bytes end before the message does. `broken`: no reader may take it for a message. */
export type State = 'whole' | 'cut' | 'broken'

/** The values of a field, one a line. */
export function values(fields: readonly Field[], name: string): string[] {
  return fields.filter((field) => field.name.toLowerCase() === name).map((field) => field.value)
}

/** The words of a field that is a list, in lower case. */
export function words(fields: readonly Field[], name: string): string[] {
  return values(fields, name)
    .flatMap((value) => value.split(','))
    .map((word) => word.trim().toLowerCase())
    .filter((word) => word !== '')
}

export interface Lines {
  readonly first: string
  readonly fields: readonly Field[]
  readonly end: number
}

/** @returns `cut` as long as what there is may become a head; a text that says why it cannot */
export function readLines(bytes: Buffer, from: number): Lines | 'cut' | { readonly why: string } {
  const end = bytes.indexOf('\r\n\r\n', from, 'latin1')
  const text = bytes.toString('latin1', from, end < 0 ? bytes.length : end)
  const lines = text.split('\r\n')
  // The last line of an unfinished head may itself be unfinished, and may end in the middle of a line break.
  const [first = '', ...rest] = end < 0 ? lines.slice(0, -1) : lines
  if (/[\r\n\0]/.test(first)) return { why: 'a control in the first line' }
  const tail = end < 0 ? (lines.at(-1) ?? '') : ''
  if (/\n|\0|\r(?!$)/.test(tail)) return { why: 'a stray line break' }
  const fields: Field[] = []
  for (const line of rest) {
    const field = readField(line)
    if (typeof field === 'string') return { why: field }
    fields.push(field)
  }
  if (end < 0) return 'cut'
  return { first, fields, end: end + 4 }
}

function readField(line: string): Field | string {
  if (line === '') return 'an empty line'
  if (/^[ \t]/.test(line)) return 'a folded field'
  const colon = line.indexOf(':')
  if (colon < 0) return 'a line without colon'
  const name = line.slice(0, colon)
  const value = line.slice(colon + 1)
  if (!token.test(name)) return `a field name ${JSON.stringify(name)}`
  if (!fieldText.test(value)) return `a value of ${name}`
  return { name, value: value.replace(/^[ \t]+|[ \t]+$/g, '') }
}

export type Framing = number | 'chunked' | 'close' | { readonly why: string }

/** What the fields say of the body (RFC 9112 section 6.3). */
export function framing(fields: readonly Field[], version: string, without: Framing): Framing {
  const codings = values(fields, 'transfer-encoding')
  const lengths = values(fields, 'content-length')
  if (codings.length > 0) {
    if (lengths.length > 0) return { why: 'a length and a transfer coding' }
    if (version !== '1.1') return { why: 'a transfer coding in HTTP/1.0' }
    if (codings.length > 1 || codings[0]!.toLowerCase() !== 'chunked') return { why: 'a transfer coding' }
    return 'chunked'
  }
  if (lengths.length === 0) return without
  const [length] = lengths
  if (!lengths.every((one) => one === length)) return { why: 'several lengths' }
  if (!/^[0-9]{1,15}$/.test(length!)) return { why: `a length of ${JSON.stringify(length)}` }
  return Number(length)
}

export interface ReadBody {
  readonly state: State
  readonly why: string
  readonly body: Buffer
  readonly trailers: readonly Field[]
  readonly end: number
}

export function readLength(bytes: Buffer, from: number, length: number): ReadBody {
  const body = bytes.subarray(from, from + length)
  const state = body.length < length ? 'cut' : 'whole'
  return { state, why: '', body, trailers: [], end: from + body.length }
}

export function readChunks(bytes: Buffer, from: number): ReadBody {
  const parts: Buffer[] = []
  let at = from
  const done = (state: State, why: string, trailers: readonly Field[] = []): ReadBody => {
    return { state, why, body: Buffer.concat(parts), trailers, end: at }
  }
  for (;;) {
    const line = readLine(bytes, at)
    if (typeof line !== 'object') return line === 'cut' ? done('cut', '') : done('broken', 'a chunk line')
    const size = /^([0-9A-Fa-f]{1,12})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?$/.exec(line.text)
    if (!size) return done('broken', `a chunk size ${JSON.stringify(line.text.slice(0, 40))}`)
    const length = Number.parseInt(size[1]!, 16)
    at = line.end
    if (length === 0) break
    parts.push(bytes.subarray(at, at + length))
    at = Math.min(bytes.length, at + length)
    const after = bytes.toString('latin1', at, at + 2)
    if (!'\r\n'.startsWith(after)) return done('broken', 'a chunk that is longer than its size')
    if (after.length < 2) return done('cut', '')
    at += 2
  }
  const trailers: Field[] = []
  for (;;) {
    const line = readLine(bytes, at)
    if (typeof line !== 'object') return line === 'cut' ? done('cut', '') : done('broken', 'a trailer line')
    at = line.end
    if (line.text === '') return done('whole', '', trailers)
    const field = readField(line.text)
    if (typeof field === 'string') return done('broken', `in a trailer: ${field}`)
    trailers.push(field)
  }
}

function readLine(bytes: Buffer, at: number): { text: string; end: number } | 'cut' | 'broken' {
  const end = bytes.indexOf('\r\n', at, 'latin1')
  const text = bytes.toString('latin1', at, end < 0 ? bytes.length : end)
  if (end < 0) return /[\n\0]|\r(?!$)/.test(text) ? 'broken' : 'cut'
  return /[\r\n\0]/.test(text) ? 'broken' : { text, end: end + 2 }
}
