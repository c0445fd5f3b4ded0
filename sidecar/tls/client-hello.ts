/** What a client says as it begins TLS: the parts of its first message that others decide by. */
export interface ClientHello {
  /** The host that it wants, lower case; empty where it names none. */
  readonly serverName: string
  /** Protocols that it would speak inside, the one it likes best first. */
  readonly alpn: readonly string[]
  /** Numbers of cipher suites and of groups for the key exchange, in its order. */
  readonly ciphers: readonly number[]
  readonly groups: readonly number[]
  /** Numbers of the versions that it speaks: 0x0303 is TLS 1.2. */
  readonly versions: readonly number[]
}

/** What the first bytes of a connection are. */
export type Opening =
  /** So far they could become a message that begins TLS. */
  | {
      readonly kind: 'more'
      /** How many there have to be before anything else can be said of them. */
      readonly bytes: number
    }
  /** No TLS. */
  | { readonly kind: 'plain' }
  | { readonly kind: 'hello'; readonly hello: ClientHello }
  /** TLS, but no such message. @param why for the error log */
  | { readonly kind: 'broken'; readonly why: string }

/** Longest message that is waited for, bytes: keys against quantum computers make them long. */
const longestHello = 32_768
/** Records that it may be cut into: each piece that comes is looked at from the beginning. */
const mostRecords = 1000

/** Looks at the first bytes of a connection (RFC 8446 section 5.1 and 4.1.2; TLS 1.2 begins in the same form). */
export function opening(bytes: Buffer): Opening {
  if (bytes.length === 0) return { kind: 'more', bytes: 1 }
  // A record of the handshake. Everything else is left to those who speak without TLS.
  if (bytes[0] !== 22) return { kind: 'plain' }
  if (bytes.length >= 2 && bytes[1] !== 3) return broken('unknown version of the record')
  const message = joined(bytes)
  if (typeof message === 'number') {
    if (bytes.length > longestHello) return broken('first message is too long')
    return { kind: 'more', bytes: Math.min(message, longestHello + 1) }
  }
  if (typeof message === 'string') return broken(message)
  const hello = readHello(message)
  return hello === undefined ? broken('malformed first message') : { kind: 'hello', hello }
}

function broken(why: string): Opening {
  return { kind: 'broken', why }
}

/**
 * The first message of the handshake, out of the records that it is cut into.
 * @returns where more has to come, how many bytes there have to be at least
 */
function joined(bytes: Buffer): Buffer | string | number {
  const parts: Buffer[] = []
  /** Its first bytes: what it is, and how long the rest is. */
  const start: number[] = []
  let have = 0
  let at = 0
  while (at + 5 <= bytes.length) {
    if (bytes[at] !== 22) return 'first message is broken off'
    const length = bytes.readUInt16BE(at + 3)
    if (length === 0 || length > 16_384) return 'impossible length of a record'
    const part = bytes.subarray(at + 5, at + 5 + length)
    if (parts.push(part) > mostRecords) return 'first message is cut into too many pieces'
    have += part.length
    for (let i = 0; i < part.length && start.length < 4; i++) start.push(part[i]!)
    if (start.length > 0 && start[0] !== 1) return 'first message is none that begins TLS'
    let lacks = start.length === 0 ? 1 : 4 - start.length
    if (start.length === 4) {
      const wanted = 4 + start[1]! * 65_536 + start[2]! * 256 + start[3]!
      if (wanted > longestHello) return 'first message is too long'
      if (have >= wanted) return Buffer.concat(parts).subarray(4, wanted)
      lacks = wanted - have
    }
    if (part.length < length) return bytes.length + Math.min(lacks, length - part.length)
    at += 5 + length
  }
  // What is wrong with the head of a record is seen as soon as it is there.
  return bytes.length < 2 ? 2 : at + 5
}

function readHello(message: Buffer): ClientHello | undefined {
  const reader = new Reader(message)
  const version = reader.number(2)
  reader.bytes(32)
  reader.block(1)
  const ciphers = numbers(reader.block(2))
  reader.block(1)
  let serverName = ''
  let alpn: readonly string[] = []
  let groups: readonly number[] = []
  let versions: readonly number[] = [version]
  const extensions = new Reader(reader.left > 0 ? reader.block(2) : Buffer.alloc(0))
  while (extensions.left > 0 && !extensions.short) {
    const type = extensions.number(2)
    const body = extensions.block(2)
    if (type === 0) serverName = nameIn(body)
    else if (type === 10) groups = numbers(new Reader(body).block(2))
    else if (type === 16) alpn = texts(new Reader(body).block(2))
    else if (type === 43) versions = numbers(new Reader(body).block(1))
  }
  if (reader.short || extensions.short) return undefined
  return { serverName, alpn, ciphers, groups, versions }
}

/** RFC 6066 section 3. */
function nameIn(body: Buffer): string {
  const list = new Reader(new Reader(body).block(2))
  const kind = list.number(1)
  const name = list.block(2).toString('latin1').toLowerCase()
  return kind === 0 && !list.short && /^[\x21-\x7e]+$/.test(name) ? name.replace(/\.$/, '') : ''
}

function numbers(bytes: Buffer): number[] {
  return Array.from({ length: bytes.length >> 1 }, (_, i) => bytes.readUInt16BE(2 * i))
}

function texts(bytes: Buffer): string[] {
  const reader = new Reader(bytes)
  const found: string[] = []
  while (reader.left > 0 && !reader.short) found.push(reader.block(1).toString('latin1'))
  return found
}

/** Reads what there is; what would lie beyond the end is empty, and leaves it `short`. */
class Reader {
  short = false
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get left(): number {
    return this.#bytes.length - this.#at
  }

  bytes(length: number): Buffer {
    if (length > this.left) {
      this.short = true
      this.#at = this.#bytes.length
      return Buffer.alloc(0)
    }
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }

  number(size: number): number {
    const bytes = this.bytes(size)
    return bytes.length === 0 ? 0 : bytes.readUIntBE(0, size)
  }

  /** What a length of that many bytes stands before. */
  block(size: number): Buffer {
    return this.bytes(this.number(size))
  }
}
