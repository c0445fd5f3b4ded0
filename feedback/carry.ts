import { monotonic } from './clock.ts'
import { failing, markDown, markUp } from './health.ts'
import { type Address, Peer, type ServerOptions } from './peer.ts'
import { unprobed } from './probe-health.ts'
import { sumShares } from './share-tree.ts'
import type { Upstream } from './upstream.ts'
import { Zone } from './zone.ts'

/** A peer that a configuration asks for. */
export interface Wanted {
  /** The argument of `server` as written. */
  readonly server: string
  /** The same of the line that it comes from, where that stands for other hosts; undefined: it is `server`. */
  readonly line?: string
  readonly name: string
  readonly address: Address
  /** `backup` says which list it goes to. */
  readonly options: ServerOptions
}

/** A group's peers in their zone, ready to build the group from. */
export interface Adopted {
  readonly zone: Zone
  readonly peers: readonly Peer[]
  readonly backups: readonly Peer[]
  /** Peers that are gone, to be given to `retire`. Their kept connections can be closed. */
  readonly removed: readonly Peer[]
}

/**
 * Lays out a group's peers, and keeps what is known of those that it had before: a peer with the same `server` text
 * and address (among several of the same, the one at the same place) keeps its slot with averages, health, ejection,
 * turn, counters and requests in progress. A peer that is gone gets no new request and keeps its slot until its last
 * call ends: see `retire`.
 *
 * The zone is the old group's. Attempts in progress go on writing to it through their own Peer objects. Balancers must
 * be made anew afterwards, since the columns may have been replaced.
 * @param old the group of that name that runs now; undefined: there is none
 * @param wanted in configuration order
 * @param now monotonic milliseconds
 * @param threads how many will work on the zone, where a new one is made; 0: only this one
 * @param room how many peers fit, where a new one is made; as many again as there are unless it is said
 */
export function adopt(
  old: Upstream | undefined,
  wanted: readonly Wanted[],
  zoneName: string,
  now: number = monotonic(),
  threads = 0,
  room = roomFor(wanted.length),
): Adopted {
  const zone = old?.zone ?? new Zone(zoneName, room, threads)
  zone.name = zoneName
  const before = old ? [...old.peers, ...old.backups] : []
  const known = new Map<string, Peer[]>()
  for (const peer of [...before, ...zone.retired]) {
    const key = keyOf(peer)
    const same = known.get(key)
    if (same) same.push(peer)
    else known.set(key, [peer])
  }
  const kept = wanted.map((each) => known.get(keyOf(each))?.shift())
  const stay = new Set(kept)
  const removed = before.filter((peer) => !stay.has(peer))
  const missing = kept.filter((peer) => peer === undefined).length
  if (missing > zone.room) zone.grow(roomFor(zone.capacity - zone.room + missing))
  const back = zone.retired.filter((peer) => stay.has(peer))
  zone.enter()
  try {
    for (const peer of back) {
      zone.settle(peer.index)
      // What probes found of it before it went says nothing any more, and nobody may be there to find otherwise.
      unprobed(peer)
      zone.retired.splice(zone.retired.indexOf(peer), 1)
    }
    const all = wanted.map((each, i) => {
      const from = kept[i]
      return from ? renew(from, each, now) : create(zone, each)
    })
    const changed = all.some((peer, i) => peer.options.weight !== kept[i]?.options.weight)
    if (old && (changed || removed.length > 0 || back.length > 0)) settleTurns(all)
    const backups = all.filter((peer) => peer.options.backup)
    if (old) refresh(zone, backups)
    return { zone, peers: all.filter((peer) => !peer.options.backup), backups, removed }
  } finally {
    zone.leave()
  }
}

/**
 * Ends the tenancy of peers of one zone: they get no new request, and their slots are free once their last calls have
 * ended. To be done once every thread picks from the new list, or there might be nobody left in the old one.
 * @param dismissed whether tunnels and sessions with them have to end soon: those of peers that a name has no more go on
 */
export function retire(zone: Zone, peers: readonly Peer[], dismissed = true): void {
  if (peers.length === 0) return
  zone.enter()
  for (const { index } of peers) {
    zone.free(index, dismissed)
    zone.peers.share[index] = 0
  }
  refresh(zone, [])
  zone.leave()
  zone.retired.push(...peers)
}

function keyOf(peer: { readonly server: string; readonly name: string }): string {
  return `${peer.server}\0${peer.name}`
}

/** Room for as many again, so that a group that grows seldom moves. Memory that is not written costs nothing. */
function roomFor(peers: number): number {
  return Math.max(16, 2 ** Math.ceil(Math.log2(2 * peers)))
}

/** A new peer counts as average, and as one that always succeeded, until it is measured. */
function create(zone: Zone, wanted: Wanted): Peer {
  const index = zone.allocate()
  if (index === undefined) throw new Error(`zone "${zone.name}" is full`)
  zone.peers.effectiveWeight[index] = wanted.options.weight
  return frame(zone, index, wanted)
}

function frame(zone: Zone, index: number, wanted: Wanted): Peer {
  return new Peer(zone, index, wanted.server, wanted.name, wanted.address, wanted.options)
}

/** The same slot under changed options, and those of its numbers brought into line that depend on them. */
function renew(from: Peer, wanted: Wanted, now: number): Peer {
  const { zone, index, options: old } = from
  const peer = frame(zone, index, wanted)
  const { options } = peer
  const numbers = zone.peers
  if (options.slow_start > 0) numbers.effectiveWeight[index] = options.weight
  else if (options.weight !== old.weight || old.slow_start > 0) {
    // The same part of the new weight as it had of the old one.
    const part = Math.floor((numbers.effectiveWeight[index]! * options.weight) / old.weight)
    numbers.effectiveWeight[index] = Math.min(options.weight, part)
  }
  if (options.slow_start === 0) numbers.slowAt[index] = 0
  if (numbers.recoverAt[index]! > 0) numbers.recoverAt[index]! += options.fail_timeout - old.fail_timeout
  // Another max_fails may set it aside now, or take it back.
  if (!failing(peer)) markUp(peer, now)
  else if (numbers.downstartWallAt[index] === 0) {
    numbers.unavailable[index]! += 1
    markDown(peer, now)
  }
  return peer
}

/**
 * Cuts the turns down to one round of the weights as they are now. What is left of a weight of a thousand would
 * otherwise give a peer of weight one hundreds of requests in a row.
 */
function settleTurns(peers: readonly Peer[]): void {
  const round = peers.reduce((sum, peer) => sum + peer.options.weight, 0)
  for (const peer of peers) {
    const turns = peer.zone.peers.currentWeight
    turns[peer.index] = Math.max(-round, Math.min(round, turns[peer.index]!))
  }
}

/** What was worked out over all peers is to be worked out anew. Shares are a matter of primaries alone. */
function refresh(zone: Zone, backups: readonly Peer[]): void {
  for (const { index } of backups) zone.peers.share[index] = 0
  sumShares(zone)
  zone.set('medianAt', 0)
}
