import { type AgentOrders, agentOrders } from '../../feedback/agent.ts'
import { grpcStatusNames } from '../../feedback/grpc-status.ts'
import { downtime, type PeerState, peerState } from '../../feedback/health.ts'
import { waitingAge } from '../../feedback/learn.ts'
import type { Peer } from '../../feedback/peer.ts'
import { attemptReasons, signalReasons } from '../../feedback/reasons.ts'
import { type Reporting, reporting } from '../../feedback/report.ts'
import type { Zone } from '../../feedback/zone.ts'
import type { Facts, ProbeFacts, UpstreamFacts } from './facts.ts'
import { retiredOf } from './retired.ts'
import type { Change } from './runtime-facts.ts'
import { fleetPeerEntries } from './status-fleet.ts'
import { type Entry, rounded } from './tree.ts'

/** The peers of a group in the status tree: primaries, backups, and those that only finish their calls. */
export function* peers(group: UpstreamFacts, facts: Facts): Generator<Entry> {
  const { upstream } = group
  const now = facts.clock.now()
  const fleet = facts.fleet()
  // Shares are worked out for the whole group at once, and only where somebody looks at them.
  let shares: ReturnType<UpstreamFacts['shares']> | undefined
  const share = (list: 'primary' | 'backup', at: number) => {
    shares ??= group.shares(now)
    return shares[list][at] ?? 0
  }
  function* entries(peer: Peer, state: PeerState, extras: () => Iterable<Entry>): Generator<Entry> {
    yield* peerEntries(group, peer, state, now)
    yield ['evenkeel', extras]
    const heard = fleet?.peer(upstream, peer)
    if (heard) yield ['fleet', () => fleetPeerEntries(heard)]
  }
  for (const [at, peer] of upstream.peers.entries()) {
    const extras = () =>
      withChanges(upstream.name, peer, facts, peerExtras(group, peer, now, share('primary', at)))
    yield [peer.name, () => entries(peer, peerState(peer, now), extras)]
  }
  for (const [at, peer] of upstream.backups.entries()) {
    const extras = () =>
      withChanges(upstream.name, peer, facts, peerExtras(group, peer, now, share('backup', at)))
    yield [peer.name, () => entries(peer, peerState(peer, now), extras)]
  }
  for (const peer of retiredOf(upstream)) {
    const extras = (): Entry[] => [['retired', true], ...observed(group, peer, now)]
    yield [peer.name, () => entries(peer, 'draining', extras)]
  }
}

/** What there is to tell, and what was changed of the peer while the program ran, each with what the file says. */
function* withChanges(upstream: string, peer: Peer, facts: Facts, told: Iterable<Entry>): Generator<Entry> {
  yield* told
  const changes = facts.runtime()?.of(upstream, peer) ?? []
  if (changes.length > 0)
    yield ['changed', () => changes.map((one): Entry => [one.kind, () => changeEntries(one)])]
}

/** A change, its kind apart. */
export function* changeEntries({ value, file, at, by }: Change): Generator<Entry> {
  if (value !== undefined) yield ['value', value]
  if (file !== undefined) yield ['file', file]
  yield ['at', new Date(at)]
  yield ['by', by]
}

/** What Angie tells of a peer. */
function* peerEntries(group: UpstreamFacts, peer: Peer, state: PeerState, now: number): Generator<Entry> {
  const { zone, index, options } = peer
  const numbers = zone.peers
  const { kind } = group.upstream
  const whole = (ms: number) => (ms > 0 ? Math.max(1, Math.round(ms)) : 0)
  yield ['server', peer.server]
  const service = group.service(peer)
  if (service !== undefined) yield ['service', service]
  yield ['backup', options.backup]
  yield ['weight', options.weight]
  yield ['state', state]
  yield [
    'selected',
    function* () {
      yield ['current', numbers.conns[index]!]
      yield ['total', numbers.selected[index]!]
      const last = numbers.selectedWallAt[index]!
      // Angie keeps whole seconds of it.
      if (last > 0) yield ['last', new Date(Math.floor(last / 1000) * 1000)]
    },
  ]
  if (options.max_conns > 0) yield ['max_conns', options.max_conns]
  if (kind === 'http') yield ['responses', () => responses(zone, index)]
  yield [
    'data',
    () => [
      ['sent', numbers.bytesSent[index]!],
      ['received', numbers.bytesReceived[index]!],
    ],
  ]
  yield [
    'health',
    function* () {
      yield ['fails', numbers.failsTotal[index]!]
      yield ['unavailable', numbers.unavailable[index]!]
      yield ['downtime', Math.floor(downtime(peer, now))]
      const since = numbers.downstartWallAt[index]!
      if (since > 0) yield ['downstart', new Date(since)]
      // 0 says that there is no data, so a peer that answers within half a millisecond shows 1.
      for (const [key, ms] of times(peer, kind)) yield [key, whole(ms)]
      if (group.probed) yield ['probes', () => probes(peer)]
    },
  ]
  yield ['sid', options.sid]
}

/** Its moving averages, by the names that Angie has for them; milliseconds. */
function times({ zone, index }: Peer, kind: 'http' | 'stream'): (readonly [key: string, ms: number])[] {
  const { connectTime, headerTime, responseTime } = zone.peers
  if (kind === 'http') {
    return [
      ['header_time', headerTime[index]!],
      ['response_time', responseTime[index]!],
    ]
  }
  return [
    ['connect_time', connectTime[index]!],
    ['first_byte_time', headerTime[index]!],
    ['last_byte_time', responseTime[index]!],
  ]
}

function* probes({ zone, index }: Peer): Generator<Entry> {
  const { probes, probeFails, probeWallAt } = zone.peers
  yield ['count', probes[index]!]
  yield ['fails', probeFails[index]!]
  const last = probeWallAt[index]!
  if (last > 0) yield ['last', new Date(last)]
}

/** Statuses that the peer has sent, with how often; those outside 100 to 599 together under `xxx`. */
function* responses(zone: Zone, index: number): Generator<Entry> {
  const last = zone.statuses.length - 1
  for (let i = 0; i <= last; i += 1) {
    const count = zone.statuses[i]![index]!
    if (count > 0) yield [i === last ? 'xxx' : String(100 + i), count]
  }
}

function* peerExtras(group: UpstreamFacts, peer: Peer, now: number, share: number): Generator<Entry> {
  yield ['track', peer.options.track]
  yield ['share', rounded(share)]
  const excluded = group.exclusion(peer, now)
  if (excluded !== undefined) yield ['excluded', excluded]
  const expected = group.expected(peer, now)
  if (expected !== undefined) yield ['expected', rounded(expected)]
  yield* observed(group, peer, now)
  const told = reporting(peer, group.upstream, now)
  if (told !== undefined) yield ['report', () => reports(peer, told)]
  if (group.probed) yield ['probes', () => outages(group, peer, now)]
  const orders = agentOrders(peer)
  if (orders) yield ['agent', () => agent(orders)]
}

/** How often probes have taken the peer out, and for how long they do so now. */
function* outages(group: UpstreamFacts, peer: Peer, now: number): Generator<Entry> {
  const { zone, index } = peer
  const { unhealthy, probeDownAt } = zone.peers
  yield ['unhealthy', unhealthy[index]!]
  const since = probeDownAt[index]!
  if (since > 0) yield ['out', Math.round(now - since)]
  const each = group.probes(peer)
  if (each.length > 0)
    yield ['each', () => each.map((about): Entry => [about.probe.name, () => asked(about)])]
}

/** Who asks, and who did last; where it is this instance the latter is left out. */
function* asked({ shared, leavesMs, last }: ProbeFacts): Generator<Entry> {
  yield ['scope', shared ? 'fleet' : 'instance']
  if (last) yield ['last', new Date(last.at)]
  if (last?.by !== undefined) yield ['by', last.by]
  if (leavesMs > 0) yield ['leaves', Math.round(leavesMs)]
}

function* agent({ state, weight, max_conns }: AgentOrders): Generator<Entry> {
  yield ['state', state]
  yield ['weight', rounded(weight)]
  if (max_conns !== undefined) yield ['max_conns', max_conns]
}

/** What the peer reports of itself, and how often its answers brought no value that could be taken, by reason. */
function* reports({ zone, index }: Peer, { value, age, counts }: Reporting): Generator<Entry> {
  if (value !== undefined) yield ['value', rounded(value)]
  if (age !== undefined) yield ['age', Math.round(age)]
  yield ['counts', counts]
  yield [
    'ignored',
    function* () {
      for (const [r, reason] of signalReasons.entries()) {
        const count = zone.ignored[r]![index]!
        if (count > 0) yield [reason, count]
      }
    },
  ]
}

/** What the zone says of a peer beyond Angie's fields. Times in milliseconds. */
function* observed({ upstream }: UpstreamFacts, peer: Peer, now: number): Generator<Entry> {
  const { zone, index } = peer
  const numbers = zone.peers
  yield ['avg', rounded(numbers.avg[index]!)]
  yield ['ok', rounded(numbers.ok[index]!)]
  for (const [key, ms] of times(peer, upstream.kind)) yield [key, rounded(ms)]
  yield ['waiting', numbers.waiting[index]!]
  yield ['waiting_age', rounded(waitingAge(peer, now))]
  yield ['explored', numbers.explored[index]!]
  yield ['unmeasured', numbers.unmeasured[index]!]
  yield [
    'reasons',
    function* () {
      for (const [r, reason] of attemptReasons.entries()) {
        const count = zone.reasons[r]![index]!
        if (count > 0) yield [reason, count]
      }
    },
  ]
  if (zone.grpcStatuses.some((column) => column[index]! > 0))
    yield ['grpc_responses', () => grpcResponses(zone, index)]
}

/** Statuses that calls of gRPC ended with, by name, with how often. */
function* grpcResponses(zone: Zone, index: number): Generator<Entry> {
  for (const [i, name] of grpcStatusNames.entries()) {
    const count = zone.grpcStatuses[i]![index]!
    if (count > 0) yield [name, count]
  }
}
