import { drift, staleness } from '../../feedback/ewma.ts'
import { groupIndex } from '../../feedback/fields.ts'
import { waitingAge } from '../../feedback/learn.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { Learning, Upstream } from '../../feedback/upstream.ts'
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

  constructor(upstream: Upstream, learning: Learning) {
    this.#upstream = upstream
    this.#learning = learning
    this.#known = new Float64Array(upstream.peers.length + upstream.backups.length)
    // What a reload took over may have been another group's.
    upstream.zone.set('medianAt', 0)
  }

  /** Takes the group's median and mean anew where they are too old. To be called before others, at each pick. */
  refresh(now: number): void {
    const { group } = this.#upstream.zone
    const at = group[groupIndex.medianAt]!
    if (at !== 0 && now - at <= patienceMs) return
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
    group[groupIndex.median] = median(known, count)
    group[groupIndex.lastAverage] = count > 0 ? sum / count : 0
    group[groupIndex.medianAt] = now
  }

  /** Mean of the known averages when it was last taken, milliseconds; 0 while there is none. */
  get mean(): number {
    return this.#upstream.zone.group[groupIndex.lastAverage]!
  }

  /**
   * The average that an idle peer has drifted to.
   * @param peers how many share the requests
   * @returns 0 where the kept one holds
   */
  drifted(peer: Peer, now: number, peers: number): number {
    const { decay } = this.#learning
    const { avg, waiting, answeredAt, answersMark } = peer.zone.peers
    const { index } = peer
    const average = avg[index]!
    if (decay <= 0 || average <= 0 || waiting[index]! > 0) return 0
    const idle = now - answeredAt[index]!
    if (idle <= patienceMs) return 0
    const { group } = this.#upstream.zone
    const middle = group[groupIndex.median]!
    if (middle <= 0) return 0
    const answers = group[groupIndex.answers]! - answersMark[index]!
    return drift(average, middle, staleness(idle, decay, answers, peers))
  }

  /**
   * Expected time, milliseconds, above 0.
   * @param mean of the known averages: what a peer without one is taken for; 0 while there is none
   * @param peers how many share the requests
   */
  expected(peer: Peer, now: number, mean: number, peers: number): number {
    const { factor, errors } = this.#learning
    const { avg, ok, waiting } = peer.zone.peers
    const { index } = peer
    let time = avg[index]!
    if (time <= 0) time = mean > 0 ? mean : 1
    if (waiting[index]! > 0) time += (1 - factor) * waitingAge(peer, now)
    else time = this.drifted(peer, now, peers) || time
    const success = ok[index]!
    if (errors === 0 || success >= 1) return time
    const penalty = errors === 3 ? success * success * success : success ** errors
    return time / Math.max(penalty, leastSuccess)
  }
}
