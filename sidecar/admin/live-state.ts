import { mayRetry, recent } from '../../feedback/budget.ts'
import { latencyBucketsMs } from '../../feedback/fields.ts'
import type { FleetFacts } from '../../feedback/fleet/facts.ts'
import { connsLimit, peerState, peerStates, throttle } from '../../feedback/health.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { RetryBudget } from '../../feedback/policy.ts'
import { attemptReasons, denialReasons, exclusionReasons } from '../../feedback/reasons.ts'
import { reporting } from '../../feedback/report.ts'
import type { Track } from '../../feedback/track.ts'
import type { BudgetFacts, Facts, ProbeFacts, UpstreamFacts } from './facts.ts'
import { unreadiness } from './health.ts'
import { retiredOf } from './retired.ts'
import { rounded } from './tree.ts'

/*
 * What the live page is told, as two events: what rarely changes (the layout), and the numbers of every second (the
 * state), in the same order. Numbers of a peer are a list without names, which the layout gives once: with hundreds of
 * peers the names would be most of it. Times in milliseconds, moments by the wall clock, counters since the start.
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
  'durations', // how many took how long, by `words.buckets`; the last is for longer ones
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

export interface Layout {
  /** Changes whenever anything else in it does. */
  readonly layout: number
  readonly version: string
  readonly startedAt: number
  readonly words: typeof words
  readonly groups: readonly GroupLayout[]
}

const words = {
  peer: peerColumns,
  track: trackColumns,
  probe: probeColumns,
  states: peerStates,
  exclusions: exclusionReasons,
  reasons: attemptReasons,
  denials: denialReasons,
  buckets: latencyBucketsMs,
}

export interface GroupLayout {
  readonly name: string
  readonly method: string
  /** Whether its only peer is asked whatever its failures. */
  readonly single: boolean
  readonly budgets: readonly BudgetLayout[]
  readonly tracks: readonly string[]
  readonly probes: readonly ProbeLayout[]
  readonly peers: readonly PeerLayout[]
}

/** A retry budget, and the locations that have it. */
export interface BudgetLayout extends RetryBudget {
  readonly locations: readonly string[]
}

export interface ProbeLayout {
  readonly name: string
  readonly type: string
  readonly location: string
  readonly mode: string
  readonly interval: number
  readonly essential: boolean
  readonly fails: number
  readonly passes: number
}

export interface PeerLayout {
  /** Stays as long as its counters do. */
  readonly key: string
  readonly name: string
  /** As the configuration has it. */
  readonly server: string
  readonly track: string
  readonly weight: number
  readonly maxFails: number
  readonly failTimeout: number
  readonly slowStart: number
  readonly backup?: true
  /** The configuration has it no more. */
  readonly retired?: true
}

/** A group as it is shown: its peers in the order of the events, and the probes that ask them. */
interface Shown {
  readonly facts: UpstreamFacts
  readonly peers: readonly Peer[]
  /** Of each peer. */
  readonly probed: readonly (readonly ProbeFacts[])[]
  readonly probes: readonly ProbeFacts['probe'][]
  readonly budgets: readonly BudgetFacts[]
}

/** Makes the events. One serves everybody who watches. */
export class LiveState {
  readonly #facts: Facts
  #shown: readonly Shown[] = []
  #layout = ''
  #number = 0
  /** What was last told of each probe of each peer. */
  #probesTold = new Map<string, string>()

  constructor(facts: Facts) {
    this.#facts = facts
  }

  /**
   * Looks anew at what there is. To be called before the others.
   * @returns whether the layout is another one than at the last look
   */
  look(): boolean {
    const groups: GroupLayout[] = []
    this.#shown = Array.from(this.#facts.upstreams(), (facts) => {
      const { layout, shown } = lookAt(facts)
      groups.push(layout)
      return shown
    })
    const { version, startedAt } = this.#facts
    const text = JSON.stringify({ version, startedAt, groups })
    if (text === this.#layout) return false
    this.#layout = text
    this.#number += 1
    this.#probesTold = new Map()
    return true
  }

  /** A `Layout` as JSON, as the others are what they say. */
  get layout(): string {
    return `{"layout":${this.#number},"words":${wordsText},${this.#layout.slice(1)}`
  }

  get state(): string {
    const now = this.#facts.clock.now()
    const fleet = this.#facts.fleet()
    return JSON.stringify({
      layout: this.#number,
      at: Math.round(this.#facts.clock.wall()),
      program: programState(this.#facts),
      groups: this.#shown.map((group) => groupState(group, fleet, now)),
    })
  }

  /**
   * What probes have found, a row each: places of the group, of the peer and of the probe, and then `probeColumns`.
   * @param all whether of every probe, and not only where there is news since the last time
   * @returns undefined where there is nothing to tell
   */
  probes(all: boolean): string | undefined {
    const { clock } = this.#facts
    const offset = clock.wall()
    const told = all ? new Map<string, string>() : this.#probesTold
    const rows: unknown[] = []
    for (const [g, { probed, probes }] of this.#shown.entries()) {
      for (const [p, abouts] of probed.entries()) {
        for (const about of abouts) {
          const key = `${g} ${p} ${probes.indexOf(about.probe)}`
          const { last, standing, leavesMs } = about
          const mark = `${last?.at} ${last?.passed} ${standing.fails} ${standing.passes} ${leavesMs > 0}`
          if (told.get(key) === mark) continue
          told.set(key, mark)
          rows.push([g, p, probes.indexOf(about.probe), ...probeRow(about, offset)])
        }
      }
    }
    return rows.length === 0 ? undefined : JSON.stringify({ layout: this.#number, rows })
  }
}

const wordsText = JSON.stringify(words)

function lookAt(facts: UpstreamFacts): { layout: GroupLayout; shown: Shown } {
  const { upstream } = facts
  const retired = retiredOf(upstream)
  const peers = [...upstream.peers, ...upstream.backups, ...retired]
  const probed = peers.map((peer) => facts.probes(peer))
  const probes = new Map<ProbeFacts['probe'], ProbeLayout>()
  for (const about of probed.flat()) if (!probes.has(about.probe)) probes.set(about.probe, probeLayout(about))
  const { kinds, locations } = budgetKinds(facts.budgets())
  const layout: GroupLayout = {
    name: upstream.name,
    method: upstream.method,
    single: upstream.single,
    budgets: kinds.map(({ ratio, min, window }, i) => ({ ratio, min, window, locations: locations[i]! })),
    tracks: [...upstream.tracks.keys()],
    probes: [...probes.values()],
    peers: peers.map((peer, i) => peerLayout(peer, i >= peers.length - retired.length)),
  }
  return { layout, shown: { facts, peers, probed, probes: [...probes.keys()], budgets: kinds } }
}

/** Budgets that are the same are one, however many locations have it. */
function budgetKinds(budgets: readonly BudgetFacts[]): { kinds: BudgetFacts[]; locations: string[][] } {
  const kinds: BudgetFacts[] = []
  const locations: string[][] = []
  for (const budget of budgets) {
    const { ratio, min, window } = budget
    const at = kinds.findIndex((one) => one.ratio === ratio && one.min === min && one.window === window)
    if (at < 0) {
      kinds.push(budget)
      locations.push([budget.location])
    } else locations[at]!.push(budget.location)
  }
  return { kinds, locations }
}

function probeLayout({ probe, standing: { rule } }: ProbeFacts): ProbeLayout {
  const { name, kind, location, mode, interval, essential } = probe
  return {
    name,
    type: kind.name,
    location,
    mode,
    interval,
    essential,
    fails: rule.fails,
    passes: rule.passes,
  }
}

function peerLayout(peer: Peer, retired: boolean): PeerLayout {
  const { options, zone } = peer
  return {
    key: `${zone.id}.${peer.index} ${peer.name}`,
    name: peer.name,
    server: peer.server,
    track: options.track,
    weight: options.weight,
    maxFails: options.max_fails,
    failTimeout: options.fail_timeout,
    slowStart: options.slow_start,
    ...(options.backup ? { backup: true as const } : {}),
    ...(retired ? { retired: true as const } : {}),
  }
}

/** @param wall now, by the wall clock */
function probeRow({ last, standing, shared, leavesMs, nextMs }: ProbeFacts, wall: number): unknown[] {
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

function programState(facts: Facts) {
  const { accepted, dropped, active, idle } = facts.connections()
  const { running, replaced } = facts.threads()
  const last = facts.lastReload()
  return {
    ready: facts.ready(),
    draining: facts.draining(),
    unready: unreadiness(facts),
    generation: facts.generation(),
    loadedAt: Math.round(facts.loadedAt()),
    reload: last && {
      ok: last.ok,
      at: Math.round(last.at),
      error: last.ok ? undefined : last.error.slice(0, 2000),
    },
    threads: [running, replaced],
    connections: [accepted, dropped, active, idle],
    fleet: fleetState(facts.fleet()),
  }
}

function fleetState(fleet: FleetFacts | undefined) {
  if (fleet === undefined) return undefined
  const { group, name, id, servers, up, since, error, refused, silence, required, interval, ttl } = fleet
  const { exchanges, failures, losses, roundTripMs } = fleet
  return {
    ...{ group, name, id, servers, up, since, refused, required, interval, ttl, exchanges, failures, losses },
    error: error?.slice(0, 500),
    silence: silence && Math.round(silence),
    roundTripMs: roundTripMs && rounded(roundTripMs),
  }
}

function groupState({ facts, peers, budgets }: Shown, fleet: FleetFacts | undefined, now: number) {
  const { upstream } = facts
  const { zone } = upstream
  const { primary, backup } = facts.shares(now)
  // Backups get a share only where no primary has one.
  const standby = primary.some((share) => share > 0)
  const shares = [...primary, ...(standby ? backup.map(() => 0) : backup)]
  const shared = fleet?.upstream(upstream)
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
    peers: peers.map((peer, i) => peerRow(facts, peer, shares[i] ?? 0, now)),
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

function peerRow(facts: UpstreamFacts, peer: Peer, share: number, now: number): Row {
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
  ]
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
