import { throttle } from '../../feedback/health.ts'
import type { Peer } from '../../feedback/peer.ts'
import { Type } from '../../feedback/schema-type.ts'
import type { Ask, Balancer, Method } from './method.ts'

/**
 * Smooth weighted round robin, nginx's: every ready peer gains its weight, the one that has most is taken and
 * pays what all have gained. Weights 5, 1, 1 give a a b a c a a. The other methods fall back on it.
 */
export class RoundRobin implements Balancer {
  readonly #peers: readonly Peer[]

  constructor(peers: readonly Peer[]) {
    this.#peers = peers
    startTurns(peers)
  }

  pick(ask: Ask): Peer | undefined {
    const peers = this.#peers
    let best: Peer | undefined
    let most = 0
    let total = 0
    for (let i = 0; i < peers.length; i++) {
      const peer = peers[i]!
      if (!ask.ready(peer)) continue
      const index = peer.index
      const current = peer.zone.peers.currentWeight
      const gain = turn(peer, ask.now)
      total += gain
      const have = current[index]! + gain
      current[index] = have
      // Strictly more: the first of equals wins.
      if (best === undefined || have > most) {
        best = peer
        most = have
      }
    }
    if (best !== undefined) best.zone.peers.currentWeight[best.index] = most - total
    return best
  }

  shares(ready: (peer: Peer) => boolean, now: number): number[] {
    const weights = this.#peers.map((peer) =>
      ready(peer) ? leftOf(peer, effectiveOf(peer)) * ramp(peer, now) : 0,
    )
    // Where all have lost their weight by failing, the first in order is taken.
    if (!weights.some((weight) => weight > 0)) {
      const first = this.#peers.findIndex((peer) => ready(peer))
      if (first >= 0) weights[first] = 1
    }
    return normalised(weights)
  }
}

/**
 * Gives peers that were never chosen their full weight, and those that were kept over a reload no more than their
 * new one. Every balancer does so for its list; safe to repeat.
 */
export function startTurns(peers: readonly Peer[]): void {
  for (const { zone, index, options } of peers) {
    const { effectiveWeight, selected } = zone.peers
    if (selected[index] === 0 || effectiveWeight[index]! > options.weight)
      effectiveWeight[index] = options.weight
  }
}

/** The configured weight, as far as an agent on the peer leaves it. */
export function weightOf(peer: Peer): number {
  return leftOf(peer, peer.options.weight)
}

/**
 * The weight as far as failures have left it. While a reload is under way a thread that still goes by the configuration
 * before it may raise it to what was configured there.
 */
export function effectiveOf({ zone, index, options }: Peer): number {
  return Math.min(zone.peers.effectiveWeight[index]!, options.weight)
}

/** What an agent on the peer leaves of a weight. */
export function leftOf({ zone, index }: Peer, weight: number): number {
  return weight * zone.peers.weightFactor[index]!
}

/** How much of its weight a peer has at this point of its slow start, 0 to 1. */
export function ramp(peer: Peer, now: number): number {
  return peer.options.slow_start > 0 ? throttle(peer, now) : 1
}

/**
 * What a peer gains in one round. A weight that failures have lowered climbs back by one each round, except with
 * slow_start, which has its own way back.
 */
export function turn(peer: Peer, now: number): number {
  const { effectiveWeight, weightFactor } = peer.zone.peers
  const { index, options } = peer
  const have = effectiveOf(peer)
  const left = have * weightFactor[index]!
  if (options.slow_start > 0) return left * throttle(peer, now)
  effectiveWeight[index] = Math.min(options.weight, have + 1)
  return left
}

/** The numbers scaled to sum to 1; all 0 where they are all 0. */
export function normalised(weights: number[]): number[] {
  let total = 0
  for (const weight of weights) total += weight
  return total > 0 ? weights.map((weight) => weight / total) : weights
}

const args = Type.Object({}, { additionalProperties: false })

export const roundRobin = {
  name: 'round_robin',
  summary: 'The default: in turn, by weight.',
  args,
  words: [],
  supports: ['weight', 'slow_start', 'backup'],
  learning: () => undefined,
  create: (_upstream, peers) => new RoundRobin(peers),
} as const satisfies Method<typeof args>
