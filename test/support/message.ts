import type { Inbox } from './inbox.ts'

/** The head of an HTTP/1 message, as its bytes say; all text is latin1, one character a byte. */
export class Head {
  /** Every byte up to and including the empty line. */
  readonly raw: string
  /** The request line or status line. */
  readonly start: string
  /** Names and values in turn, in order; values without the blanks around them. */
  readonly headers: readonly string[]

  constructor(raw: string) {
    this.raw = raw
    const [start = '', ...lines] = raw.slice(0, -4).split('\r\n')
    this.start = start
    this.headers = lines.flatMap((line) => {
      const colon = line.indexOf(':')
      return colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).trim()]
    })
  }

  /** Names in lower case and in order. */
  get names(): string[] {
    return this.headers.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())
  }

  /** Every value of a header, one a line. */
  all(name: string): string[] {
    return this.headers.filter(
      (_, i) => i % 2 === 1 && this.headers[i - 1]!.toLowerCase() === name.toLowerCase(),
    )
  }

  /** The first value of a header; undefined when there is none. */
  header(name: string): string | undefined {
    return this.all(name)[0]
  }
}

/** How the end of a body is marked; a number is its length. */
export type Framing = number | 'chunked' | 'close'

export interface Body {
  readonly body: Buffer
  /** Names and values in turn. */
  readonly trailers: readonly string[]
  /** Whether its end was seen as its framing has it; false for a body that was cut off. */
  readonly complete: boolean
}

/** @returns undefined when the connection ended before a complete head came */
export async function readHead(inbox: Inbox): Promise<Head | undefined> {
  const bytes = await inbox.until('\r\n\r\n')
  return bytes && new Head(bytes.toString('latin1'))
}

/**
 * Reads a body to its end, or to the end of the connection.
 * @param each takes every piece; without it the pieces are kept and handed back
 */
export async function readBody(
  inbox: Inbox,
  framing: Framing,
  each?: (piece: Buffer) => void,
): Promise<Body> {
  const kept: Buffer[] = []
  const keep = each ?? ((piece: Buffer) => void kept.push(piece))
  const done = (complete: boolean, trailers: readonly string[] = []): Body => ({
    body: Buffer.concat(kept),
    trailers,
    complete,
  })
  if (framing === 'close') {
    for (;;) {
      const piece = await inbox.some()
      if (!piece) return done(inbox.ended === 'fin')
      keep(piece)
    }
  }
  if (framing !== 'chunked') return done(await readCount(inbox, framing, keep))
  for (;;) {
    const line = await inbox.until('\r\n')
    if (!line) return done(false)
    const size = /^([0-9a-fA-F]+)[ \t]*(;.*)?\r\n$/.exec(line.toString('latin1'))
    if (!size) throw new Error(`not a chunk size: ${JSON.stringify(line.toString('latin1'))}`)
    const count = Number.parseInt(size[1]!, 16)
    if (count === 0) return readTrailers(inbox, done)
    if (!(await readCount(inbox, count, keep))) return done(false)
    const end = await inbox.take(2)
    if (!end) return done(false)
    if (end.toString('latin1') !== '\r\n') throw new Error('a chunk does not end where its size says')
  }
}

async function readTrailers(
  inbox: Inbox,
  done: (complete: boolean, trailers?: readonly string[]) => Body,
): Promise<Body> {
  const lines: string[] = []
  for (;;) {
    const line = await inbox.until('\r\n')
    if (!line) return done(false)
    if (line.length === 2) return done(true, new Head(`\r\n${lines.join('')}\r\n`).headers)
    lines.push(line.toString('latin1'))
  }
}

async function readCount(inbox: Inbox, count: number, keep: (piece: Buffer) => void): Promise<boolean> {
  for (let left = count; left > 0; ) {
    const piece = await inbox.some(left)
    if (!piece) return false
    left -= piece.length
    keep(piece)
  }
  return true
}

/** Names and values as an object has them: a list stands for a header that comes several times. */
export type Fields = Readonly<Record<string, string | number | readonly string[]>>

/** A head in bytes: start line, fields, empty line. */
export function headText(start: string, fields: Fields = {}): string {
  const lines = Object.entries(fields).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => `${name}: ${one}\r\n`),
  )
  return `${start}\r\n${lines.join('')}\r\n`
}

/** One chunk of a chunked body. */
export function chunk(data: Buffer | string): Buffer {
  const bytes = Buffer.from(data as string)
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
}
