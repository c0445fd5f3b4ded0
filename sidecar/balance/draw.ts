import type { Peer } from '../../feedback/peer.ts'
import { walkLimit } from '../../feedback/share-tree.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import { Candidates, sample } from './candidates.ts'
import type { Ask, Balancer, Env } from './method.ts'
import { race, raceApart, raceChances } from './race.ts'

/** A peer that should get next to nothing keeps this part of the mean share, so that it goes on being measured. */
const floor = 0.01
/** How often `best` asks whoever the dice say. */
const exploration = 0.01
/**
 * What a request in flight beyond a peer's share of them counts in the race. At 1 the tail is shortest, but peers of
 * few requests in flight are some points off their shares; at a half it is 2.4 points at most, and the tail hardly longer.
 */
const excessWeight = 0.5
/** How often the shares of a large group are averaged over its being cut into samples. */
const cuts = 16

/** What a draw goes by: each peer's cost, to which its chance is inverse. */
export interface Rating {
  /** Sets the moment that the other questions are about. */
  at(now: number): void
  /**
   * Writes the costs of the first `count` candidates, above 0; Infinity is as little as the floor allows.
   * @returns false when too little is known to tell peers apart
   */
  rate(candidates: Candidates, costs: Float64Array): boolean
  /**
   * What an average has become that nobody has renewed, where learning is to go on from that; 0 where from the kept one.
   * @param index the peer's in the zone
   * @param sharers how many share the requests
   */
  drifted?(index: number, sharers: number): number
  /** Whether there is an average of the peer's own, by its index in the zone. */
  known(index: number): boolean
}

export interface DrawOptions {
  /** The one that would end first, instead of a draw. */
  readonly best?: boolean
  /**
   * What is held in balance among busy peers: as many requests in flight at each, which is right where the cost is the
   * time that a request takes; or as many as are its share of all, where the cost says nothing of times: with even
   * numbers, peers that are as fast would get as much, whatever their costs.
   */
  readonly inFlight: 'even' | 'by share'
  /** What picks while too little is known. */
  readonly otherwise?: Balancer
}

/** A draw among ready peers, with a chance inverse to the cost among those that are as busy. */
export class Draw implements Balancer {
  readonly #upstream: Upstream
  readonly #candidates: Candidates
  readonly #rating: Rating
  readonly #best: boolean
  readonly #byShare: boolean
  readonly #otherwise: Balancer | undefined
  readonly #env: Env
  /** Of the candidates, by their order: costs, where they start in the race, and how fast they run. */
  readonly #costs: Float64Array
  readonly #starts: Float64Array
  readonly #rates: Float64Array
  /** Above this cost the floor holds. */
  #cap = Number.POSITIVE_INFINITY

  constructor(upstream: Upstream, peers: readonly Peer[], rating: Rating, env: Env, options: DrawOptions) {
    this.#upstream = upstream
    this.#candidates = new Candidates(peers, env)
    this.#rating = rating
    this.#best = options.best === true
    this.#byShare = options.inFlight === 'by share'
    this.#otherwise = options.otherwise
    this.#env = env
    this.#costs = new Float64Array(peers.length)
    this.#starts = new Float64Array(peers.length)
    this.#rates = new Float64Array(peers.length)
  }

  pick(ask: Ask): Peer | undefined {
    const candidates = this.#candidates
    this.#rating.at(ask.now)
    candidates.gather(ask)
    if (candidates.count === 0) return undefined
    if (this.#best && this.#env.random() < exploration) {
      const peer = candidates.any(ask)
      // Asking a busy peer out of turn would only add to its queue.
      if (peer !== undefined && peer.zone.peers.conns[peer.index] === 0) {
        ask.pick = 'explored'
        return this.#chosen(ask, peer)
      }
    }
    if (!this.#measure()) {
      const peer = this.#otherwise?.pick(ask)
      return peer && this.#chosen(ask, peer)
    }
    const { count } = candidates
    const winner = this.#best ? this.#least() : this.#race(count)
    const peer = candidates.peers[candidates.places[winner]!]!
    if (this.#costs[winner]! > this.#cap) ask.pick = 'floor'
    return this.#chosen(ask, peer)
  }

  drifted({ index }: Peer, now: number): number {
    this.#rating.at(now)
    return this.#rating.drifted?.(index, this.#candidates.sharers) ?? 0
  }

  #race(count: number): number {
    const run = this.#byShare ? raceApart : race
    return run(this.#starts, this.#rates, count, this.#env)
  }

  #chosen(ask: Ask, peer: Peer): Peer {
    if (ask.pick !== 'explored' && !this.#rating.known(peer.index)) ask.pick = 'unmeasured'
    ask.drifted = this.#rating.drifted?.(peer.index, this.#candidates.sharers) ?? 0
    return peer
  }

  /** Costs of the candidates and, for the race, where they start and how fast they run. */
  #measure(): boolean {
    const { indexes, count } = this.#candidates
    const { conns } = this.#upstream.zone.peers
    const costs = this.#costs
    const starts = this.#starts
    const rates = this.#rates
    if (!this.#rating.rate(this.#candidates, costs)) return false
    for (let i = 0; i < count; i++) starts[i] = conns[indexes[i]!]!
    if (this.#best) return true
    let speed = 0
    for (let i = 0; i < count; i++) {
      rates[i] = 1 / costs[i]!
      speed += rates[i]!
    }
    if (speed === 0) {
      // Nobody is to have anything: then everybody has as much.
      rates.fill(1, 0, count)
      speed = count
    }
    const least = (speed / count) * floor
    let total = 0
    for (let i = 0; i < count; i++) {
      if (rates[i]! < least) rates[i] = least
      total += rates[i]!
    }
    // To a mean of 1: the harmonic mean of the costs over each one's.
    const scale = count / total
    for (let i = 0; i < count; i++) rates[i]! *= scale
    this.#cap = 1 / least
    if (this.#byShare) this.#startByShare(count)
    return true
  }

  /** Who has more than its share of what is in flight starts later, who has less earlier. */
  #startByShare(count: number): void {
    const starts = this.#starts
    const rates = this.#rates
    let inFlight = 0
    for (let i = 0; i < count; i++) inFlight += starts[i]!
    const mean = inFlight / count
    if (mean === 0) return
    for (let i = 0; i < count; i++) starts[i] = excessWeight * (starts[i]! - mean * rates[i]!)
  }

  /** Who would answer first, behind what it has in flight; of equals each as likely. */
  #least(): number {
    let winner = 0
    let least = Number.POSITIVE_INFINITY
    let equals = 1
    for (let i = 0; i < this.#candidates.count; i++) {
      const end = this.#costs[i]! * (this.#starts[i]! + 1)
      if (end < least) {
        winner = i
        least = end
        equals = 1
      } else if (end === least) {
        equals += 1
        if (this.#env.random() * equals < 1) winner = i
      }
    }
    return winner
  }

  shares(ready: (peer: Peer) => boolean, now: number): number[] {
    const candidates = this.#candidates
    const { peers } = candidates
    const shares = peers.map(() => 0)
    const admitted = peers.flatMap((peer, i) => (ready(peer) ? [i] : []))
    const total = admitted.length
    if (total === 0) return shares
    this.#rating.at(now)
    candidates.sharers = total
    candidates.sampled = total > walkLimit
    if (candidates.sampled) {
      // Every peer meets other samples of the rest; the chances among the few are exact.
      const size = Math.ceil(total / sample) * sample
      for (let cut = 1; cut <= cuts; cut++) {
        shuffle(admitted, cut)
        for (let from = 0; from < size; from += sample) {
          for (let i = 0; i < sample; i++) candidates.put(i, admitted[(from + i) % total]!)
          candidates.count = sample
          if (!this.#addChances(shares)) return this.#others(ready, now)
        }
      }
    } else {
      for (const [i, place] of admitted.entries()) candidates.put(i, place)
      candidates.count = total
      if (!this.#addChances(shares)) return this.#others(ready, now)
    }
    const sum = shares.reduce((all, share) => all + share, 0)
    if (!this.#best) return shares.map((share) => share / sum)
    const idle = admitted.filter((place) => peers[place]!.zone.peers.conns[peers[place]!.index] === 0)
    const rest = 1 - (exploration * idle.length) / total
    const explored = new Set(idle)
    return shares.map((share, i) => (share / sum) * rest + (explored.has(i) ? exploration / total : 0))
  }

  #others(ready: (peer: Peer) => boolean, now: number): number[] {
    return this.#otherwise?.shares(ready, now) ?? this.#candidates.peers.map(() => 0)
  }

  /** Adds the candidates' chances to be picked, exploration left out. @returns false when too little is known */
  #addChances(shares: number[]): boolean {
    if (!this.#measure()) return false
    const { places, count } = this.#candidates
    if (!this.#best) {
      const chances = new Float64Array(count)
      raceChances(this.#starts, this.#rates, count, chances)
      for (let i = 0; i < count; i++) shares[places[i]!]! += chances[i]!
      return true
    }
    const ends = Array.from({ length: count }, (_, i) => this.#costs[i]! * (this.#starts[i]! + 1))
    const least = Math.min(...ends)
    const equals = ends.filter((end) => end === least).length
    for (const [i, end] of ends.entries()) if (end === least) shares[places[i]!]! += 1 / equals
    return true
  }
}

/** The same order for the same seed, so that asking twice gives one answer. */
function shuffle(places: number[], seed: number): void {
  let state = seed
  for (let i = places.length - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0
    const other = Math.floor(((state >>> 0) / 2 ** 32) * (i + 1))
    const place = places[i]!
    places[i] = places[other]!
    places[other] = place
  }
}
