import type { Peer } from '../../feedback/peer.ts'
import { walkLimit } from '../../feedback/share-tree.ts'
import type { Ask, Env } from './method.ts'

/** How many are looked at in a group of more than `walkLimit`. */
export const sample = 32

/**
 * Whom a pick compares: all ready peers of a group, or of a large one 32 drawn without replacement, so that the
 * cost of a pick does not grow with the group.
 */
export class Candidates {
  readonly peers: readonly Peer[]
  /** Places in `peers`; the first `count` are meant. */
  readonly places: Int32Array
  count = 0
  /** Whether they are a sample of those that are ready. */
  sampled = false
  /** How many peers share the requests: those that are ready or, where they were not counted, all. */
  sharers = 0
  readonly #env: Env
  /** The pick in which each peer was drawn last. */
  readonly #drawn: Uint32Array
  #pick = 0

  constructor(peers: readonly Peer[], env: Env) {
    this.peers = peers
    this.places = new Int32Array(peers.length)
    this.#env = env
    this.#drawn = new Uint32Array(peers.length)
  }

  gather(ask: Ask): void {
    this.count = 0
    this.sampled = this.peers.length > walkLimit && this.#draw(ask)
    this.sharers = this.peers.length
    if (this.sampled) return
    this.count = 0
    for (let i = 0; i < this.peers.length; i++) {
      if (!ask.ready(this.peers[i]!)) continue
      this.places[this.count] = i
      this.count += 1
    }
    this.sharers = this.count
    this.sampled = this.count > walkLimit
    if (this.sampled) this.#shuffle()
  }

  /** A ready peer of the whole list, uniformly; undefined when too few are ready to find one by drawing. */
  any(ask: Ask): Peer | undefined {
    const { peers } = this
    if (peers.length <= walkLimit) {
      return this.count > 0 ? peers[this.places[Math.floor(this.#env.random() * this.count)]!] : undefined
    }
    for (let i = 0; i < sample; i++) {
      const peer = peers[Math.floor(this.#env.random() * peers.length)]!
      if (ask.ready(peer)) return peer
    }
    return undefined
  }

  /** @returns false when so few are ready that looking at all is no dearer */
  #draw(ask: Ask): boolean {
    const { peers, places } = this
    const drawn = this.#drawn
    this.#pick = (this.#pick + 1) >>> 0
    // After four thousand million picks the marks of old ones could be taken for this one's.
    if (this.#pick === 0) {
      drawn.fill(0)
      this.#pick = 1
    }
    for (let tries = 0; tries < 4 * sample; tries++) {
      const place = Math.floor(this.#env.random() * peers.length)
      if (drawn[place] === this.#pick) continue
      drawn[place] = this.#pick
      if (!ask.ready(peers[place]!)) continue
      places[this.count] = place
      this.count += 1
      if (this.count === sample) return true
    }
    return false
  }

  /** Leaves a sample of the gathered, each as likely. */
  #shuffle(): void {
    const { places } = this
    for (let i = 0; i < sample; i++) {
      const other = i + Math.floor(this.#env.random() * (this.count - i))
      const place = places[other]!
      places[other] = places[i]!
      places[i] = place
    }
    this.count = sample
  }
}
