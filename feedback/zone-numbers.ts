import { exemplarSize } from './exemplar.ts'
import { groupFields, latencyBucketsMs, type PeerField, peerFields } from './fields.ts'
import { grpcStatusNames } from './grpc-status.ts'
import { attemptReasons, denialReasons, signalReasons } from './reasons.ts'

/** Statuses 100 to 599 have a counter each; every other one shares the last. */
const codes = 501
const buckets = latencyBucketsMs.length + 1
/** What each thread has a column, and a number of the group, of its own of. */
const heldColumns = 3
const heldGroup = 3
/** Seconds the retry budget looks back at most. */
export const budgetSeconds = 64
/** Numbers of each of them; see budget.ts. */
export const budgetCell = 5

/** One column of numbers: the same field of every peer, by the peer's index. */
export type Column = Float64Array

/** What a thread holds of the group's numbers at the moment, and what has to be given back when it dies. */
export interface Held {
  readonly conns: Column
  readonly waiting: Column
  readonly startSum: Column
  /** `retriesWaiting`, `keepalive` and `queueWaiting`. */
  readonly group: Float64Array
}

/** Words before the numbers, for what threads agree on: a cache line. */
export const headWords = 16

/** The numbers of a zone, each in its place of one shared buffer. */
export class ZoneNumbers {
  /** How many peers fit. */
  capacity!: number
  /** How many threads work on it, each with a row of its own for what it holds; 0: only this one, and no rows. */
  readonly threads: number
  buffer!: SharedArrayBuffer
  group!: Float64Array
  /** Counters of `denialReasons`. */
  denials!: Float64Array
  /** Requests and retries of each of the last seconds; see budget.ts. */
  budget!: Float64Array
  /** Columns by field, for code that reads a peer's slot at once: `zone.peers.conns[peer.index]`. */
  peers!: { readonly [F in PeerField]: Column }
  /** `reasons[r][index]`, r the index in `attemptReasons`. */
  reasons!: readonly Column[]
  /** `statuses[code - 100][index]`; the last is for all other codes. */
  statuses!: readonly Column[]
  /** `grpcStatuses[status][index]`: how calls of gRPC ended, as far as they did. */
  grpcStatuses!: readonly Column[]
  /** `ignored[r][index]`, r the index in `signalReasons`: reports of the peer that were not taken. */
  ignored!: readonly Column[]
  /** `headerHistogram[bucket][index]`, not added up; their sum is the count. */
  headerHistogram!: readonly Column[]
  /** Sum of what the histogram counts, milliseconds. */
  headerSum!: Column
  /** By bucket of the header histogram, the last exemplar of each peer; see exemplar.ts. */
  headerExemplars!: readonly Float64Array[]
  responseHistogram!: readonly Column[]
  responseSum!: Column
  /** By thread; see held.ts. */
  held!: readonly Held[]

  /** @param threads how many threads will work on it; 0: only this one */
  constructor(threads: number) {
    this.threads = threads
  }

  /**
   * Puts everything into its place.
   * @param buffer has the numbers; undefined: a new one, of zeros
   */
  protected lay(capacity: number, buffer: SharedArrayBuffer | undefined): void {
    const words = attemptReasons.length + signalReasons.length
    const columns =
      peerFields.length +
      words +
      codes +
      grpcStatusNames.length +
      2 * (buckets + 1) +
      exemplarSize * buckets +
      heldColumns * this.threads
    const fixed =
      groupFields.length + denialReasons.length + budgetSeconds * budgetCell + heldGroup * this.threads
    this.capacity = capacity
    this.buffer = buffer ?? new SharedArrayBuffer(4 * headWords + 8 * (columns * capacity + fixed))
    let offset = 4 * headWords
    const take = (length: number): Float64Array => {
      const view = new Float64Array(this.buffer, offset, length)
      offset += 8 * length
      return view
    }
    const takeMany = (count: number) => Array.from({ length: count }, () => take(capacity))
    this.group = take(groupFields.length)
    this.denials = take(denialReasons.length)
    this.budget = take(budgetSeconds * budgetCell)
    // The list of fields and the type's keys are the same list.
    this.peers = Object.fromEntries(peerFields.map((field) => [field, take(capacity)])) as {
      [F in PeerField]: Column
    }
    this.reasons = takeMany(attemptReasons.length)
    this.statuses = takeMany(codes)
    this.grpcStatuses = takeMany(grpcStatusNames.length)
    this.ignored = takeMany(signalReasons.length)
    this.headerHistogram = takeMany(buckets)
    this.headerSum = take(capacity)
    this.headerExemplars = Array.from({ length: buckets }, () => take(exemplarSize * capacity))
    this.responseHistogram = takeMany(buckets)
    this.responseSum = take(capacity)
    this.held = Array.from({ length: this.threads }, () => ({
      conns: take(capacity),
      waiting: take(capacity),
      startSum: take(capacity),
      group: take(heldGroup),
    }))
  }

  /** Everything, always in the same order. */
  protected *all(): Generator<Float64Array> {
    yield this.group
    yield this.denials
    yield this.budget
    yield* this.columns()
    yield* this.headerExemplars
    for (const { group } of this.held) yield group
  }

  /** Of it, what has one number a peer. */
  protected *columns(): Generator<Column> {
    yield* Object.values(this.peers)
    yield* this.reasons
    yield* this.statuses
    yield* this.grpcStatuses
    yield* this.ignored
    yield* this.headerHistogram
    yield* this.responseHistogram
    yield this.headerSum
    yield this.responseSum
    for (const { conns, waiting, startSum } of this.held) {
      yield conns
      yield waiting
      yield startSum
    }
  }
}
