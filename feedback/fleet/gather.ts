import type { Peer } from '../peer.ts'
import type { Upstream } from '../upstream.ts'
import { wanted } from './leases.ts'
import type { PeerRecord, Update } from './told.ts'

/*
 * What one instance has to tell of a peer: what its numbers have grown by, and what its part of the levels is now.
 */

/** What an instance knows of a peer's standing in the fleet. */
export interface Entry {
  readonly peer: Peer
  /** Counts up to which all has been told. */
  readonly told: Counts
  /** Ejections that were not this instance's own finding, among those counted since. */
  imported: number
  /** Answers of this instance of late, with less and less weight. */
  weight: number
  /** Most requests in progress within the running `peakMs`, and the one before. */
  peaks: [number, number]
  peakAt: number
  lookedAt: number | undefined
  /** When the group was last found to have had a request, and when nobody craved anything; monotonic milliseconds. */
  askedAt: number
  calmAt: number
  /** Whether anything has ever been heard of the peer here. */
  met: boolean
  /** The levels that were told last; `unknown` where nobody knows whether they arrived. */
  sent: Update | 'nothing' | 'unknown'
  /** What was heard last; undefined while there is nothing to count from. */
  heard: PeerRecord | undefined
}

type Counts = Record<'answers' | 'good' | 'ejections' | 'values' | 'valueSum', number>

/** What holds for all peers of a group in one exchange. */
export interface Circumstances {
  /** Instances that share the group, 1 or more. */
  readonly members: number
  /** Whether the group had a request since the last time. */
  readonly asked: boolean
  /** The server's time at the last exchange, milliseconds since the epoch, and from the one before up to it. */
  readonly at: number
  readonly gap: number
  /** Monotonic milliseconds. */
  readonly now: number
}

/** After so long an answer weighs a third of a new one, milliseconds. */
const memoryMs = 10_000
/** An average that was ever measured here weighs so much at least: better an old one than none. */
const leastWeight = 0.01
/** What waits for so many times the average, and so long at least, is stuck. */
const stuckTimes = 10
const stuckMs = 10
/** How long a peak counts at least, and how long it is remembered that somebody went short, milliseconds. */
const peakMs = 300
const shortMs = 1000
/** Who craves something says so in each exchange: it is remembered over so many, and a fair part that is lacking over more. */
const cravedGaps = 2
const shortGaps = 3
/** So long a place is kept for a next request, and for a first one while others crave it, where there is one for each. */
const keptMs = 3000

/** A peer that nothing has been told of yet. What was counted before stays untold. */
export function enter(peer: Peer): Entry {
  return {
    peer,
    told: countsOf(peer),
    imported: 0,
    weight: 0,
    peaks: [0, 0],
    peakAt: 0,
    lookedAt: undefined,
    askedAt: Number.NEGATIVE_INFINITY,
    calmAt: Number.NEGATIVE_INFINITY,
    met: false,
    sent: 'nothing',
    heard: undefined,
  }
}

/** What is told of a peer that the instance has no more. */
export const leaving: Update = {
  leaves: true,
  answers: 0,
  good: 0,
  ejections: 0,
  values: 0,
  valueSum: 0,
  valueAge: 0,
  stuck: 0,
  stuckAge: 0,
  weight: 0,
  average: 0,
  conns: 0,
  limit: 0,
  have: 0,
  want: 0,
  need: 0,
}

/** What has been counted up to now is not told to anybody. To be called with the zone held. */
export function skip(entry: Entry): void {
  Object.assign(entry.told, countsOf(entry.peer))
  entry.imported = 0
  const { zone, index } = entry.peer
  zone.peers.connsPeak[index] = zone.peers.conns[index]!
}

function countsOf({ zone, index }: Peer): Counts {
  const { answers, goodAnswers, unavailable, valueCount, valueSum } = zone.peers
  return {
    answers: answers[index]!,
    good: goodAnswers[index]!,
    ejections: unavailable[index]!,
    values: valueCount[index]!,
    valueSum: valueSum[index]!,
  }
}

/**
 * What is to be told of a peer now. It counts as told. To be called with the zone held.
 * @returns undefined where nothing has changed
 */
export function lookAt(entry: Entry, upstream: Upstream, circumstances: Circumstances): Update | undefined {
  const { peer, told, sent } = entry
  const { now } = circumstances
  const { zone, index, options } = peer
  const numbers = zone.peers
  const answers = numbers.answers[index]! - told.answers
  const good = numbers.goodAnswers[index]! - told.good
  const ejections = numbers.unavailable[index]! - told.ejections - entry.imported
  const values = numbers.valueCount[index]! - told.values
  const valueSum = numbers.valueSum[index]! - told.valueSum
  // In its place: this is done for every peer several times a second.
  told.answers += answers
  told.good += good
  told.ejections = numbers.unavailable[index]!
  told.values += values
  told.valueSum = numbers.valueSum[index]!
  entry.imported = 0
  entry.weight *= Math.exp((Math.min(entry.lookedAt ?? now, now) - now) / memoryMs)
  entry.weight += answers
  entry.lookedAt = now
  const measured = upstream.learning !== undefined && told.answers > 0 && numbers.avg[index]! > 0
  const waiting = numbers.waiting[index]!
  const age = waiting > 0 ? Math.max(0, waiting * now - numbers.startSum[index]!) : 0
  const usual = numbers.avg[index]! || upstream.cohort(peer).lastAverage
  // By reports and not by times nobody knows what is long.
  const long = upstream.learning?.value === undefined && usual > 0
  const stuck = long && age > waiting * Math.max(stuckMs, stuckTimes * usual)
  const limit = options.max_conns_scope === 'fleet' ? options.max_conns : 0
  const update: Update = {
    leaves: false,
    answers,
    good,
    ejections: Math.max(0, ejections),
    values,
    valueSum,
    valueAge: numbers.reportAt[index]! > 0 ? Math.max(0, now - numbers.reportAt[index]!) : 0,
    stuck: stuck ? waiting : 0,
    stuckAge: stuck ? age : 0,
    weight: measured ? Math.max(leastWeight, entry.weight) : 0,
    average: measured ? numbers.avg[index]! : 0,
    conns: numbers.conns[index]!,
    limit,
    have: 0,
    want: 0,
    need: 0,
  }
  if (limit > 0) demand(entry, update, circumstances)
  return isNews(update, sent) ? update : undefined
}

/** What the instance would like to have of a limit that is the fleet's. What it gives back it does without from now on. */
function demand(entry: Entry, update: Update, circumstances: Circumstances): void {
  const { peer, heard } = entry
  const { members, at, gap, now } = circumstances
  const { conns, connsPeak, lease } = peer.zone.peers
  const { index } = peer
  if (now - entry.peakAt > peakMs) {
    entry.peaks = [0, entry.peaks[0]]
    entry.peakAt = now
  }
  const latest = connsPeak[index]!
  entry.peaks[0] = Math.max(entry.peaks[0], latest)
  connsPeak[index] = conns[index]!
  const have = Math.max(0, lease[index]! - 1)
  const { shortAt, cravedAt } = heard ?? { shortAt: 0, cravedAt: 0 }
  const short = shortAt > 0 && at - shortAt < Math.max(shortMs, shortGaps * gap)
  const craved = cravedAt > 0 && at - cravedAt < cravedGaps * gap
  if (circumstances.asked) entry.askedAt = now
  if (!craved) entry.calmAt = now
  const enough = members <= update.limit
  const asked = enough ? now - entry.askedAt < keptMs : circumstances.asked
  const keeps = enough && now - entry.calmAt < keptMs
  const free = update.limit - (heard?.leased ?? 0)
  const peak = short ? latest : Math.max(...entry.peaks)
  update.have = have
  const { limit, conns: busy } = update
  const wish = wanted({ limit, members, conns: busy, peak, have, asked, keeps, free, short, craved })
  update.want = wish.want
  update.need = wish.need
  if (lease[index]! > 0 && update.want < have) lease[index] = update.want + 1
}

/** Whether it says more than what was told last. */
function isNews(update: Update, sent: Entry['sent']): boolean {
  if (sent === 'nothing' || sent === 'unknown') return true
  const { answers, ejections, values, stuck, conns, want, need, have, limit, weight, average } = update
  if (answers > 0 || ejections > 0 || values > 0) return true
  if (stuck > 0 || sent.stuck > 0) return true
  if (conns !== sent.conns || limit !== sent.limit) return true
  // Somebody may have given something back meanwhile, and is to know of what is lacking as long as it is.
  if (limit > 0 && (want !== sent.want || have !== want || need !== sent.need || need > have)) return true
  // An average that nobody renews loses weight beside others.
  return average !== sent.average || weight < sent.weight / 2
}
