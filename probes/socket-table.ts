import { open } from 'node:fs/promises'
import { endianness } from 'node:os'
import { monotonic } from '../feedback/clock.ts'
import { ipBytes, isWildcard } from './ip.ts'

/** Where the kernel lists its TCP sockets, of IPv4 and of IPv6. */
export interface TablePaths {
  readonly v4: string
  /** A kernel without IPv6 does not have it. */
  readonly v6: string
}

/**
 * The accept queues of this host's listeners, from `/proc/net/tcp` and `/proc/net/tcp6`: in the row of a listener
 * (state 0A) `rx_queue` is how many connections wait to be accepted.
 */
export class SocketTable {
  #v4: Table
  #v6: Table

  constructor(paths: TablePaths = { v4: '/proc/net/tcp', v6: '/proc/net/tcp6' }) {
    this.#v4 = new Table(paths.v4, false)
    this.#v6 = new Table(paths.v6, true)
  }

  /**
   * Connections that wait at whoever would accept one to this address: at a listener on exactly this address, else at
   * one on all addresses. Where several listeners share it, those of the fullest.
   * @param host an IP address
   * @returns undefined when nobody listens there
   * @throws the system's error when a table cannot be read
   */
  async queue(host: string, port: number): Promise<number | undefined> {
    const bytes = ipBytes(host)
    if (bytes === undefined) throw new Error(`"${host}" is no IP address`)
    if (bytes.length === 16) {
      // A connection to "all addresses" goes to the loopback one.
      const address = isWildcard(bytes) ? loopback6 : bytes
      return this.#v6.queue([address, all6], port)
    }
    const address = isWildcard(bytes) ? loopback4 : bytes
    // A listener on `::` takes IPv4 too unless told otherwise, and one may have an IPv4 address in IPv6's form. Both
    // come after IPv4's own.
    const own = await this.#v4.queue([address, all4], port)
    return own ?? this.#v6.queue([[...mapping, ...address], all6], port)
  }

  /**
   * Reads both tables once.
   * @throws the system's error when that cannot be done
   */
  async check(): Promise<void> {
    await Promise.all([this.#v4.check(), this.#v6.check()])
  }
}

const all4 = [0, 0, 0, 0]
const loopback4 = [127, 0, 0, 1]
const all6: readonly number[] = Array(16).fill(0)
const loopback6 = [...all6.slice(0, 15), 1]
/** What stands before an IPv4 address in IPv6's form. */
const mapping = [...all6.slice(0, 10), 0xff, 0xff]

/** Connections that wait to be accepted, by the local address as the table has it: `0100007F:1F90`. */
type Queues = ReadonlyMap<string, number>

interface Reading {
  /** Monotonic milliseconds. */
  readonly startedAt: number
  readonly queues: Promise<Queues>
  /** Whether it goes on: nobody begins another beside it, or they would pile up where files are slow. */
  running: boolean
}

/**
 * How long a reading serves those who ask, milliseconds: half of the shortest interval, so that the probes of many
 * peers that fall due together cost one reading, and no probe is told what the one before it was told.
 */
const freshMs = 5

/**
 * One of the two tables. The kernel lists the listeners first, so that a reading ends at the first other socket,
 * however many there are. (An idle host's is the dearer one: the kernel looks through its hash table for that other
 * socket, a millisecond or two in a thread of the pool.) Where a kernel has another order, that is found out when a
 * listener is missed, and all is read from then on.
 */
class Table {
  #path: string
  #optional: boolean
  #recent: Reading | undefined = undefined
  #whole: Reading | undefined = undefined
  #ordered = true
  /** When a listener that is missed may be looked for in the whole table again; monotonic milliseconds. */
  #wholeAt = Number.NEGATIVE_INFINITY

  /** @param optional whether there may be no such table */
  constructor(path: string, optional: boolean) {
    this.#path = path
    this.#optional = optional
  }

  async check(): Promise<void> {
    await this.#read(false)
  }

  /** @param addresses in the order of preference */
  async queue(
    addresses: readonly (readonly number[] | Uint8Array)[],
    port: number,
  ): Promise<number | undefined> {
    const keys = addresses.map((address) => rowKey(address, port))
    if (!isFresh(this.#recent)) this.#recent = this.#begin(!this.#ordered)
    const found = first(await this.#recent.queues, keys)
    if (found !== undefined || !this.#ordered) return found
    if (!isFresh(this.#whole)) {
      if (monotonic() < this.#wholeAt) return undefined
      this.#whole = this.#begin(true)
    }
    const { startedAt, queues } = this.#whole
    const late = first(await queues, keys)
    // A thousandth of the time is what it may take.
    this.#wholeAt = Math.max(this.#wholeAt, startedAt + 1000 * (monotonic() - startedAt))
    return late
  }

  #begin(whole: boolean): Reading {
    const reading = { startedAt: monotonic(), queues: this.#read(whole), running: true }
    const ended = () => {
      reading.running = false
    }
    reading.queues.then(ended, ended)
    return reading
  }

  /** @param whole whether to read on behind the first row that is no listener's */
  async #read(whole: boolean): Promise<Queues> {
    const queues = new Map<string, number>()
    let others = false
    await eachRow(this.#path, this.#optional, (row) => {
      const [, key = '', state, queue = ''] = rowForm.exec(row) ?? []
      if (state === listening) {
        if (others) this.#ordered = false
        queues.set(key, Math.max(queues.get(key) ?? 0, Number.parseInt(queue, 16)))
      } else if (state !== undefined) others = true
      return whole || !others
    })
    return queues
  }
}

function isFresh(reading: Reading | undefined): reading is Reading {
  return reading !== undefined && (reading.running || monotonic() - reading.startedAt < freshMs)
}

/** TCP_LISTEN, as the column `st` has it. */
const listening = '0A'

/** Number, local address, remote address, state, `tx_queue:rx_queue`. The heading is no such row. */
const rowForm =
  /^ *\d+: ([0-9A-F]+:[0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} ([0-9A-F]{2}) [0-9A-F]{8}:([0-9A-F]{8}) /

/** @param each returns whether it wants more */
async function eachRow(path: string, optional: boolean, each: (row: string) => boolean): Promise<void> {
  const file = await open(path).catch((error: NodeJS.ErrnoException) => {
    if (optional && error.code === 'ENOENT') return undefined
    throw error
  })
  if (file === undefined) return
  try {
    // The kernel hands out whole rows, a page at a time.
    const page = Buffer.allocUnsafe(4096)
    let rest = ''
    for (;;) {
      const { bytesRead } = await file.read(page, 0, page.length, null)
      if (bytesRead === 0) return
      const lines = (rest + page.toString('latin1', 0, bytesRead)).split('\n')
      rest = lines.pop()!
      for (const line of lines) if (!each(line)) return
    }
  } finally {
    await file.close()
  }
}

function first(queues: Queues, keys: readonly string[]): number | undefined {
  const key = keys.find((one) => queues.has(one))
  return key === undefined ? undefined : queues.get(key)
}

/** The address in words of four bytes, each in this machine's own order, and the port. */
function rowKey(address: readonly number[] | Uint8Array, port: number): string {
  const bytes = Buffer.from(address)
  if (endianness() === 'LE') bytes.swap32()
  const digits = port.toString(16).padStart(4, '0')
  return `${bytes.toString('hex')}:${digits}`.toUpperCase()
}
