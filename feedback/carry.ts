import { monotonic } from './clock.ts'
import { failing, markDown, markUp } from './health.ts'
import { type Address, type Life, Peer, type ServerOptions } from './peer.ts'
import { sumShares } from './share-tree.ts'
import type { Upstream } from './upstream.ts'
import { Zone } from './zone.ts'

/** A peer that a configuration asks for. */
export interface Wanted {
  /** The argument of `server` as written. */
  readonly server: string
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
  /** The zone's own list of peers that only finish their calls; each leaves it when its last call has ended. */
  readonly retired: readonly Peer[]
  /** Peers that this change took away, those without a call included: their kept connections can be closed. */
  readonly removed: readonly Peer[]
}

/**
 * Lays out a group's peers, and keeps what is known of those that it had before: a peer with the same `server` text
 * and address (among several of the same, the one at the same place) keeps its slot with averages, health, ejection,
 * turn, counters and requests in progress. A peer that is gone gets no new request and keeps its slot until its last
 * call ends.
 *
 * The zone is the old group's. Attempts in progress go on writing to it through their own Peer objects. Balancers must
 * be made anew afterwards, since the columns may have been replaced.
 * @param old the group of that name that runs now; undefined: there is none
 * @param wanted in configuration order
 * @param now monotonic milliseconds
 */
export function adopt(
  old: Upstream | undefined,
  wanted: readonly Wanted[],
  zoneName: string,
  now: number = monotonic(),
): Adopted {
  const zone = old?.zone ?? new Zone(zoneName, roomFor(wanted.length))
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
  for (const peer of removed) retire(peer)
  const back = zone.retired.filter((peer) => stay.has(peer))
  for (const peer of back) {
    peer.life.retired = false
    zone.retired.splice(zone.retired.indexOf(peer), 1)
  }
  const missing = kept.filter((peer) => peer === undefined).length
  if (missing > zone.room) zone.grow(roomFor(zone.capacity - zone.room + missing))
  const all = wanted.map((each, i) => {
    const from = kept[i]
    return from ? renew(from, each, now) : create(zone, each)
  })
  const changed = all.some((peer, i) => peer.options.weight !== kept[i]?.options.weight)
  if (old && (changed || removed.length > 0 || back.length > 0)) settleTurns(all)
  const backups = all.filter((peer) => peer.options.backup)
  if (old) refresh(zone, backups)
  return {
    zone,
    peers: all.filter((peer) => !peer.options.backup),
    backups,
    retired: zone.retired,
    removed,
  }
}

/** Gives up the slot of a peer that carries no call any more. What was counted of it is gone with it. */
export function release(peer: Peer): void {
  const { zone, index } = peer
  const at = zone.retired.findIndex((each) => each.index === index)
  // Released already, by an attempt that ended in the same moment.
  if (at < 0) return
  zone.retired.splice(at, 1)
  zone.free(index)
}

function keyOf(peer: { readonly server: string; readonly name: string }): string {
  return `${peer.server}\0${peer.name}`
}

/** Room for as many again, so that a group that grows seldom moves. Memory that is not written costs nothing. */
function roomFor(peers: number): number {
  return Math.max(16, 2 ** Math.ceil(Math.log2(2 * peers)))
}

function retire(peer: Peer): void {
  peer.life.retired = true
  peer.zone.peers.share[peer.index] = 0
  peer.zone.retired.push(peer)
  if (peer.zone.peers.conns[peer.index] === 0) release(peer)
}

/** A new peer counts as average, and as one that always succeeded, until it is measured. */
function create(zone: Zone, wanted: Wanted): Peer {
  const index = zone.allocate()
  if (index === undefined) throw new Error(`zone "${zone.name}" is full`)
  zone.peers.effectiveWeight[index] = wanted.options.weight
  return frame(zone, index, wanted, { retired: false })
}

function frame(zone: Zone, index: number, wanted: Wanted, life: Life): Peer {
  return new Peer(zone, index, wanted.server, wanted.name, wanted.address, wanted.options, life)
}

/** The same slot under changed options, and those of its numbers brought into line that depend on them. */
function renew(from: Peer, wanted: Wanted, now: number): Peer {
  const { zone, index, options: old } = from
  const peer = frame(zone, index, wanted, from.life)
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
