/*
 * The load report in protobuf's binary form (message xds.data.orca.v3.OrcaLoadReport): numbers by field, each a double
 * but for `rps`. A zero is not written in it, so it is not there.
 */

/** A number of the message. */
export interface MessageNumber {
  /** Name of the map that it is an entry of; undefined for a number on its own. */
  readonly map: string | undefined
  readonly name: string
  readonly value: number
}

const scalars = new Map([
  [1, 'cpu_utilization'],
  [2, 'mem_utilization'],
  [3, 'rps'],
  [6, 'rps_fractional'],
  [7, 'eps'],
  [9, 'application_utilization'],
])
const maps = new Map([
  [4, 'request_cost'],
  [5, 'utilization'],
  [8, 'named_metrics'],
])

/** How the bytes of a field are to be read. */
const wires = { varint: 0, eight: 1, length: 2, four: 5 } as const

/**
 * Reads a message.
 * @returns its numbers in the order of their first standing there; of one that stands twice the last counts, as
 *   protobuf has it. Undefined when the bytes are no such message
 */
export function readMessage(bytes: Buffer): Iterable<MessageNumber> | undefined {
  const found = new Map<string, MessageNumber>()
  const message = new Message(bytes)
  while (message.next()) {
    const name = scalars.get(message.field)
    const map = maps.get(message.field)
    if (name !== undefined) {
      const value = name === 'rps' ? message.varint() : message.double()
      if (value === undefined) return undefined
      found.set(name, { map, name, value })
    } else if (map !== undefined) {
      const entry = readEntry(message.bytes())
      if (entry === undefined) return undefined
      found.set(`${map}.${entry.name}`, { map, ...entry })
    } else message.skip()
  }
  return message.broken ? undefined : found.values()
}

/** An entry of a map is a message of its own: the key, and the value unless it is 0. */
function readEntry(bytes: Buffer | undefined): { name: string; value: number } | undefined {
  if (bytes === undefined) return undefined
  let name = ''
  let value = 0
  const message = new Message(bytes)
  while (message.next()) {
    if (message.field === 1) name = message.bytes()?.toString('latin1') ?? ''
    else if (message.field === 2) value = message.double() ?? 0
    else message.skip()
  }
  return message.broken ? undefined : { name, value }
}

/** Reads fields one after the other. What is not as it should be makes it `broken`, and ends it. */
class Message {
  readonly #bytes: Buffer
  #at = 0
  #wire = 0
  /** Number of the field that `next` has come to. */
  field = 0
  broken = false

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** Goes on to the next field, whose content is to be read then; false at the end. */
  next(): boolean {
    if (this.broken || this.#at >= this.#bytes.length) return false
    const tag = this.#varint()
    if (tag === undefined) return false
    this.field = Math.floor(tag / 8)
    this.#wire = tag % 8
    if (this.field === 0 || this.field >= 2 ** 29) this.broken = true
    return !this.broken
  }

  varint(): number | undefined {
    return this.#is(wires.varint) ? this.#varint() : undefined
  }

  double(): number | undefined {
    return this.#is(wires.eight) ? this.#take(8)?.readDoubleLE() : undefined
  }

  bytes(): Buffer | undefined {
    if (!this.#is(wires.length)) return undefined
    const length = this.#varint()
    return length === undefined ? undefined : this.#take(length)
  }

  /** A newer message may have fields that are not known here. */
  skip(): void {
    if (this.#wire === wires.varint) this.#varint()
    else if (this.#wire === wires.eight) this.#take(8)
    else if (this.#wire === wires.length) this.bytes()
    else if (this.#wire === wires.four) this.#take(4)
    else this.broken = true
  }

  #is(wire: number): boolean {
    if (this.#wire !== wire) this.broken = true
    return this.#wire === wire
  }

  #varint(): number | undefined {
    let value = 0
    for (let i = 0; i < 10; i++) {
      const byte = this.#take(1)?.[0]
      if (byte === undefined) return undefined
      value += (byte & 0x7f) * 2 ** (7 * i)
      if (byte < 0x80) return value
    }
    this.broken = true
    return undefined
  }

  #take(count: number): Buffer | undefined {
    const end = this.#at + count
    if (end > this.#bytes.length) {
      this.broken = true
      return undefined
    }
    const taken = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return taken
  }
}
