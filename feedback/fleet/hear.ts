import { setAside } from '../health.ts'
import { learnEvidence, learnReport, learnStart } from '../learn-told.ts'
import type { Upstream } from '../upstream.ts'
import type { Entry } from './gather.ts'
import type { PeerRecord, Update } from './told.ts'

/*
 * What becomes of what the others have seen of a peer. Evidence is taken in, and numbers to choose by are not: were
 * all instances to choose by the same numbers, each as old as the last exchange, they would all choose the same peer.
 */

/** What an answer is to be read by. */
export interface Reading {
  /** What this instance told of the peer in the same exchange; undefined: nothing. */
  readonly own: Update | undefined
  /** From the server's time to the monotonic clock, milliseconds. */
  readonly shift: number
  /** The server's time of the answer, milliseconds since the epoch. */
  readonly serverAt: number
  /** Monotonic milliseconds. */
  readonly now: number
}

/**
 * A newcomer is given the others' average once those that have the peer have had so many answers of it each, in the mean.
 * Of fewer, which are chance, the first to ask a peer would make the average of all: where many begin together they would
 * choose alike, and for long.
 */
const startAnswers = 3
/** Older news of an ejection is none, milliseconds. */
const newsMs = 2000

/**
 * Takes in what the fleet says of a peer. To be called with the zone held.
 * @returns whether it was set aside by it
 */
export function hearPeer(entry: Entry, record: PeerRecord, upstream: Upstream, reading: Reading): boolean {
  const { heard: before } = entry
  hearLevels(entry, record, upstream, reading)
  // There is nothing to count from.
  if (before === undefined) return false
  const { own } = reading
  const { peer } = entry
  const answers = record.answers - before.answers - (own?.answers ?? 0)
  const good = record.good - before.good - (own?.good ?? 0)
  if (answers > 0) learnEvidence(upstream, peer.index, answers, Math.min(answers, Math.max(0, good)))
  hearReports(entry, record, before, upstream, reading)
  return hearEjections(entry, record, before, upstream, reading)
}

/** What is now, and not how it has changed. */
function hearLevels(entry: Entry, record: PeerRecord, upstream: Upstream, reading: Reading): void {
  const { peer, sent } = entry
  const { zone, index } = peer
  const mine = typeof sent === 'object' ? sent : undefined
  const stuck = Math.round(record.stuck - (mine?.stuck ?? 0))
  const { stuckCount, stuckStart } = zone.peers
  stuckCount[index] = Math.max(0, stuck)
  // A sum of starts by the server's clock, brought to this one's.
  const ownStart = mine ? mine.stuck * reading.serverAt - mine.stuckAge : 0
  stuckStart[index] = stuck > 0 ? record.stuckStart - ownStart + stuck * reading.shift : 0
  const newcomer = !entry.met
  entry.met = true
  // Were it given whenever it can be, all that lack it would get it at one moment, and run to the peer together.
  if (!newcomer || record.answers < startAnswers * record.members) return
  const weight = record.weight - (mine?.weight ?? 0)
  const average = (record.weighted - (mine ? mine.weight * mine.average : 0)) / weight
  if (weight > 0 && Number.isFinite(average) && average > 0) learnStart(upstream, peer, average, reading.now)
}

/** Values that peers told others count as one, and only where nobody has told this instance anything newer. */
function hearReports(
  { peer }: Entry,
  record: PeerRecord,
  before: PeerRecord,
  upstream: Upstream,
  { own, shift, now }: Reading,
): void {
  const values = record.values - before.values - (own?.values ?? 0)
  const sum = record.valueSum - before.valueSum - (own?.valueSum ?? 0)
  if (values <= 0 || !Number.isFinite(sum)) return
  const at = Math.min(now, record.valueAt + shift)
  if (at <= peer.zone.peers.reportAt[peer.index]!) return
  learnReport(upstream, peer, Math.max(0, sum / values), at)
}

/**
 * Another instance has set the peer aside. Who has seen it work since then knows better: what is broken may be the way
 * from there.
 */
function hearEjections(
  entry: Entry,
  record: PeerRecord,
  before: PeerRecord,
  upstream: Upstream,
  { own, shift, serverAt, now }: Reading,
): boolean {
  const ejections = record.ejections - before.ejections - (own?.ejections ?? 0)
  // No moment is known of one that was long on its way.
  if (ejections <= 0 || record.ejectedAt === 0 || serverAt - record.ejectedAt > newsMs) return false
  const { peer } = entry
  if (peer.zone.peers.goodAt[peer.index]! > record.ejectedAt + shift) return false
  if (!setAside(peer, upstream.isAlone(peer), now)) return false
  // It is not to be told as a finding of this instance.
  entry.imported += 1
  return true
}
