// A client that speaks HTTP/2 frame by frame, so that it can say what no library would.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export const types = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
} as const
export type FrameType = keyof typeof types
const nameOf: ReadonlyMap<number, FrameType> = new Map(
  Object.entries(types).map(([name, number]) => [number, name as FrameType]),
)

export const endStream = 1
export const endHeaders = 4
export const ack = 1

export const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

export interface Frame {
  readonly type: FrameType | undefined
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

/** The bytes of a frame. */
export function frame(
  type: FrameType,
  flags: number,
  stream: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = types[type]
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

export function number(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** A SETTINGS frame's payload, of numbers and values in turn. */
export function settings(...pairs: readonly (readonly [id: number, value: number])[]): Buffer {
  return Buffer.concat(
    pairs.map(([id, value]) => Buffer.concat([Buffer.from([id >> 8, id & 255]), number(value)])),
  )
}

/** Fields as HPACK has them that keeps nothing: each one a literal with its name. */
export function fields(list: Readonly<Record<string, string | readonly string[]>>): Buffer {
  const parts: Buffer[] = []
  for (const [name, values] of Object.entries(list)) {
    for (const value of typeof values === 'string' ? [values] : values) {
      parts.push(Buffer.from([0]), text(name), text(value))
    }
  }
  return Buffer.concat(parts)
}

/** RFC 7541 section 5: a length of seven bits, or more of them, and the bytes as they are. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1')
  const length: number[] = []
  let rest = bytes.length
  if (rest < 127) length.push(rest)
  else {
    length.push(127)
    rest -= 127
    while (rest >= 128) {
      length.push((rest & 127) | 128)
      rest >>= 7
    }
    length.push(rest)
  }
  return Buffer.concat([Buffer.from(length), bytes])
}

/** Fields of a request without a body, for `fields`. */
export const get = { ':method': 'GET', ':scheme': 'http', ':path': '/', ':authority': 'a.example' } as const

/** Statuses that the static table of HPACK has, by their index. */
const indexed: ReadonlyMap<number, number> = new Map(
  [200, 204, 206, 304, 400, 404, 500].map((status, i) => [8 + i, status]),
)
/** The digits' codes of RFC 7541 appendix B. */
const digits = [
  '00000',
  '00001',
  '00010',
  '011001',
  '011010',
  '011011',
  '011100',
  '011101',
  '011110',
  '011111',
]

/** The status in a head of an answer, which begins with it, as long as nothing else was said on the connection. */
export function statusIn(head: Buffer): number {
  const first = head[0]!
  if (first & 0x80) return indexed.get(first & 0x7f) ?? 0
  const length = head[1]! & 0x7f
  const value = head.subarray(2, 2 + length)
  if (!(head[1]! & 0x80)) return Number(value.toString('latin1'))
  let bits = Array.from(value, (byte) => byte.toString(2).padStart(8, '0')).join('')
  let text = ''
  while (text.length < 3) {
    const digit = digits.findIndex((code) => bits.startsWith(code))
    if (digit < 0) return 0
    text += digit
    bits = bits.slice(digits[digit]!.length)
  }
  return Number(text)
}

/** A connection on which frames are said as they are. */
export class Frames {
  readonly socket: Socket
  /** Frames that came, those of settings left out. */
  readonly frames: Frame[] = []
  ended = false
  /** Whether settings and pings are answered, as they have to be. */
  readonly #polite: boolean
  #rest = Buffer.alloc(0)
  #heard: (() => void)[] = []
  readonly #told: (frame: Frame) => void

  /** @param told of each frame that comes, but for settings */
  constructor(socket: Socket, polite: boolean, told: (frame: Frame) => void = () => {}) {
    this.socket = socket
    this.#polite = polite
    this.#told = told
    socket.on('data', (piece: Buffer) => this.#read(piece))
    socket.on('error', () => {})
    socket.on('close', () => {
      this.ended = true
      this.#tell()
    })
  }

  send(...parts: readonly (Buffer | string)[]): void {
    if (this.socket.destroyed) return
    this.socket.write(Buffer.concat(parts.map((part) => Buffer.from(part as string, 'latin1'))))
  }

  /** Sends a head. */
  headers(
    stream: number,
    list: Readonly<Record<string, string | readonly string[]>>,
    flags = endStream,
  ): void {
    this.send(frame('headers', flags | endHeaders, stream, fields(list)))
  }

  /** Waits for a frame that has come or comes. */
  async frame(type: FrameType, stream?: number, withinMs = 5000): Promise<Frame> {
    const wanted = (one: Frame) => one.type === type && (stream === undefined || one.stream === stream)
    const end = performance.now() + withinMs
    for (;;) {
      const found = this.frames.find(wanted)
      if (found) return found
      if (this.ended || performance.now() > end) {
        const seen = this.frames.map(({ type, stream }) => `${type} ${stream}`).join(', ')
        throw new Error(`no ${type} frame${this.ended ? ', and the end' : ''}; came: ${seen}`)
      }
      await this.#more(end)
    }
  }

  /** Code of the RST_STREAM of a stream. */
  async resetOf(stream: number): Promise<number> {
    return (await this.frame('reset', stream)).payload.readUInt32BE(0)
  }

  /** Code of the last GOAWAY before the connection ends. */
  async end(withinMs = 5000): Promise<number | undefined> {
    const end = performance.now() + withinMs
    while (!this.ended) {
      if (performance.now() > end) throw new Error('the connection was not closed')
      await this.#more(end)
    }
    return this.frames.findLast(({ type }) => type === 'goaway')?.payload.readUInt32BE(4)
  }

  [Symbol.dispose](): void {
    this.socket.destroy()
  }

  async #more(end: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#heard.push(resolve)
    const late = new AbortController()
    await Promise.race([
      promise,
      sleep(Math.max(1, end - performance.now()), undefined, { signal: late.signal }).catch(() => {}),
    ])
    late.abort()
  }

  #tell(): void {
    const heard = this.#heard
    this.#heard = []
    for (const tell of heard) tell()
  }

  #read(piece: Buffer): void {
    let rest = Buffer.concat([this.#rest, piece])
    while (rest.length >= 9) {
      const length = rest.readUIntBE(0, 3)
      if (rest.length < 9 + length) break
      const type = nameOf.get(rest[3]!)
      const flags = rest[4]!
      const stream = rest.readUInt32BE(5) & 0x7fffffff
      this.#take({ type, flags, stream, payload: Buffer.from(rest.subarray(9, 9 + length)) })
      rest = rest.subarray(9 + length)
    }
    this.#rest = Buffer.from(rest)
    this.#tell()
  }

  #take(one: Frame): void {
    if (one.type === 'settings') {
      if (this.#polite && (one.flags & ack) === 0) this.send(frame('settings', ack, 0))
      return
    }
    if (one.type === 'ping' && this.#polite && (one.flags & ack) === 0) {
      this.send(frame('ping', ack, 0, one.payload))
    }
    this.frames.push(one)
    this.#told(one)
  }
}

/**
 * Opens a connection and says the preface.
 * @param own settings of the client
 */
export async function dialFrames(
  port: number,
  own: readonly (readonly [id: number, value: number])[] = [],
  polite = true,
): Promise<Frames> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  await once(socket, 'connect')
  const frames = new Frames(socket, polite)
  frames.send(preface, frame('settings', 0, 0, settings(...own)))
  return frames
}
