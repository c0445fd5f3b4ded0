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
  /** The same as indexes of the zone. */
  readonly indexes: Int32Array
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
    this.indexes = new Int32Array(peers.length)
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
      const peer = this.peers[i]!
      if (!ask.ready(peer)) continue
      this.places[this.count] = i
      this.indexes[this.count] = peer.index
      this.count += 1
    }
    this.sharers = this.count
    this.sampled = this.count > walkLimit
    if (this.sampled) this.#shuffle()
  }

  /** Names the candidate at `i` by its place in the list. */
  put(i: number, place: number): void {
    this.places[i] = place
    this.indexes[i] = this.peers[place]!.index
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
    const { peers, places, indexes } = this
    const drawn = this.#drawn
    this.#pick = (this.#pick + 1) >>> 0
    // After four thousand million picks the marks of old ones could be taken for this one's.
    if (this.#pick === 0) {
      drawn.fill(0)
      this.#pick = 1
    }
    // One throw of the dice is spread over all draws: a throw for each would cost as much as all the rest.
    let state = this.#env.random() * 2 ** 32
    const scale = peers.length / 2 ** 32
    for (let tries = 0; tries < 4 * sample; tries++) {
      state = (state + 0x9e3779b9) | 0
      const place = Math.floor((mixed(state) >>> 0) * scale)
      if (drawn[place] === this.#pick) continue
      drawn[place] = this.#pick
      const peer = peers[place]!
      if (!ask.ready(peer)) continue
      places[this.count] = place
      indexes[this.count] = peer.index
      this.count += 1
      if (this.count === sample) return true
    }
    return false
  }

  /** Leaves a sample of the gathered, each as likely. */
  #shuffle(): void {
    const { places, indexes, peers } = this
    for (let i = 0; i < sample; i++) {
      const other = i + Math.floor(this.#env.random() * (this.count - i))
      const place = places[other]!
      places[other] = places[i]!
      places[i] = place
      indexes[i] = peers[place]!.index
    }
    this.count = sample
  }
}

/** Scatters the bits of a counter (the finalizer of MurmurHash3). */
function mixed(state: number): number {
  let x = state
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b)
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35)
  return x ^ (x >>> 16)
}
