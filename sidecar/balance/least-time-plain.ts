import type { Cohort } from '../../feedback/cohort.ts'
import { hasTree } from '../../feedback/learn.ts'
import type { Peer } from '../../feedback/peer.ts'
import { peerAt, sumShares, totalShare } from '../../feedback/share-tree.ts'
import { adoptSignal } from '../../feedback/signal.ts'
import type { Learning, Upstream } from '../../feedback/upstream.ts'
import type { Ask, Balancer, Env } from './method.ts'
import { startTurns } from './round-robin.ts'

/** No peer's share is less than this part of the mean share. */
const floor = 0.01
/** So many draws from the tree that meet a peer that is not ready, and the list is walked. */
const maxMisses = 20
/** How old the sums may be: a single peer's change is in them at once, what it does to floors and the mean is not. */
const patienceMs = 100

/**
 * Angie's `least_time`: drawn independently, with a chance inverse to the average time. A peer without an average
 * counts as an average one. Large groups are drawn from by the tree of shares that learn.ts keeps current.
 */
export class LeastTimePlain implements Balancer {
  readonly #upstream: Upstream
  readonly #cohort: Cohort
  readonly #peers: readonly Peer[]
  readonly #env: Env
  /** Backups and tracks have no tree. They are walked: the ones are seldom asked, the others seldom large. */
  readonly #tree: boolean
  /** Place in the list by the index of the zone; −1 for others. */
  readonly #places: Int32Array
  readonly #shares: Float64Array
  #mean = 0
  #floor = 0

  constructor(upstream: Upstream, peers: readonly Peer[], learning: Learning, env: Env) {
    this.#upstream = upstream
    this.#peers = peers
    this.#env = env
    this.#cohort = upstream.cohort(peers[0])
    this.#tree = peers === upstream.peers && hasTree(upstream, learning)
    this.#places = new Int32Array(upstream.zone.capacity).fill(-1)
    for (const [place, peer] of peers.entries()) this.#places[peer.index] = place
    this.#shares = new Float64Array(peers.length)
    // Shares that a reload took over are for another list: this has them taken anew as well.
    adoptSignal(upstream, this.#cohort, learning)
    startTurns(peers)
  }

  pick(ask: Ask): Peer | undefined {
    return (this.#tree ? this.#draw(ask) : undefined) ?? this.#walk(ask)
  }

  #draw(ask: Ask): Peer | undefined {
    const { zone } = this.#upstream
    const at = this.#cohort.medianAt
    if (at === 0 || ask.now - at > patienceMs) this.#renew(ask.now)
    const total = totalShare(zone)
    for (let misses = 0; misses < maxMisses; misses++) {
      const index = peerAt(zone, this.#env.random() * total)
      // A zone that has grown since has peers that are not in this list.
      const place = this.#places[index] ?? -1
      if (place < 0) continue
      const peer = this.#peers[place]!
      if (!ask.ready(peer)) continue
      if (zone.peers.avg[index] === 0) ask.pick = 'unmeasured'
      return peer
    }
    return undefined
  }

  /** Brings all shares up to date with the mean and the floor. */
  #renew(now: number): void {
    const { zone } = this.#upstream
    this.#weigh(everybody)
    zone.peers.share.fill(0)
    for (let i = 0; i < this.#peers.length; i++) zone.peers.share[this.#peers[i]!.index] = this.#shares[i]!
    sumShares(zone)
    this.#cohort.lastAverage = this.#mean
    this.#cohort.medianAt = now
  }

  #walk(ask: Ask): Peer | undefined {
    const total = this.#weigh(ask)
    if (total === 0) return undefined
    let point = this.#env.random() * total
    let last = 0
    for (let i = 0; i < this.#peers.length; i++) {
      const share = this.#shares[i]!
      if (share === 0) continue
      last = i
      point -= share
      if (point < 0) break
    }
    const peer = this.#peers[last]!
    const average = peer.zone.peers.avg[peer.index]!
    if (average === 0) ask.pick = 'unmeasured'
    else if (1 / average < this.#floor) ask.pick = 'floor'
    return peer
  }

  /** Works out the share of each ready peer, 0 of the others. @returns their sum */
  #weigh(ask: { ready(peer: Peer): boolean }): number {
    const peers = this.#peers
    const shares = this.#shares
    let ready = 0
    let known = 0
    let times = 0
    let speeds = 0
    for (let i = 0; i < peers.length; i++) {
      const peer = peers[i]!
      shares[i] = 0
      if (!ask.ready(peer)) continue
      ready += 1
      // Marks the ready until their shares are known.
      shares[i] = 1
      const average = peer.zone.peers.avg[peer.index]!
      if (average <= 0) continue
      known += 1
      times += average
      speeds += 1 / average
    }
    if (ready === 0) return 0
    this.#mean = known > 0 ? times / known : 0
    const usual = known > 0 ? 1 / this.#mean : 1
    this.#floor = (floor * (speeds + (ready - known) * usual)) / ready
    let total = 0
    for (let i = 0; i < peers.length; i++) {
      if (shares[i] === 0) continue
      const average = peers[i]!.zone.peers.avg[peers[i]!.index]!
      const share = average > 0 ? 1 / average : usual
      shares[i] = Math.max(share, this.#floor)
      total += shares[i]!
    }
    return total
  }

  shares(ready: (peer: Peer) => boolean): number[] {
    const total = this.#weigh({ ready })
    return Array.from(this.#shares, (share) => (total > 0 ? share / total : 0))
  }

  expected(peer: Peer): number {
    if (!this.#tree) this.#weigh(everybody)
    return peer.zone.peers.avg[peer.index]! || this.#mean || 1
  }
}

const everybody = { ready: () => true }
