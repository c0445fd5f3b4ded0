import type { Cohort } from '../../feedback/cohort.ts'
import { groupIndex } from '../../feedback/fields.ts'
import { stuckAge } from '../../feedback/learn.ts'
import type { Peer } from '../../feedback/peer.ts'
import { adoptSignal } from '../../feedback/signal.ts'
import type { Learning, Upstream } from '../../feedback/upstream.ts'
import type { Zone } from '../../feedback/zone.ts'
import type { Candidates } from './candidates.ts'
import type { Rating } from './draw.ts'
import { Drifts, patienceMs } from './drifts.ts'
import { median } from './median.ts'

/** However few of its answers succeed, a peer is not taken for more than this many times as slow. */
const leastSuccess = 1e-4

/**
 * What is left of a peer's standing by its rate of success, above 0 to 1.
 * @param success below 1
 * @param errors the exponent, above 0
 */
export function merit(success: number, errors: number): number {
  return Math.max(errors === 3 ? success * success * success : success ** errors, leastSuccess)
}

/**
 * What an answer of a peer is expected to take, by what learn.ts keeps: its average, which moves to the group's
 * median while nobody asks the peer; more while requests wait there, since time waited is evidence before any
 * answer; and all that for each answer that succeeds.
 */
export class Estimate implements Rating {
  readonly #upstream: Upstream
  readonly #cohort: Cohort
  readonly #learning: Learning
  readonly #known: Float64Array
  readonly #drifts: Drifts
  readonly #stuck: boolean
  /** What holds for one moment; see `at`. */
  #now = 0
  #columns: Zone['peers']
  #answers = 0

  /**
   * @param cohort the peers that are asked about
   * @param stuck whether what is stuck at other instances counts; among those that all take the best it would herd
   */
  constructor(upstream: Upstream, cohort: Cohort, learning: Learning, stuck = true) {
    this.#upstream = upstream
    this.#cohort = cohort
    this.#learning = learning
    this.#stuck = stuck
    this.#known = new Float64Array(cohort.peers.length + cohort.backups.length)
    this.#drifts = new Drifts(learning.decay, upstream.zone.capacity)
    this.#columns = upstream.zone.peers
    adoptSignal(upstream, cohort, learning)
  }

  /** Sets the moment that the other questions are about, and takes the group's median and mean anew where too old. */
  at(now: number): void {
    const cohort = this.#cohort
    this.#now = now
    this.#columns = this.#upstream.zone.peers
    this.#answers = cohort.answers
    const taken = cohort.medianAt
    if (taken === 0 || now - taken > patienceMs) this.#renew(now)
    this.#drifts.median = cohort.median
  }

  #renew(now: number): void {
    const known = this.#known
    let count = 0
    let sum = 0
    const { peers, backups } = this.#cohort
    const { avg } = this.#columns
    for (let i = 0; i < known.length; i++) {
      const peer = i < peers.length ? peers[i]! : backups[i - peers.length]!
      const average = avg[peer.index]!
      if (average <= 0) continue
      known[count] = average
      count += 1
      sum += average
    }
    this.#cohort.median = median(known, count)
    this.#cohort.lastAverage = count > 0 ? sum / count : 0
    this.#cohort.medianAt = now
  }

  rate({ indexes, count, sampled, sharers }: Candidates, times: Float64Array): boolean {
    this.#expect(indexes, count, sampled ? this.#mean : this.#meanOf(indexes, count), sharers, times)
    return true
  }

  known(index: number): boolean {
    return this.#columns.avg[index] !== 0
  }

  /**
   * What an answer of one peer is expected to take, milliseconds.
   * @param peers how many share the requests
   */
  expected(peer: Peer, peers: number, now: number): number {
    const times = new Float64Array(1)
    this.at(now)
    this.#expect(Int32Array.of(peer.index), 1, this.#mean, peers, times)
    return times[0]!
  }

  /** Mean of all known averages when it was last taken, milliseconds; 0 while there is none. */
  get #mean(): number {
    return this.#cohort.lastAverage
  }

  /** Mean of the known averages of some; 0 while there is none. */
  #meanOf(indexes: Int32Array, count: number): number {
    const { avg } = this.#columns
    let sum = 0
    let known = 0
    for (let i = 0; i < count; i++) {
      const average = avg[indexes[i]!]!
      if (average <= 0) continue
      sum += average
      known += 1
    }
    return known > 0 ? sum / known : 0
  }

  /**
   * The average that an idle peer has drifted to.
   * @param index the peer's in the zone
   * @param peers how many share the requests
   * @returns 0 where the kept one holds
   */
  drifted(index: number, peers: number): number {
    const { avg, waiting } = this.#columns
    const average = avg[index]!
    if (average <= 0 || waiting[index]! > 0) return 0
    const stale = this.#staleness(index, 1 / (100 * peers))
    return stale > 0 ? this.#drifts.of(index, average, stale) : 0
  }

  /**
   * Writes the expected times, milliseconds, above 0, of peers into `times`.
   * @param indexes of peers in the zone, of which the first `count` are asked about
   * @param mean of the known averages: what a peer without one is taken for; 0 while there is none
   * @param peers how many share the requests
   */
  #expect(indexes: Int32Array, count: number, mean: number, peers: number, times: Float64Array): void {
    const { avg, ok, waiting, startSum } = this.#columns
    const { factor, errors } = this.#learning
    const now = this.#now
    const unknown = mean > 0 ? mean : 1
    const answersRate = 1 / (100 * peers)
    const stuck = this.#stuck && this.#upstream.zone.group[groupIndex.stuckPeers]! > 0
    for (let i = 0; i < count; i++) {
      const index = indexes[i]!
      const average = avg[index]!
      const waits = waiting[index]!
      let time = average > 0 ? average : unknown
      if (waits > 0) {
        // The same as waitingAge, on columns that are at hand.
        const age = waits * now - startSum[index]!
        if (age > 0) time += (1 - factor) * age
      } else if (average > 0) {
        const stale = this.#staleness(index, answersRate)
        if (stale > 0) time = this.#drifts.of(index, average, stale)
      }
      // What others wait for there is evidence as well.
      if (stuck) time += (1 - factor) * stuckAge(this.#columns, index, now)
      const success = ok[index]!
      if (errors > 0 && success < 1) time /= merit(success, errors)
      times[i] = time
    }
  }

  /** @param answersRate 1 / (100 · peers) */
  #staleness(index: number, answersRate: number): number {
    const { answeredAt, answersMark } = this.#columns
    const idle = this.#now - answeredAt[index]!
    return this.#drifts.staleness(idle, (this.#answers - answersMark[index]!) * answersRate)
  }
}
