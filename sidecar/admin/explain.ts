import type { FastifyInstance } from 'fastify'
import { type AgentOrders, agentOrders } from '../../feedback/agent.ts'
import type { FleetFacts } from '../../feedback/fleet/facts.ts'
import { connsLimit, peerState } from '../../feedback/health.ts'
import { waitingAge } from '../../feedback/learn.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { ExclusionReason } from '../../feedback/reasons.ts'
import { type Reporting, reporting } from '../../feedback/report.ts'
import { stableTrack } from '../../feedback/track.ts'
import { explainFailures, failureNotes, type PeerFailures } from './explain-failures.ts'
import {
  explainFleet,
  explainPeerFleet,
  type FleetExplanation,
  fleetLine,
  leaseNote,
  type PeerFleet,
  peerFleetLine,
} from './explain-fleet.ts'
import { explainMembers, type Members, memberLines } from './explain-members.ts'
import { agentNotes, explainProbes, type ProbeExplanation, probeLine } from './explain-probes.ts'
import { explainRetries, type Retries, retryLines } from './explain-retries.ts'
import { explainShadow, type ShadowExplanation, shadowLines } from './explain-shadow.ts'
import { explainSplit, type SplitExplanation, splitLines } from './explain-split.ts'
import { type ExplainedWays, explainWays, waysLines } from './explain-ways.ts'
import type { Facts, UpstreamFacts } from './facts.ts'
import { upstreamOf } from './health.ts'
import { leftToBackups } from './series.ts'
import { rounded } from './tree.ts'

/** Why a request that came now would go where it would go. Times in milliseconds, shares 0 to 1. */
export interface Explanation extends ExplainedWays, Partial<Members> {
  readonly upstream: string
  readonly kind: 'http' | 'stream'
  readonly method: string
  /** Whether its only peer is asked whatever its failures, since there is nobody else. */
  readonly single: boolean
  readonly peers: readonly PeerExplanation[]
  /** Undefined where requests are not split over tracks. */
  readonly split: SplitExplanation | undefined
  /** Undefined where no method is tried beside the own one. */
  readonly shadow: ShadowExplanation | undefined
  readonly retries: Retries
  /** Undefined where the group is not shared with other instances. */
  readonly fleet: FleetExplanation | undefined
  /** The same for people, a line each. */
  readonly text: string
}

export interface PeerExplanation extends PeerFailures {
  readonly peer: string
  readonly backup: boolean
  readonly track: string
  readonly weight: number
  readonly state: string
  /** Chance that the next request goes here. */
  readonly share: number
  /** Why it has none; undefined when it may be picked. */
  readonly excluded: ExclusionReason | undefined
  readonly in_flight: number
  readonly max_conns: number | undefined
  /** Moving average of successful answers; undefined before the first, or where the method keeps none. */
  readonly avg: number | undefined
  /** Rate of success, 1 where all is well; undefined where the method keeps none. */
  readonly ok: number | undefined
  /** What the method expects an answer to take; undefined where it does not estimate. */
  readonly expected: number | undefined
  readonly waiting: number | undefined
  readonly waiting_age: number | undefined
  /** The share by `expected` alone, within its track; undefined where that is not known. */
  readonly fair_share: number | undefined
  /** What the peer reports of itself; undefined where the method does not go by that. */
  readonly report: Reporting | undefined
  /** What an agent on the peer has asked for; undefined where none has. */
  readonly agent: AgentOrders | undefined
  readonly probes: readonly ProbeExplanation[]
  /** What other instances contribute; undefined where the group is not shared. */
  readonly fleet: PeerFleet | undefined
}

type Query = { readonly format?: string | string[]; readonly session?: string | string[] }

/** `/explain/UPSTREAM`: as JSON or, with `?format=text`, for people; with `?session=TEXT` where such a session would go. */
export function explain(app: FastifyInstance, facts: Facts): void {
  app.get<{ Params: { '*': string }; Querystring: Query }>('/explain/*', (request, reply) => {
    const name = request.params['*']
    const group = upstreamOf(facts, name)
    reply.header('cache-control', 'no-store')
    if (group === undefined) {
      const upstreams = Array.from(facts.upstreams(), ({ upstream }) => upstream.name)
      return reply.code(404).send({ error: `no upstream "${name}"`, upstreams })
    }
    const session = [request.query.session ?? []].flat().at(-1)
    const explanation = explainUpstream(group, facts.clock.now(), facts.fleet(), session, facts)
    if (request.query.format === 'text') return reply.type('text/plain').send(explanation.text)
    return reply.send(explanation)
  })
}

/**
 * Explains a group at a moment.
 * @param now monotonic milliseconds
 * @param fleet undefined where there is none
 * @param session asked about: its id where sessions are learnt, otherwise what its cookie, or variable, says
 * @param around who knows names and changes; undefined: nobody is asked
 */
export function explainUpstream(
  group: UpstreamFacts,
  now: number,
  fleet?: FleetFacts,
  session?: string,
  around?: Pick<Facts, 'resolvers' | 'runtime'>,
): Explanation {
  const { upstream } = group
  const shares = group.shares(now)
  const about = fleet && explainFleet(group, fleet)
  const sharing = about && fleet
  const peers = [
    ...list(group, upstream.peers, shares.primary, sharing, now),
    ...list(group, upstream.backups, shares.backup, sharing, now),
  ]
  const retries = explainRetries(group, now)
  const { name, kind, method, single } = upstream
  const ways = explainWays(group, now, session)
  const split = explainSplit(group, shares.primary)
  const shadow = explainShadow(group, shares.primary, now)
  const members = around && explainMembers(group, around)
  const own = { upstream: name, kind, method, single, peers, ...members }
  const facts = { ...own, ...ways, split, shadow, retries, fleet: about }
  return { ...facts, text: toText(facts, leftToBackups(shares.primary)) }
}

function list(
  group: UpstreamFacts,
  peers: readonly Peer[],
  shares: readonly number[],
  fleet: FleetFacts | undefined,
  now: number,
): PeerExplanation[] {
  const excluded = peers.map((peer) => group.exclusion(peer, now))
  const expected = peers.map((peer) => group.expected(peer, now))
  // Fair is a share inverse to the expected time, among those that may be picked instead.
  const speed = peers.map((_, i) => (excluded[i] === undefined && expected[i]! > 0 ? 1 / expected[i]! : 0))
  const circle = ({ options }: Peer) => (group.split && !options.backup ? options.track : '')
  const total = sums(peers.map(circle), speed)
  const whole = sums(peers.map(circle), shares)
  const learns = group.upstream.learning !== undefined
  return peers.map((peer, i) => {
    const numbers = peer.zone.peers
    const at = peer.index
    return {
      peer: peer.name,
      backup: peer.options.backup,
      track: peer.options.track,
      weight: peer.options.weight,
      state: peerState(peer, now),
      share: rounded(shares[i] ?? 0),
      excluded: excluded[i],
      in_flight: numbers.conns[at]!,
      max_conns: connsLimit(peer) || undefined,
      ...explainFailures(peer, excluded[i], now),
      avg: learns && numbers.avg[at]! > 0 ? rounded(numbers.avg[at]!) : undefined,
      ok: learns ? rounded(numbers.ok[at]!) : undefined,
      expected: expected[i] === undefined ? undefined : rounded(expected[i]),
      waiting: learns ? numbers.waiting[at]! : undefined,
      waiting_age: learns ? rounded(waitingAge(peer, now)) : undefined,
      fair_share:
        total[i]! > 0 && expected[i] !== undefined ? rounded((speed[i]! / total[i]!) * whole[i]!) : undefined,
      report: reporting(peer, group.upstream, now),
      agent: agentOrders(peer),
      probes: explainProbes(group.probes(peer), now),
      fleet: fleet && explainPeerFleet(group, fleet, peer, excluded[i], now),
    }
  })
}

/** Of each number the sum over those of its kind. */
function sums(kinds: readonly string[], numbers: readonly number[]): number[] {
  const found = new Map<string, number>()
  for (const [i, kind] of kinds.entries()) found.set(kind, (found.get(kind) ?? 0) + (numbers[i] ?? 0))
  return kinds.map((kind) => found.get(kind)!)
}

/** @param left part of the requests that the backups have now */
function toText(about: Omit<Explanation, 'text'>, left: number): string {
  const lines = [`upstream ${about.upstream}, ${about.method}${about.single ? ', a single peer' : ''}`]
  for (const peer of about.peers) {
    const lease = leaseNote(peer.fleet?.lease)
    const part = peer.backup && left > 0 ? left : 1
    const share = `${(100 * part * peer.share).toFixed(1)} %`
    let what =
      peer.excluded === undefined ? share : `none, ${peer.excluded}${lease === undefined ? '' : `: ${lease}`}`
    if (peer.backup) {
      what =
        peer.excluded !== undefined || left > 0
          ? `${what} (backup)`
          : `${share} once no primary is ready (backup)`
    }
    const notes = [`${peer.in_flight} in flight`]
    if (peer.max_conns !== undefined) notes[0] += ` of ${peer.max_conns}`
    notes.push(...failureNotes(peer))
    if (peer.expected !== undefined) notes.push(`${peer.expected} ms expected`)
    if (peer.avg !== undefined) notes.push(`${peer.avg} ms on average`)
    if (peer.report !== undefined) notes.push(...reportNotes(peer.report))
    if (peer.ok !== undefined && peer.ok < 0.995) notes.push(`${(100 * peer.ok).toFixed(0)} % succeed`)
    if (peer.waiting_age) notes.push(`waited for ${Math.round(peer.waiting_age)} ms in all`)
    if (peer.agent !== undefined) notes.push(...agentNotes(peer.agent))
    const track = peer.track === stableTrack ? '' : ` (${peer.track})`
    lines.push(`  ${peer.peer}${track}: ${what}; ${notes.join(', ')}`)
    for (const probe of peer.probes) lines.push(`    ${probeLine(probe)}`)
    if (peer.fleet) lines.push(`    ${peerFleetLine(peer.fleet)}`)
  }
  for (const line of memberLines(about)) lines.push(`  ${line}`)
  if (about.split)
    for (const line of splitLines(about.split, about.backup_switch?.list === 'backups'))
      lines.push(`  ${line}`)
  if (about.shadow) for (const line of shadowLines(about.shadow)) lines.push(`  ${line}`)
  for (const line of waysLines(about)) lines.push(`  ${line}`)
  for (const line of retryLines(about.retries, about.kind)) lines.push(`  ${line}`)
  if (about.fleet) lines.push(`  ${fleetLine(about.fleet)}`)
  return `${lines.join('\n')}\n`
}

function* reportNotes({ value, age, counts, ignored }: Reporting): Generator<string> {
  if (value === undefined || age === undefined) yield 'reports nothing'
  else {
    const old = `${(age / 1000).toFixed(1)} s ago`
    yield counts
      ? `reports ${rounded(value)}, ${old}`
      : `reported ${rounded(value)}, ${old}, which does not count`
  }
  if (ignored !== undefined) yield `a report was not taken: ${ignored}`
}
