import type { FleetFacts } from '../../feedback/fleet/facts.ts'
import { lack } from '../../feedback/fleet/link-lines.ts'
import { connsLimit } from '../../feedback/health.ts'
import { stuckAge } from '../../feedback/learn.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { ExclusionReason } from '../../feedback/reasons.ts'
import { printable } from './explain-probes.ts'
import type { UpstreamFacts } from './facts.ts'
import { rounded } from './tree.ts'

/** What a group shares with other instances. Times in milliseconds. */
export interface FleetExplanation {
  readonly up: boolean
  /** Whether Redis was reached when it was last tried, and could not be used. */
  readonly refused: boolean
  readonly error: string | undefined
  /** Instances that share it, this one among them; undefined while that is not known. */
  readonly members: number | undefined
  /** Since the last exchange that succeeded; undefined before the first. */
  readonly age: number | undefined
}

/** What the fleet contributes to the choice of a peer. */
export interface PeerFleet {
  /** Undefined where nothing has been heard of it. */
  readonly heard: Heard | undefined
  /** Attempts of other instances that are stuck there. */
  readonly stuck: Stuck
  /** Undefined where `max_conns` is not the fleet's, and while it does not say. */
  readonly lease: Lease | undefined
}

/** What all instances together have seen of a peer since the shared state began. */
export interface Heard {
  readonly members: number
  readonly answers: number
  /** Part of them that were successes, 0 to 1; undefined without answers. */
  readonly ok: number | undefined
  readonly avg: number | undefined
  readonly in_flight: number
  /** Times that it was set aside. */
  readonly unavailable: number
}

export interface Stuck {
  readonly attempts: number
  /** Added up. */
  readonly age: number
  /** What that adds to the expected time, before the rate of success; undefined where the method does not heed it. */
  readonly adds: number | undefined
}

export interface Lease {
  /** Requests in progress that this instance may have. */
  readonly slots: number
  /** Most that all may have: `max_conns`. */
  readonly of: number
  /** Whether that alone is why the peer gets nothing. */
  readonly used_up: boolean
}

/** @returns undefined where the group is not shared */
export function explainFleet({ upstream }: UpstreamFacts, fleet: FleetFacts): FleetExplanation | undefined {
  const shared = fleet.upstream(upstream)
  if (shared === undefined) return undefined
  const age = shared.age === undefined ? undefined : Math.round(shared.age)
  const { up, refused, error } = fleet
  return { up, refused, error, members: shared.members || undefined, age }
}

/** That the fleet cannot be used, in the log's words. */
export function fleetLack({ refused, error }: Pick<FleetFacts, 'refused' | 'error'>): string {
  return lack(refused, error ?? 'no answer yet')
}

/** @param excluded why it gets nothing now */
export function explainPeerFleet(
  { upstream, heedsStuck }: UpstreamFacts,
  fleet: FleetFacts,
  peer: Peer,
  excluded: ExclusionReason | undefined,
  now: number,
): PeerFleet {
  const { zone, index } = peer
  const facts = fleet.peer(upstream, peer)
  const age = stuckAge(zone.peers, index, now)
  const { learning } = upstream
  return {
    heard: facts && {
      members: facts.members,
      answers: facts.answers,
      ok: facts.answers > 0 ? rounded(facts.good / facts.answers) : undefined,
      avg: facts.average === undefined ? undefined : rounded(facts.average),
      in_flight: facts.conns,
      unavailable: facts.ejections,
    },
    stuck: {
      attempts: zone.peers.stuckCount[index]!,
      age: rounded(age),
      adds: heedsStuck && learning ? rounded((1 - learning.factor) * age) : undefined,
    },
    lease: leaseOf(peer, excluded),
  }
}

function leaseOf(peer: Peer, excluded: ExclusionReason | undefined): Lease | undefined {
  const { conns, lease } = peer.zone.peers
  const leased = lease[peer.index]!
  if (leased === 0) return undefined
  const slots = leased - 1
  const of = connsLimit(peer)
  return { slots, of, used_up: excluded === 'busy' && slots < of && conns[peer.index]! >= slots }
}

/** Why a peer gets nothing, where that is its lease alone. */
export function leaseNote(lease: Lease | undefined): string | undefined {
  if (!lease?.used_up) return undefined
  return `its lease of ${lease.slots} of max_conns ${lease.of} for the fleet is used up`
}

/** The group's line for people. */
export function fleetLine({ up, refused, error, members, age }: FleetExplanation): string {
  if (!up) {
    return `fleet: ${printable(fleetLack({ refused, error }))}; balancing on this instance's view only`
  }
  const count = members === undefined ? 'instances not known yet' : counted(members, 'instance')
  return `fleet: ${count}, ${age === undefined ? 'nothing heard yet' : `heard ${seconds(age)} ago`}`
}

/** A peer's line for people. */
export function peerFleetLine({ heard, stuck, lease }: PeerFleet): string {
  const notes: string[] = []
  if (heard === undefined) notes.push('nothing heard of it')
  else {
    notes.push(
      `${counted(heard.members, 'instance')} with ${counted(heard.in_flight, 'request')} in flight`,
      counted(heard.answers, 'answer'),
    )
    if (heard.avg !== undefined) notes.push(`${heard.avg} ms on average`)
    if (heard.ok !== undefined) notes.push(`${Number((100 * heard.ok).toFixed(1))} % succeed`)
    if (heard.unavailable > 0) notes.push(`set aside ${counted(heard.unavailable, 'time')}`)
  }
  if (stuck.attempts > 0) {
    const adds = stuck.adds === undefined ? '' : `, which adds ${Math.round(stuck.adds)} ms`
    notes.push(`${stuck.attempts} stuck at other instances for ${Math.round(stuck.age)} ms in all${adds}`)
  }
  if (lease) notes.push(`a lease of ${lease.slots} of max_conns ${lease.of}`)
  return `fleet: ${notes.join(', ')}`
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
