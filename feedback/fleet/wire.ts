import type { Heard, PeerRecord, Sent, Update } from './told.ts'

/*
 * The bytes of an exchange. Most peers have only answered since the last time, and most records hold only that: numbers
 * are packed as a first part that is always there and a second that is there when one of its numbers is not 0. A byte
 * before them says so. Numbers are doubles, low byte first.
 */

/** Numbers of an update, in order. */
const updateFirst = ['answers', 'good', 'weight', 'average', 'conns'] as const
const updateSecond = [
  'leaves',
  'ejections',
  'values',
  'valueSum',
  'valueAge',
  'stuck',
  'stuckAge',
  'limit',
  'have',
  'want',
  'need',
] as const
/** Numbers of a record, in order. */
const recordFirst = ['members', 'answers', 'good', 'weight', 'weighted', 'conns'] as const
const recordSecond = [
  'ejections',
  'ejectedAt',
  'values',
  'valueSum',
  'valueAt',
  'stuck',
  'stuckStart',
  'leased',
  'shortAt',
  'cravedAt',
] as const

/** As the script's `struct` has them: the byte and the first part, and the second part. */
export const updateFormat = formats(updateFirst.length, updateSecond.length)
export const recordFormat = formats(recordFirst.length, recordSecond.length)
/** What the script keeps of one instance: weight, weighted and conns; stuck, stuckStart and leased. */
export const partFormat = formats(3, 3)
/** In the place of a record's first byte: nobody has the peer any more, and nothing follows. */
export const gone = 2

function formats(first: number, second: number) {
  const [firstBytes, allBytes] = [1 + 8 * first, 1 + 8 * (first + second)]
  return { first: `<B${'d'.repeat(first)}`, second: `<${'d'.repeat(second)}`, firstBytes, allBytes }
}

const updateBytes = 1 + 8 * (updateFirst.length + updateSecond.length)

/**
 * What the script takes.
 * @param keep for how long an unused key is kept, milliseconds
 * @param told what the keys begin with that hold what an instance has told
 */
export function packSent(sent: Sent, keep: number, told: string): (string | number | Buffer)[] {
  const { id, ttl, epoch, version, at, requests, retries, members } = sent
  return [keep, id, ttl, epoch, version, requests, retries, members, told, at, ...packUpdates(sent.updates)]
}

/** @returns all numbers, and then the field of each peer */
function packUpdates(
  updates: readonly { readonly name: string; readonly update: Update }[],
): (string | Buffer)[] {
  const bytes = Buffer.allocUnsafe(updateBytes * updates.length)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const args: (string | Buffer)[] = [bytes]
  let at = 0
  const put = (value: number) => {
    view.setFloat64(at, value, true)
    at += 8
  }
  for (const { name, update } of updates) {
    args.push(`p${name}`)
    const more = hasSecond(update)
    view.setUint8(at, more ? 1 : 0)
    at += 1
    put(update.answers)
    put(update.good)
    put(update.weight)
    put(update.average)
    put(update.conns)
    if (!more) continue
    for (const field of updateSecond) put(Number(update[field]))
  }
  args[0] = bytes.subarray(0, at)
  return args
}

/** The age of a value that was told before, and a wish where there is no limit, say nothing. */
function hasSecond({ leaves, ejections, values, valueSum, stuck, stuckAge, limit }: Update): boolean {
  return (
    leaves ||
    ejections !== 0 ||
    values !== 0 ||
    valueSum !== 0 ||
    stuck !== 0 ||
    stuckAge !== 0 ||
    limit !== 0
  )
}

/**
 * @param updates what was told
 * @throws TypeError, RangeError when that is no answer of the script
 */
export function readHeard(answer: unknown, updates: readonly { readonly name: string }[]): Heard {
  if (!Array.isArray(answer) || answer.length !== 12) throw new TypeError('not an answer to an exchange')
  const [epoch, version, at, members, fresh, requests, retries, leases, told, names, records, notes] = answer
  const peers = new Map<string, PeerRecord>()
  const own = new Records(told)
  for (const { name } of updates) {
    const record = own.next()
    if (record !== undefined) peers.set(name, record)
  }
  const others = new Records(records)
  for (const name of names) {
    const record = others.next()
    if (record !== undefined) peers.set(String(name).slice(1), record)
  }
  const probes = new Map<string, Buffer>()
  for (let i = 0; i < notes.length; i += 2) {
    const name = String(notes[i])
    if (name.startsWith('r')) probes.set(name, notes[i + 1])
  }
  return {
    epoch: String(epoch),
    version: Number(version),
    at: Number(at),
    members: Number(members),
    fresh: Number(fresh) === 1,
    requests: Number(requests),
    retries: Number(retries),
    // There are none where nothing is limited.
    leases: updates.map((_, i) => (leases.length > 0 ? leases.readDoubleLE(8 * i) : 0)),
    peers,
    probes,
  }
}

/** Records one after the other. */
class Records {
  readonly #view: DataView
  #at = 0

  constructor(bytes: Buffer) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  /** @returns undefined where nobody has the peer any more */
  next(): PeerRecord | undefined {
    const kind = this.#view.getUint8(this.#at)
    this.#at += 1
    if (kind === gone) return undefined
    const record: PeerRecord = {
      members: this.#number(),
      answers: this.#number(),
      good: this.#number(),
      weight: this.#number(),
      weighted: this.#number(),
      conns: this.#number(),
      ejections: 0,
      ejectedAt: 0,
      values: 0,
      valueSum: 0,
      valueAt: 0,
      stuck: 0,
      stuckStart: 0,
      leased: 0,
      shortAt: 0,
      cravedAt: 0,
    }
    if (kind === 1) for (const field of recordSecond) record[field] = this.#number()
    // What others have written is read as if there were nothing where it cannot be right.
    return Object.values(record).every(Number.isFinite) ? record : undefined
  }

  #number(): number {
    const value = this.#view.getFloat64(this.#at, true)
    this.#at += 8
    return value
  }
}
