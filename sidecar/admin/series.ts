import type { FleetFacts, FleetPeerFacts } from '../../feedback/fleet/facts.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { Zone } from '../../feedback/zone.ts'
import type { Column } from '../../feedback/zone-numbers.ts'
import { escapeLabel } from './exposition.ts'
import type { UpstreamFacts } from './facts.ts'
import { retiredOf } from './retired.ts'

/** Peers that share one set of labels: one, unless a group lists an address twice. */
export interface Series {
  readonly group: UpstreamFacts
  readonly zone: Zone
  readonly first: Peer
  readonly peers: readonly Peer[]
  /** Whether the configuration has it no more. */
  readonly retired: boolean
  /** Chance that the next request goes there, 0 to 1. */
  readonly share: number
  /** What the fleet knows of it; undefined where that is nothing. */
  readonly fleet: FleetPeerFacts | undefined
  /** Labels without the closing brace: `{upstream="a",peer="127.0.0.1:80",track="stable"`. */
  readonly labels: string
}

/** The series of a group now. A retired peer has its own until its last call ends. */
export function seriesOf(group: UpstreamFacts, fleet: FleetFacts | undefined, now: number): Series[] {
  const { upstream } = group
  const { primary, backup } = group.shares(now)
  const left = leftToBackups(primary)
  const found = new Map<string, { peers: Peer[]; retired: boolean; share: number }>()
  const add = (peer: Peer, retired: boolean, share: number) => {
    const labels = `{upstream="${escapeLabel(upstream.name)}",peer="${escapeLabel(peer.name)}",track="${escapeLabel(peer.options.track)}"`
    const entry = found.get(labels)
    if (entry === undefined) {
      found.set(labels, { peers: [peer], retired, share })
      return
    }
    entry.peers.push(peer)
    entry.share += share
  }
  for (const [i, peer] of upstream.peers.entries()) add(peer, false, primary[i] ?? 0)
  for (const [i, peer] of upstream.backups.entries()) add(peer, false, left * (backup[i] ?? 0))
  for (const peer of retiredOf(upstream)) add(peer, true, 0)
  return Array.from(found, ([labels, { peers, retired, share }]) => ({
    group,
    zone: upstream.zone,
    first: peers[0]!,
    peers,
    retired,
    share,
    fleet: fleet && together(peers.flatMap((peer) => fleet.peer(upstream, peer) ?? [])),
    labels,
  }))
}

/**
 * What part of the requests no primary is there for, 0 to 1: it is the backups'. Where requests are split it may be any.
 * @param primary shares of the primaries
 */
export function leftToBackups(primary: readonly number[]): number {
  const left = 1 - primary.reduce((sum, share) => sum + share, 0)
  // Sums of what makes up 1 miss it by rounding.
  return left < 1e-9 ? 0 : left
}

/** The sum over a series, its averages being the first one's, as everywhere; undefined for nothing. */
function together(all: readonly FleetPeerFacts[]): FleetPeerFacts | undefined {
  const [first] = all
  if (first === undefined || all.length === 1) return first
  const total = (read: (one: FleetPeerFacts) => number) => all.reduce((sum, one) => sum + read(one), 0)
  return {
    ...first,
    answers: total(({ answers }) => answers),
    good: total(({ good }) => good),
    conns: total(({ conns }) => conns),
    stuck: total(({ stuck }) => stuck),
    stuckAge: total(({ stuckAge }) => stuckAge),
    lease: all.some(({ lease }) => lease !== undefined) ? total(({ lease }) => lease ?? 0) : undefined,
    ejections: total(({ ejections }) => ejections),
  }
}

/** A column's number of a series: the sum over its peers. */
export function sum(series: Series, column: Column): number {
  if (series.peers.length === 1) return column[series.first.index]!
  return series.peers.reduce((total, peer) => total + column[peer.index]!, 0)
}
