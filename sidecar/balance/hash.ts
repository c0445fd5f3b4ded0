import type { Call } from '../../feedback/call.ts'
import type { Peer } from '../../feedback/peer.ts'
import { Type } from '../../feedback/schema-type.ts'
import { ConsistentHash } from './consistent-hash.ts'
import { crcEnd, crcStart, crcText } from './crc32.ts'
import type { Ask, Balancer, Method } from './method.ts'
import { maxDraws } from './random.ts'
import { RoundRobin } from './round-robin.ts'
import { Weights } from './weights.ts'

/** By the hash of a key over the weights, as Cache::Memcached distributes; a change of the group moves most keys. */
export class Hash implements Balancer {
  readonly #weights: Weights
  readonly #turns: RoundRobin
  readonly #key: (call: Call) => string

  constructor(peers: readonly Peer[], key: (call: Call) => string) {
    this.#weights = new Weights(peers)
    this.#turns = new RoundRobin(peers)
    this.#key = key
  }

  /** The key is evaluated once a request. */
  read(ask: Ask): void {
    if (typeof ask.memo !== 'string') ask.memo = this.#key(ask.call)
  }

  pick(ask: Ask): Peer | undefined {
    this.read(ask)
    const key = ask.memo
    const { total, peers } = this.#weights
    // Both go on through the request's retries: how many hashes were made, and how many of them came to nothing.
    let hashes = ask.draws >> 5
    let misses = ask.draws & 31
    if (typeof key === 'string' && key !== '' && peers.length > 1) {
      let sum = 0
      for (let i = 0; i < hashes; i++) sum += part(key, i)
      while (misses <= maxDraws) {
        sum += part(key, hashes)
        hashes += 1
        const peer = this.#weights.at(sum % total)
        const ready = ask.ready(peer)
        if (!ready) misses += 1
        ask.draws = (hashes << 5) | misses
        if (ready) return peer
      }
    }
    return this.#turns.pick(ask)
  }

  shares(ready: (peer: Peer) => boolean, now: number): number[] {
    return this.#weights.peers.length < 2
      ? this.#turns.shares(ready, now)
      : this.#weights.shares(0x8000, ready)
  }
}

/** 15 bits of the key's hash; from the second on the number of the hash is put before the key. */
function part(key: string, number: number): number {
  const start = number > 0 ? crcText(crcStart, String(number)) : crcStart
  return (crcEnd(crcText(start, key)) >>> 16) & 0x7fff
}

const args = Type.Object(
  {
    key: Type.String({ description: 'a text with variables' }),
    consistent: Type.Optional(Type.Boolean({ description: 'a change of one server moves only its keys' })),
  },
  { additionalProperties: false },
)

export const hash = {
  name: 'hash',
  summary: 'By the hash of a key: the same key, the same peer.',
  args,
  words: ['key'],
  supports: ['weight'],
  learning: () => undefined,
  create: (_upstream, peers, { key, consistent }, _env, variable) =>
    consistent ? new ConsistentHash(peers, variable(key)) : new Hash(peers, variable(key)),
} as const satisfies Method<typeof args>
