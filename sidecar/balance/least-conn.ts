import Type from 'typebox'
import type { Peer } from '../../feedback/peer.ts'
import type { Ask, Balancer, Method } from './method.ts'
import { normalised, ramp, startTurns, turn } from './round-robin.ts'

/** The peer with the fewest requests in progress for its weight; among equals smooth weighted round robin. */
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
    for (let i = 0; i < peers.length; i++) {
      const peer = peers[i]!
      if (!ask.ready(peer)) continue
      const conns = peer.zone.peers.conns[peer.index]!
      const weight = peer.options.weight * ramp(peer, ask.now)
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
    return tie ? this.#turn(ask, first, bestConns, bestWeight) : best
  }

  /** One round among the peers from `first` on that are as loaded as it is. */
  #turn(ask: Ask, first: number, conns: number, weight: number): Peer {
    const peers = this.#peers
    const { currentWeight, conns: load } = peers[first]!.zone.peers
    let best = peers[first]!
    let total = 0
    for (let i = first; i < peers.length; i++) {
      const peer = peers[i]!
      const index = peer.index
      if (!ask.ready(peer)) continue
      if (load[index]! * weight !== conns * peer.options.weight * ramp(peer, ask.now)) continue
      const gain = turn(peer, ask.now)
      total += gain
      currentWeight[index]! += gain
      if (currentWeight[index]! > currentWeight[best.index]!) best = peer
    }
    currentWeight[best.index]! -= total
    return best
  }

  shares(ready: (peer: Peer) => boolean, now: number): number[] {
    const loads = this.#peers.map((peer) => {
      if (!ready(peer)) return Number.POSITIVE_INFINITY
      const conns = peer.zone.peers.conns[peer.index]!
      const weight = peer.options.weight * ramp(peer, now)
      // At the foot of its slow start a peer is as good as full.
      return weight > 0 ? conns / weight : Number.MAX_VALUE
    })
    const least = loads.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY)
    if (least === Number.POSITIVE_INFINITY) return loads.map(() => 0)
    const weights = this.#peers.map((peer, i) =>
      loads[i] === least ? peer.zone.peers.effectiveWeight[peer.index]! * ramp(peer, now) : 0,
    )
    if (!weights.some((weight) => weight > 0)) weights[loads.indexOf(least)] = 1
    return normalised(weights)
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
