import { groupIndex } from '../../feedback/fields.ts'
import type { Peer } from '../../feedback/peer.ts'
import { Type } from '../../feedback/schema-type.ts'
import type { Ask, Balancer, Env, Method } from './method.ts'
import { normalised, RoundRobin, weightOf } from './round-robin.ts'
import { Weights } from './weights.ts'

/** So many draws that fail, over all attempts of a request, and round robin takes over. */
export const maxDraws = 20

const { mostFactor } = groupIndex

/** Drawn by weight. */
export class Random implements Balancer {
  readonly #weights: Weights
  readonly #turns: RoundRobin
  readonly #env: Env

  constructor(peers: readonly Peer[], env: Env) {
    this.#weights = new Weights(peers)
    this.#turns = new RoundRobin(peers)
    this.#env = env
  }

  pick(ask: Ask): Peer | undefined {
    const weights = this.#weights
    if (weights.peers.length < 2) return this.#turns.pick(ask)
    while (ask.draws <= maxDraws) {
      const peer = weights.at(Math.floor(this.#env.random() * weights.total))
      if (ask.ready(peer) && stays(peer, this.#env)) return peer
      ask.draws += 1
    }
    return this.#turns.pick(ask)
  }

  shares(ready: (peer: Peer) => boolean): number[] {
    const { peers, total } = this.#weights
    if (thinned(peers)) return normalised(peers.map((peer) => (ready(peer) ? weightOf(peer) : 0)))
    return peers.length < 2 ? peers.map((peer) => (ready(peer) ? 1 : 0)) : this.#weights.shares(total, ready)
  }
}

/** Two drawn by weight, and of them the one with fewer requests in progress for its weight. */
export class RandomTwo implements Balancer {
  readonly #weights: Weights
  readonly #turns: RoundRobin
  readonly #env: Env

  constructor(peers: readonly Peer[], env: Env) {
    this.#weights = new Weights(peers)
    this.#turns = new RoundRobin(peers)
    this.#env = env
  }

  pick(ask: Ask): Peer | undefined {
    const weights = this.#weights
    if (weights.peers.length < 2) return this.#turns.pick(ask)
    let first: Peer | undefined
    // The first of the two counts as a draw as well.
    for (; ask.draws <= maxDraws; ask.draws += 1) {
      const peer = weights.at(Math.floor(this.#env.random() * weights.total))
      if (peer === first || !ask.ready(peer) || !stays(peer, this.#env)) continue
      if (first === undefined) first = peer
      // Of equals the second is taken.
      else return load(peer) > load(first) ? first : peer
    }
    return this.#turns.pick(ask)
  }

  /** The chances of the two draws, exactly; how seldom twenty draws are not enough is left out. */
  shares(ready: (peer: Peer) => boolean, now: number): number[] {
    const { peers } = this.#weights
    const admitted = peers.flatMap((peer, i) => (ready(peer) ? [i] : []))
    if (admitted.length < 2 || peers.length < 2) return this.#turns.shares(ready, now)
    const weight = (i: number) => weightOf(peers[i]!)
    const total = admitted.reduce((sum, i) => sum + weight(i), 0)
    // From the most loaded on: sums over the peers before which one comes in question.
    const order = admitted.toSorted((a, b) => load(peers[b]!) - load(peers[a]!))
    const shares = peers.map(() => 0)
    /** Weight of those more loaded, and the chance of one of them or an equal to be first, as odds. */
    let above = 0
    let firsts = 0
    for (let from = 0; from < order.length; ) {
      let to = from
      let equals = 0
      let odds = 0
      for (; to < order.length && load(peers[order[to]!]!) === load(peers[order[from]!]!); to++) {
        equals += weight(order[to]!)
        odds += weight(order[to]!) / (total - weight(order[to]!))
      }
      for (let k = from; k < to; k++) {
        const i = order[k]!
        const w = weight(i)
        // Second after one that is more or as loaded, or first before one that is more loaded.
        const second = (w / total) * (firsts + odds - w / (total - w))
        const first = (w / total) * (above / (total - w))
        shares[i] = second + first
      }
      above += equals
      firsts += odds
      from = to
    }
    return shares
  }
}

/** Requests in progress for each unit of weight. */
function load(peer: Peer): number {
  return peer.zone.peers.conns[peer.index]! / weightOf(peer)
}

/** Whether an agent has changed the weight of any peer: what is drawn are the configured ones. */
function thinned(peers: readonly Peer[]): boolean {
  return peers.length > 1 && peers[0]!.zone.get('mostFactor') > 0
}

/**
 * Whether a draw counts. So many of a peer's draws are passed over that what is left fits the weight that its agent
 * has asked for, beside the peer whose weight was raised most or lowered least.
 */
function stays({ zone, index }: Peer, env: Env): boolean {
  const most = zone.group[mostFactor]!
  return most === 0 || env.random() * most < zone.peers.weightFactor[index]!
}

const args = Type.Object(
  {
    mode: Type.Optional(Type.Enum(['two'], { description: 'the better of two draws' })),
    by: Type.Optional(Type.Enum(['least_conn'], { description: 'what the better one has less of' })),
  },
  { additionalProperties: false },
)

export const random = {
  name: 'random',
  summary: 'Drawn by weight; with `two` the less loaded of two drawn.',
  args,
  words: ['mode', 'by'],
  supports: ['weight'],
  misfit: ({ mode, by }) => (by !== undefined && mode === undefined ? by : undefined),
  learning: () => undefined,
  create: (_upstream, peers, { mode }, env) =>
    mode === 'two' ? new RandomTwo(peers, env) : new Random(peers, env),
} as const satisfies Method<typeof args>
