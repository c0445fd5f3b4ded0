import { grpcStatusNames } from '../feedback/grpc-status.ts'

/** The messages of `grpc.health.v1`, as far as a probe needs them: protocol buffers by hand. */

/** `grpc.health.v1.HealthCheckResponse.ServingStatus`, by number. */
const servingStatuses = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'] as const

/** `5 NOT_FOUND`, of the text of a `grpc-status` field. */
export function statusName(text: string): string {
  const name = /^\d{1,2}$/.test(text) ? grpcStatusNames[Number(text)] : undefined
  return name === undefined ? text : `${text} ${name}`
}

/**
 * The body of a `Check` request: one message behind its five bytes of prefix.
 * @param service empty: the server as a whole
 */
export function checkRequest(service: string): Buffer {
  const name = Buffer.from(service)
  // Field 1, of a length.
  const message =
    name.length === 0 ? name : Buffer.concat([Buffer.from([0x0a, ...varint(name.length)]), name])
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

function varint(value: number): number[] {
  const bytes: number[] = []
  for (; value > 0x7f; value = Math.floor(value / 128)) bytes.push((value % 128) | 0x80)
  bytes.push(value)
  return bytes
}

/**
 * The serving status in the body of an answer to `Check`: its name, or its number where it has none.
 * @returns undefined when the body is not exactly one such message
 */
export function servingStatus(body: Buffer): string | undefined {
  // A compressed message has not been asked for.
  if (body.length < 5 || body[0] !== 0 || body.readUInt32BE(1) !== body.length - 5) return undefined
  const reader = new Reader(body.subarray(5))
  // The value that protocol buffers do not send.
  let status = 0
  while (!reader.done) {
    const tag = reader.varint()
    const value = reader.field(tag & 7)
    if (value === undefined) return undefined
    if (tag === 0x08) status = value
  }
  return reader.broken ? undefined : (servingStatuses[status] ?? String(status))
}

/** Reads the fields of a message; what it cannot read makes it `broken`. */
class Reader {
  broken = false
  #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get done(): boolean {
    return this.broken || this.#at >= this.#bytes.length
  }

  /** Its lower 53 bits or so; larger ones do not come up and lose precision. */
  varint(): number {
    let value = 0
    for (let i = 0; i < 10; i++) {
      const byte = this.#bytes[this.#at++]
      if (byte === undefined) break
      value += (byte & 0x7f) * 128 ** i
      if (byte < 0x80) return value
    }
    this.broken = true
    return 0
  }

  /**
   * The value of a field, 0 where it is no varint.
   * @returns undefined for a wire type that there is not, and at the end of the bytes
   */
  field(wire: number): number | undefined {
    let value = 0
    if (wire === 0) value = this.varint()
    else if (wire === 1) this.#skip(8)
    else if (wire === 2) this.#skip(this.varint())
    else if (wire === 5) this.#skip(4)
    else return undefined
    return this.broken ? undefined : value
  }

  #skip(count: number): void {
    this.#at += count
    if (this.#at > this.#bytes.length) this.broken = true
  }
}
