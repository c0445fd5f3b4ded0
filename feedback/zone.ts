import {
  type GroupField,
  groupFields,
  groupIndex,
  latencyBucketsMs,
  type PeerField,
  peerFields,
} from './fields.ts'
import type { Peer } from './peer.ts'
import { attemptReasons, denialReasons, signalReasons } from './reasons.ts'

/** Statuses 100 to 599 have a counter each; every other one shares the last. */
const codes = 501
const buckets = latencyBucketsMs.length + 1
/** Seconds the retry budget looks back at most. */
export const budgetSeconds = 64

/** One column of numbers: the same field of every peer, by the peer's index. */
export type Column = Float64Array

/**
 * The state of one group: every number kept of its peers, column by column, in one shared buffer. A column of a
 * field lies together, so a method that walks the group reads memory in a row.
 *
 * A zone outlives reloads. `grow` lays it out anew and puts longer columns in the place of the old ones, so a column
 * is to be taken from the zone whenever it is used, and not to be kept.
 */
export class Zone {
  name: string
  /** How many peers fit. */
  capacity!: number
  buffer!: SharedArrayBuffer
  group!: Float64Array
  /** Counters of `denialReasons`. */
  denials!: Float64Array
  /** Requests and retries of each of the last seconds: two numbers a second, and the second they belong to. */
  budget!: Float64Array
  /** Columns by field, for code that reads a peer's slot at once: `zone.peers.conns[peer.index]`. */
  peers!: { readonly [F in PeerField]: Column }
  /** `reasons[r][index]`, r the index in `attemptReasons`. */
  reasons!: readonly Column[]
  /** `statuses[code - 100][index]`; the last is for all other codes. */
  statuses!: readonly Column[]
  /** `ignored[r][index]`, r the index in `signalReasons`: reports of the peer that were not taken. */
  ignored!: readonly Column[]
  /** `headerHistogram[bucket][index]`, not added up; their sum is the count. */
  headerHistogram!: readonly Column[]
  /** Sum of what the histogram counts, milliseconds. */
  headerSum!: Column
  responseHistogram!: readonly Column[]
  responseSum!: Column
  /** Peers that the configuration no longer has and that still carry a call; see carry.ts. */
  readonly retired: Peer[] = []
  #used: Uint8Array

  constructor(name: string, capacity: number) {
    this.name = name
    this.#used = new Uint8Array(capacity)
    this.#lay(capacity)
  }

  #lay(capacity: number): void {
    const words = attemptReasons.length + signalReasons.length
    const columns = peerFields.length + words + codes + 2 * (buckets + 1)
    const fixed = groupFields.length + denialReasons.length + budgetSeconds * 3
    this.capacity = capacity
    this.buffer = new SharedArrayBuffer(8 * (columns * capacity + fixed))
    let offset = 0
    const take = (length: number): Float64Array => {
      const view = new Float64Array(this.buffer, offset, length)
      offset += 8 * length
      return view
    }
    const takeMany = (count: number) => Array.from({ length: count }, () => take(capacity))
    this.group = take(groupFields.length)
    this.denials = take(denialReasons.length)
    this.budget = take(budgetSeconds * 3)
    // The list of fields and the type's keys are the same list.
    this.peers = Object.fromEntries(peerFields.map((field) => [field, take(capacity)])) as {
      [F in PeerField]: Column
    }
    this.reasons = takeMany(attemptReasons.length)
    this.statuses = takeMany(codes)
    this.ignored = takeMany(signalReasons.length)
    this.headerHistogram = takeMany(buckets)
    this.headerSum = take(capacity)
    this.responseHistogram = takeMany(buckets)
    this.responseSum = take(capacity)
  }

  /** How many slots are free. */
  get room(): number {
    let free = 0
    for (const used of this.#used) if (used === 0) free += 1
    return free
  }

  /** Makes room for more peers. Every slot keeps its index and its numbers. */
  grow(capacity: number): void {
    if (capacity <= this.capacity) return
    const before = [this.group, this.denials, this.budget, ...this.#columns()]
    this.#lay(capacity)
    const after = [this.group, this.denials, this.budget, ...this.#columns()]
    for (const [i, numbers] of before.entries()) after[i]!.set(numbers)
    const used = new Uint8Array(capacity)
    used.set(this.#used)
    this.#used = used
  }

  get(field: GroupField): number {
    return this.group[groupIndex[field]]!
  }

  set(field: GroupField, value: number): void {
    this.group[groupIndex[field]] = value
  }

  /** Adds to a number of the group; a negative amount takes away. */
  add(field: GroupField, amount: number): void {
    this.group[groupIndex[field]]! += amount
  }

  /**
   * Takes a free slot and clears it; a new peer counts as one that always succeeded.
   * @returns undefined when the zone is full
   */
  allocate(): number | undefined {
    const index = this.#used.indexOf(0)
    if (index < 0) return undefined
    this.#used[index] = 1
    // Memory that was never written stays unwritten: most of it is counters of statuses that nobody sends.
    for (const column of this.#columns()) if (column[index] !== 0) column[index] = 0
    this.peers.ok[index] = 1
    this.peers.weightFactor[index] = 1
    return index
  }

  free(index: number): void {
    this.#used[index] = 0
  }

  *#columns(): Generator<Column> {
    yield* Object.values(this.peers)
    yield* this.reasons
    yield* this.statuses
    yield* this.ignored
    yield* this.headerHistogram
    yield* this.responseHistogram
    yield this.headerSum
    yield this.responseSum
  }
}
