import type { Peer } from '../../feedback/peer.ts'
import { Type } from '../../feedback/schema-type.ts'
import type { Ask, Balancer, Method } from './method.ts'
import { readOctets } from './octets.ts'
import { maxDraws } from './random.ts'
import { RoundRobin } from './round-robin.ts'
import { Weights } from './weights.ts'

/** The hash counts modulo this prime. */
const modulus = 6271
const seed = 89

/** By the client's address: a /24 of IPv4, or a whole IPv6 address, stays with one peer. */
export class IpHash implements Balancer {
  readonly #weights: Weights
  readonly #turns: RoundRobin
  readonly #octets = new Uint8Array(16)

  constructor(peers: readonly Peer[]) {
    this.#weights = new Weights(peers)
    this.#turns = new RoundRobin(peers)
  }

  pick(ask: Ask): Peer | undefined {
    const { total, peers } = this.#weights
    if (peers.length > 1) {
      const octets = this.#octets
      // Three octets of IPv4, and three zeros for a client without an address.
      const count = readOctets(ask.call.remoteAddr, octets) === 16 ? 16 : 3
      // The hash goes on through the request's retries.
      let hash = typeof ask.memo === 'number' ? ask.memo : seed
      for (; ask.draws <= maxDraws; ask.draws += 1) {
        for (let i = 0; i < count; i++) hash = (hash * 113 + octets[i]!) % modulus
        ask.memo = hash
        const peer = this.#weights.at(hash % total)
        if (ask.ready(peer)) return peer
      }
    }
    return this.#turns.pick(ask)
  }

  shares(ready: (peer: Peer) => boolean, now: number): number[] {
    return this.#weights.peers.length < 2
      ? this.#turns.shares(ready, now)
      : this.#weights.shares(modulus, ready)
  }
}

const args = Type.Object({}, { additionalProperties: false })

export const ipHash = {
  name: 'ip_hash',
  summary: "By the client's address.",
  args,
  // Its hash is nginx's, which has none in `stream`.
  stream: 'never',
  words: [],
  supports: ['weight'],
  learning: () => undefined,
  create: (_upstream, peers) => new IpHash(peers),
} as const satisfies Method<typeof args>
