import { mayRetry, recent } from '../../feedback/budget.ts'
import { latencyBucketsMs, sessionBucketsMs } from '../../feedback/fields.ts'
import type { FleetFacts } from '../../feedback/fleet/facts.ts'
import { connsLimit, peerState, peerStates, throttle } from '../../feedback/health.ts'
import { waitingAge } from '../../feedback/learn.ts'
import type { Peer } from '../../feedback/peer.ts'
import { attemptReasons, denialReasons, exclusionReasons } from '../../feedback/reasons.ts'
import { reporting } from '../../feedback/report.ts'
import type { Track } from '../../feedback/track.ts'
import type { Zone } from '../../feedback/zone.ts'
import type { BudgetFacts, ProbeFacts, UpstreamFacts } from './facts.ts'
import { passedCalls, passedErrors } from './passed-on.ts'
import { leftToBackups } from './series.ts'
import { rounded } from './tree.ts'

/*
 * The numbers of the live page, as lists without names: with hundreds of peers the names would be most of an event. The
 * page is told the names once, with the layout. Times in milliseconds, moments by the wall clock, counters since the start.
 */

/** Numbers of a peer, in this order. A counter never goes down as long as the peer's key is the same. */
export const peerColumns = [
  'state', // place in `words.states`
  'excluded', // 1 more than its place in `words.exclusions`; 0: it may be picked
  'share', // chance that the next request goes there
  'attempts', // begun
  'inFlight',
  'maxConns', // 0: unlimited
  'average', // of what the method learns; 0: none
  'headerTime', // moving averages; 0: none
  'responseTime',
  'ok', // rate of success that the method learns; 1 where it learns none
  'expected', // what the method expects; null: it does not estimate
  'fails', // that count towards max_fails now
  'failures', // failed attempts
  'succeeded', // attempts that ended plainly well
  'headers', // headers that came, and the time to them in all
  'headerMs',
  'reuses', // attempts on kept connections
  'connects', // connections opened, and the time that took in all
  'connectMs',
  'ramp', // part of its weight under slow_start, 0 to 1; 1 outside of it
  'report', // what it reports of itself; null: nothing
  'reportAge', // null: nothing yet
  'reportCounts', // 1 where the method goes by it
  'reasons', // place in `words.reasons` and how often, in turn, of those that were
  'passedErrors', // answers 5xx that no rule took for a failure
  'passedCalls', // the same of calls of gRPC, by their status
  'shadowPicks', // how often the method that is tried beside the group's own would have picked it
  'answering', // headers that came less attempts that ended with one; what threads held that died stays in it
  'connectTime', // moving average, of `stream` alone; 0: none
  'waited', // for how long those without a header have waited, on average; null where the method does not note it
] as const

/** Numbers of a track, in this order. */
export const trackColumns = [
  'answered', // requests, by how they ended for their clients
  'clientErrors', // with 4xx
  'serverErrors', // with 5xx
  'left', // whose clients left first
  'split', // sent there by the split, and those of them that went elsewhere
  'fallbacks',
  'ms', // time of all of them
  'durations', // how many took how long, by `words.buckets` or `words.sessionBuckets`; the last is for longer ones
] as const

/** What is told of the last time that a probe asked a peer, in this order. */
export const probeColumns = [
  'passed', // 1 or 0; null: it said nothing of the peer, or did not ask yet
  'detail', // what was seen, or why it did not pass; peers may have written it
  'at', // null: not asked yet
  'tookMs',
  'fails', // in a row up to now
  'passes',
  'nextAt', // when it is due
  'shared', // 1: one instance of the fleet asks for all
  'by', // id of the instance that asked; null: this one
  'leavesMs', // for how long this instance leaves it to the others
] as const
const longestDetail = 300

type Row = readonly (number | null | readonly number[])[]

/** What places in lists stand for, and the names of the lists' numbers. */
export const words = {
  peer: peerColumns,
  track: trackColumns,
  probe: probeColumns,
  states: peerStates,
  exclusions: exclusionReasons,
  reasons: attemptReasons,
  denials: denialReasons,
  buckets: latencyBucketsMs,
  sessionBuckets: sessionBucketsMs,
}

/** What is told of a group every second. */
export function groupState(
  facts: UpstreamFacts,
  peers: readonly Peer[],
  budgets: readonly BudgetFacts[],
  fleet: FleetFacts | undefined,
  now: number,
) {
  const { upstream } = facts
  const { zone } = upstream
  const { primary, backup } = facts.shares(now)
  const left = leftToBackups(primary)
  const shares = [...primary, ...backup.map((share) => left * share)]
  const shared = fleet?.upstream(upstream)
  const { shadow } = facts
  const answered = endedWithHeader(zone)
  return {
    requests: zone.get('requests'),
    attempts: zone.get('tries'),
    retries: zone.get('retries'),
    waiting: zone.get('retriesWaiting'),
    idle: zone.get('keepalive'),
    denials: Array.from(zone.denials),
    tracks: Array.from(upstream.tracks.values(), trackRow),
    budgets: budgets.map((budget) => {
      const { requests, retries } = recent(zone, budget.window, now)
      return [requests, retries, Number(mayRetry(upstream, budget, now))]
    }),
    fleet: shared && [
      shared.members,
      shared.age === undefined ? null : Math.round(shared.age),
      shared.resets,
    ],
    shadow: shadow && [shadow.picks, shadow.same, rounded(shadow.pickedMs), rounded(shadow.shadowMs)],
    peers: peers.map((peer, i) => peerRow(facts, peer, shares[i] ?? 0, answered, now)),
  }
}

function trackRow(track: Track): Row {
  let answered = 0
  let clientErrors = 0
  let serverErrors = 0
  for (const [code, count] of track.responses) {
    answered += count
    if (code >= 500) serverErrors += count
    else if (code >= 400 && code !== 499) clientErrors += count
  }
  const durations = Array.from({ length: latencyBucketsMs.length + 1 }, (_, at) => track.duration(at))
  return [
    answered,
    clientErrors,
    serverErrors,
    track.responses.get(499) ?? 0,
    track.get('split'),
    track.get('fallbacks'),
    rounded(track.get('requestMs')),
    durations,
  ]
}

/** Attempts that ended after their header had come, by the index of their peer. */
function endedWithHeader({ statuses, capacity }: Zone): Float64Array {
  const ended = new Float64Array(capacity)
  for (const column of statuses)
    for (let index = 0; index < capacity; index++) ended[index]! += column[index]!
  return ended
}

/** @param answered of `endedWithHeader` */
function peerRow(facts: UpstreamFacts, peer: Peer, share: number, answered: Float64Array, now: number): Row {
  const { zone, index } = peer
  const numbers = zone.peers
  const { upstream } = facts
  const learns = upstream.learning !== undefined
  // A retired peer is no longer the method's.
  const expected = peer.retired ? undefined : facts.expected(peer, now)
  const excluded = facts.exclusion(peer, now)
  const report = reporting(peer, upstream, now)
  let headers = 0
  for (const bucket of zone.headerHistogram) headers += bucket[index]!
  return [
    peerStates.indexOf(peerState(peer, now)),
    excluded === undefined ? 0 : 1 + exclusionReasons.indexOf(excluded),
    short(share),
    numbers.selected[index]!,
    numbers.conns[index]!,
    connsLimit(peer),
    learns ? short(numbers.avg[index]!) : 0,
    short(numbers.headerTime[index]!),
    short(numbers.responseTime[index]!),
    learns ? short(numbers.ok[index]!) : 1,
    expected === undefined ? null : short(expected),
    numbers.fails[index]!,
    numbers.failsTotal[index]!,
    numbers.succeeded[index]!,
    headers,
    Math.round(zone.headerSum[index]!),
    numbers.reuses[index]!,
    numbers.connects[index]!,
    Math.round(numbers.connectMs[index]!),
    short(throttle(peer, now)),
    report?.value === undefined ? null : short(report.value),
    report?.age === undefined ? null : Math.round(report.age),
    Number(report?.counts ?? false),
    counted(zone.reasons, index),
    passedErrors(peer),
    passedCalls(peer),
    facts.shadow?.picksOf(peer) ?? 0,
    // How soon there is a first byte is up to the clients of sessions as well: none of them counts as waiting.
    upstream.kind === 'stream' ? numbers.conns[index]! : headers - (answered[index] ?? 0),
    short(numbers.connectTime[index]!),
    waited(peer, upstream.kind === 'http' && upstream.learning?.mode === 'header', now),
  ]
}

/** Where it is the last byte that is measured, an answer that has begun waits as well: that is not what is asked. */
function waited(peer: Peer, atHeader: boolean, now: number): number | null {
  const waiting = peer.zone.peers.waiting[peer.index]!
  return atHeader && waiting > 0 ? Math.round(waitingAge(peer, now) / waiting) : null
}

/** Where in the list, and how often, in turn. */
function counted(columns: UpstreamFacts['upstream']['zone']['reasons'], index: number): number[] {
  const found: number[] = []
  for (let r = 0; r < columns.length; r++) {
    const count = columns[r]![index]!
    if (count > 0) found.push(r, count)
  }
  return found
}

/** Four digits are more than a page shows. */
function short(value: number): number {
  return Number.isFinite(value) ? Number(value.toPrecision(4)) : 0
}

/**
 * What is told of a probe of a peer, when there is news.
 * @param wall now, by the wall clock
 */
export function probeRow({ last, standing, shared, leavesMs, nextMs }: ProbeFacts, wall: number): unknown[] {
  const { passed, detail = '', at, tookMs, by } = last ?? {}
  return [
    passed === undefined ? null : Number(passed),
    detail.slice(0, longestDetail),
    at === undefined ? null : Math.round(at),
    tookMs === undefined ? null : rounded(tookMs),
    standing.fails,
    standing.passes,
    Math.round(wall + nextMs),
    Number(shared),
    by ?? null,
    Math.round(leavesMs),
  ]
}
