import type { Cohort } from '../../feedback/cohort.ts'
import type { Peer } from '../../feedback/peer.ts'
import { counts } from '../../feedback/report.ts'
import { adoptSignal } from '../../feedback/signal.ts'
import type { Learning, ReportedValue, Upstream } from '../../feedback/upstream.ts'
import type { Zone } from '../../feedback/zone.ts'
import type { Candidates } from './candidates.ts'
import type { Rating } from './draw.ts'
import { Drifts, patienceMs } from './drifts.ts'
import { merit } from './estimate.ts'
import { median } from './median.ts'

/** With `inverse` no value counts for less than this part of the group's median, 0 neither: a share stays finite. */
const leastPart = 0.01
/** From where a value of 0 begins to drift, as a part of the median: by ratios it would never get away from 0. */
const driftPart = 1e-3

/**
 * What the shares of a group are by what its peers report: proportional to the value, or with `inverse` inverse to
 * it, times the weight, for each answer that succeeds. A peer whose value does not count gets the mean share.
 */
export class Reports implements Rating {
  readonly #upstream: Upstream
  readonly #cohort: Cohort
  readonly #learning: Learning
  readonly #value: ReportedValue
  readonly #weights: Float64Array
  readonly #values: Float64Array
  readonly #drifts: Drifts
  /** What holds for one moment; see `at`. */
  #now = 0
  #columns: Zone['peers']
  #answers = 0

  /** @param peers the list whose shares are asked about */
  constructor(upstream: Upstream, peers: readonly Peer[], learning: Learning, value: ReportedValue) {
    this.#upstream = upstream
    this.#cohort = upstream.cohort(peers[0])
    this.#learning = learning
    this.#value = value
    this.#weights = Float64Array.from(peers, ({ options }) => options.weight)
    this.#values = new Float64Array(this.#cohort.peers.length + this.#cohort.backups.length)
    this.#drifts = new Drifts(learning.decay, upstream.zone.capacity)
    this.#columns = upstream.zone.peers
    adoptSignal(upstream, this.#cohort, learning)
  }

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
    const { peers, backups } = this.#cohort
    const values = this.#values
    const { report, reportAt, reportSince } = this.#columns
    const due = this.#due(now)
    let count = 0
    let above = 0
    // Those above 0 come first.
    for (let i = 0; i < values.length; i++) {
      const { index } = i < peers.length ? peers[i]! : backups[i - peers.length]!
      const at = reportAt[index]!
      if (at === 0 || at <= due || now < reportSince[index]!) continue
      const value = report[index]!
      values[count++] = value
      if (value <= 0) continue
      values[count - 1] = values[above]!
      values[above++] = value
    }
    // Where most report 0 the others say what an ordinary value is.
    const middle = 2 * above > count ? median(values, count) : median(values, above)
    const least = this.#least(middle)
    let sum = 0
    for (let i = 0; i < count; i++) sum += this.#share(values[i]!, least)
    this.#cohort.median = middle
    this.#cohort.lastAverage = count > 0 ? sum / count : 0
    this.#cohort.reporting = count
    this.#cohort.medianAt = now
  }

  rate({ places, indexes, count, sampled, sharers }: Candidates, costs: Float64Array): boolean {
    const cohort = this.#cohort
    const { report, reportAt, reportSince, ok, weightFactor } = this.#columns
    const { errors } = this.#learning
    const weights = this.#weights
    const now = this.#now
    const due = this.#due(now)
    const fresh = now - patienceMs
    const least = this.#least(this.#drifts.median)
    const answersRate = 1 / (100 * sharers)
    let sum = 0
    let known = 0
    for (let i = 0; i < count; i++) {
      const index = indexes[i]!
      // The same as `counts` of report.ts, on columns that are at hand.
      const at = reportAt[index]!
      if (at === 0 || at <= due || now < reportSince[index]!) {
        costs[i] = -1
        continue
      }
      const value = at >= fresh ? report[index]! : this.#present(index, answersRate)
      const share = this.#share(value, least)
      costs[i] = share
      sum += share
      known += 1
    }
    // A sample may have missed those that report.
    if (known < 2 && !(sampled && cohort.reporting >= 2)) return false
    const mean = sampled ? cohort.lastAverage : sum / known
    // Where all that is reported is 0 the weights alone tell the peers apart.
    const alike = sum === 0 && (mean === 0 || known === count)
    for (let i = 0; i < count; i++) {
      const index = indexes[i]!
      let share = alike ? 1 : costs[i]! >= 0 ? costs[i]! : mean
      share *= weights[places[i]!]! * weightFactor[index]!
      const success = ok[index]!
      if (errors > 0 && success < 1) share *= merit(success, errors)
      costs[i] = 1 / share
    }
    return true
  }

  known(index: number): boolean {
    return counts(this.#upstream.zone, index, this.#value.expire, this.#now)
  }

  /**
   * What a peer's value has become by now.
   * @param answersRate 1 / (100 · sharers)
   */
  #present(index: number, answersRate: number): number {
    const { report, reportAt, reportMark } = this.#columns
    const value = report[index]!
    const answers = (this.#answers - reportMark[index]!) * answersRate
    const stale = this.#drifts.staleness(this.#now - reportAt[index]!, answers)
    if (stale === 0) return value
    return this.#drifts.of(index, Math.max(value, this.#drifts.median * driftPart), stale)
  }

  /** What was reported at or before this moment does not count any more. */
  #due(now: number): number {
    return now - (this.#value.expire || Number.POSITIVE_INFINITY)
  }

  /** The least that a value counts for with `inverse`; 0 while there is nothing but zeros. */
  #least(middle: number): number {
    return middle * leastPart
  }

  /** The share that a value stands for, 0 or more and finite. */
  #share(value: number, least: number): number {
    if (!this.#value.inverse) return value
    return least > 0 ? 1 / Math.max(value, least) : 1
  }
}
