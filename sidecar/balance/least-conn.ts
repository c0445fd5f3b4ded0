import type { Peer } from '../../feedback/peer.ts'
import { Type } from '../../feedback/schema-type.ts'
import type { Ask, Balancer, Method } from './method.ts'
import { effectiveOf, leftOf, normalised, ramp, startTurns, turn, weightOf } from './round-robin.ts'

/**
 * The peer with the fewest requests in progress for its weight; among equals smooth weighted round robin.
 *
 * A peer in its slow start counts as lighter. That alone would not slow it down where few requests are in progress:
 * with none it is less busy than any, whatever its weight, and would get a full share from its first moment. So a peer
 * whose slow start is behind that of others has to wait for its turn as well.
 */
export class LeastConn implements Balancer {
  readonly #peers: readonly Peer[]

  constructor(peers: readonly Peer[]) {
    this.#peers = peers
    startTurns(peers)
  }

  pick(ask: Ask): Peer | undefined {
    const peers = this.#peers
    let best: Peer | undefined
    let bestConns = 0
    let bestWeight = 0
    let first = 0
    let tie = false
    let total = 0
    let furthest = 0
    let behind = false
    for (let i = 0; i < peers.length; i++) {
      const peer = peers[i]!
      if (!ask.ready(peer)) continue
      const part = ramp(peer, ask.now)
      const weight = weightOf(peer) * part
      total += weight
      if (part !== furthest) {
        behind ||= best !== undefined
        if (part < furthest) continue
        furthest = part
        best = undefined
      }
      const conns = peer.zone.peers.conns[peer.index]!
      // Cross-multiplied, so that no weight of 0 is divided by.
      const mine = conns * bestWeight
      const least = bestConns * weight
      if (best === undefined || mine < least) {
        best = peer
        bestConns = conns
        bestWeight = weight
        first = i
        tie = false
      } else if (mine === least) {
        tie = true
      }
    }
    const due = behind ? this.#due(ask, furthest, total, bestConns, bestWeight) : undefined
    if (due !== undefined) return due
    return tie ? this.#turn(ask, first, furthest, bestConns, bestWeight) : best
  }

  /**
   * Of the peers whose slow start is behind, the one whose turn it is and that is no busier than the best of the others.
   * @param furthest how far those are that are not behind
   * @param total of all weights as they are now
   */
  #due(ask: Ask, furthest: number, total: number, conns: number, weight: number): Peer | undefined {
    const peers = this.#peers
    const { currentWeight, conns: load } = peers[0]!.zone.peers
    let due: Peer | undefined
    let most = total / 2
    for (let i = 0; i < peers.length; i++) {
      const peer = peers[i]!
      if (!ask.ready(peer)) continue
      const part = ramp(peer, ask.now)
      if (part === furthest) continue
      const index = peer.index
      const mine = weightOf(peer) * part
      // Of the turns that it was too busy for one is saved up: more would come back as a surge.
      if (currentWeight[index]! < 1.5 * total) currentWeight[index]! += mine
      if (currentWeight[index]! < most || load[index]! * weight > conns * mine) continue
      due = peer
      most = currentWeight[index]!
    }
    if (due !== undefined) currentWeight[due.index]! -= total
    return due
  }

  /** One round among the peers from `first` on that are as loaded as it is. */
  #turn(ask: Ask, first: number, furthest: number, conns: number, weight: number): Peer {
    const peers = this.#peers
    const { currentWeight, conns: load } = peers[first]!.zone.peers
    let best = peers[first]!
    let total = 0
    for (let i = first; i < peers.length; i++) {
      const peer = peers[i]!
      const index = peer.index
      if (!ask.ready(peer)) continue
      const part = ramp(peer, ask.now)
      if (part !== furthest || load[index]! * weight !== conns * weightOf(peer) * part) continue
      const gain = turn(peer, ask.now)
      total += gain
      currentWeight[index]! += gain
      if (currentWeight[index]! > currentWeight[best.index]!) best = peer
    }
    currentWeight[best.index]! -= total
    return best
  }

  shares(ready: (peer: Peer) => boolean, now: number): number[] {
    const parts = this.#peers.map((peer) => (ready(peer) ? ramp(peer, now) : -1))
    const furthest = Math.max(-1, ...parts)
    if (furthest < 0) return parts.map(() => 0)
    const weights = this.#peers.map((peer, i) => weightOf(peer) * Math.max(0, parts[i]!))
    const loads = this.#peers.map((peer, i) => {
      const conns = peer.zone.peers.conns[peer.index]!
      // At the foot of its slow start a peer is as good as full.
      return weights[i]! > 0 ? conns / weights[i]! : Number.MAX_VALUE
    })
    const ahead = parts.map((part) => part === furthest)
    const least = loads.reduce((a, b, i) => (ahead[i] ? Math.min(a, b) : a), Number.POSITIVE_INFINITY)
    const total = weights.reduce((a, b) => a + b, 0)
    const behind = weights.map((weight, i) =>
      !ahead[i] && weight > 0 && loads[i]! <= least ? weight / total : 0,
    )
    const rest = 1 - behind.reduce((a, b) => a + b, 0)
    const turns = this.#peers.map((peer, i) =>
      ahead[i] && loads[i] === least ? leftOf(peer, effectiveOf(peer)) * parts[i]! : 0,
    )
    if (!turns.some((turn) => turn > 0)) turns[loads.findIndex((load, i) => ahead[i] && load === least)] = 1
    return normalised(turns).map((share, i) => share * rest + behind[i]!)
  }
}

const args = Type.Object({}, { additionalProperties: false })

export const leastConn = {
  name: 'least_conn',
  summary: 'The peer with the fewest requests in progress for its weight.',
  args,
  words: [],
  supports: ['weight', 'slow_start', 'backup'],
  learning: () => undefined,
  create: (_upstream, peers) => new LeastConn(peers),
} as const satisfies Method<typeof args>
