import { drift, staleness } from '../../feedback/ewma.ts'
import { groupIndex } from '../../feedback/fields.ts'
import type { Learning, Upstream } from '../../feedback/upstream.ts'
import type { Zone } from '../../feedback/zone.ts'
import { median } from './median.ts'

/** How old the group's median and mean may be, and how long a peer may be idle before its average drifts. */
const patienceMs = 100
/** However few of its answers succeed, a peer's time is not taken for more than this many times as long. */
const leastSuccess = 1e-4

/**
 * What an answer of a peer is expected to take, by what learn.ts keeps: its average, which moves to the group's
 * median while nobody asks the peer; more while requests wait there, since time waited is evidence before any
 * answer; and all that for each answer that succeeds.
 */
export class Estimate {
  readonly #upstream: Upstream
  readonly #learning: Learning
  readonly #known: Float64Array
  /** Averages and their logarithms in turn, by the zone's index. */
  readonly #logs: Float64Array
  /** What holds for one moment; see `at`. */
  #now = 0
  #columns: Zone['peers']
  /** 1 / decay; 0 where nothing is forgotten. */
  readonly #decayRate: number
  #median = 0
  #medianLog = 0
  #answers = 0

  constructor(upstream: Upstream, learning: Learning) {
    this.#upstream = upstream
    this.#learning = learning
    this.#known = new Float64Array(upstream.peers.length + upstream.backups.length)
    this.#logs = new Float64Array(2 * upstream.zone.capacity)
    this.#columns = upstream.zone.peers
    this.#decayRate = learning.decay > 0 ? 1 / learning.decay : 0
    // What a reload took over may have been another group's.
    upstream.zone.set('medianAt', 0)
  }

  /** Sets the moment that the other questions are about, and takes the group's median and mean anew where too old. */
  at(now: number): void {
    const { group, peers } = this.#upstream.zone
    this.#now = now
    this.#columns = peers
    this.#answers = group[groupIndex.answers]!
    const taken = group[groupIndex.medianAt]!
    if (taken === 0 || now - taken > patienceMs) this.#renew(now)
    const middle = group[groupIndex.median]!
    if (middle === this.#median) return
    this.#median = middle
    this.#medianLog = Math.log(middle)
  }

  #renew(now: number): void {
    const known = this.#known
    let count = 0
    let sum = 0
    const { peers, backups, zone } = this.#upstream
    for (let i = 0; i < known.length; i++) {
      const peer = i < peers.length ? peers[i]! : backups[i - peers.length]!
      const average = zone.peers.avg[peer.index]!
      if (average <= 0) continue
      known[count] = average
      count += 1
      sum += average
    }
    zone.group[groupIndex.median] = median(known, count)
    zone.group[groupIndex.lastAverage] = count > 0 ? sum / count : 0
    zone.group[groupIndex.medianAt] = now
  }

  /** Mean of the known averages when it was last taken, milliseconds; 0 while there is none. */
  get mean(): number {
    return this.#upstream.zone.group[groupIndex.lastAverage]!
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
    return stale > 0 ? this.#drift(index, average, stale) : 0
  }

  /**
   * Writes the expected times, milliseconds, above 0, of peers into `times`.
   * @param indexes of peers in the zone, of which the first `count` are asked about
   * @param mean of the known averages: what a peer without one is taken for; 0 while there is none
   * @param peers how many share the requests
   */
  expect(indexes: Int32Array, count: number, mean: number, peers: number, times: Float64Array): void {
    const { avg, ok, waiting, startSum } = this.#columns
    const { factor, errors } = this.#learning
    const now = this.#now
    const unknown = mean > 0 ? mean : 1
    const answersRate = 1 / (100 * peers)
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
        if (stale > 0) time = this.#drift(index, average, stale)
      }
      const success = ok[index]!
      if (errors > 0 && success < 1) {
        const penalty = errors === 3 ? success * success * success : success ** errors
        time /= Math.max(penalty, leastSuccess)
      }
      times[i] = time
    }
  }

  /** @param answersRate 1 / (100 · peers) */
  #staleness(index: number, answersRate: number): number {
    const { answeredAt, answersMark } = this.#columns
    const idle = this.#now - answeredAt[index]!
    if (idle <= patienceMs || this.#median <= 0) return 0
    return staleness(idle * this.#decayRate, (this.#answers - answersMark[index]!) * answersRate)
  }

  #drift(index: number, average: number, stale: number): number {
    const logs = this.#logs
    const at = 2 * index
    if (logs[at] !== average) {
      logs[at] = average
      logs[at + 1] = Math.log(average)
    }
    return drift(average, this.#medianLog - logs[at + 1]!, stale)
  }
}
