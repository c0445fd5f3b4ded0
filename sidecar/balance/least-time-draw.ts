import type { Peer } from '../../feedback/peer.ts'
import { walkLimit } from '../../feedback/share-tree.ts'
import type { Learning, Upstream } from '../../feedback/upstream.ts'
import { Candidates, sample } from './candidates.ts'
import { Estimate } from './estimate.ts'
import type { Ask, Balancer, Env } from './method.ts'
import { race, raceChances } from './race.ts'
import { startTurns } from './round-robin.ts'

/** A slow peer keeps this part of the mean share, so that it goes on being measured. */
const floor = 0.01
/** How often `best` asks whoever the dice say. */
const exploration = 0.01
/** How often the shares of a large group are averaged over its being cut into samples. */
const cuts = 16

/**
 * By expected time. Ordinarily a draw, with a chance inverse to it among peers that are as busy; with `best` the
 * peer that would answer first.
 */
export class LeastTime implements Balancer {
  readonly #upstream: Upstream
  readonly #candidates: Candidates
  readonly #estimate: Estimate
  readonly #best: boolean
  readonly #env: Env
  /** Of the candidates, by their order: expected times, requests in flight, rates of the race. */
  readonly #times: Float64Array
  readonly #starts: Float64Array
  readonly #rates: Float64Array
  /** Above this time the floor holds. */
  #cap = Number.POSITIVE_INFINITY

  constructor(
    upstream: Upstream,
    peers: readonly Peer[],
    options: { readonly learning: Learning; readonly best: boolean },
    env: Env,
  ) {
    this.#upstream = upstream
    this.#candidates = new Candidates(peers, env)
    this.#estimate = new Estimate(upstream, options.learning)
    this.#best = options.best
    this.#env = env
    this.#times = new Float64Array(peers.length)
    this.#starts = new Float64Array(peers.length)
    this.#rates = new Float64Array(peers.length)
    startTurns(peers)
  }

  pick(ask: Ask): Peer | undefined {
    const candidates = this.#candidates
    this.#estimate.at(ask.now)
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
    this.#measure()
    const { count } = candidates
    const winner = this.#best ? this.#least() : race(this.#starts, this.#rates, count, this.#env)
    const peer = candidates.peers[candidates.places[winner]!]!
    if (this.#times[winner]! > this.#cap) ask.pick = 'floor'
    if (peer.zone.peers.avg[peer.index] === 0) ask.pick = 'unmeasured'
    return this.#chosen(ask, peer)
  }

  #chosen(ask: Ask, peer: Peer): Peer {
    ask.drifted = this.#estimate.drifted(peer.index, this.#candidates.sharers)
    return peer
  }

  /** Expected times of the candidates, what they have in flight and, for the race, their rates. */
  #measure(): void {
    const { indexes, count, sampled, sharers } = this.#candidates
    const { conns } = this.#upstream.zone.peers
    const times = this.#times
    const starts = this.#starts
    const rates = this.#rates
    for (let i = 0; i < count; i++) starts[i] = conns[indexes[i]!]!
    const mean = sampled ? this.#estimate.mean : this.#mean()
    this.#estimate.expect(indexes, count, mean, sharers, times)
    if (this.#best) return
    let speed = 0
    for (let i = 0; i < count; i++) {
      rates[i] = 1 / times[i]!
      speed += rates[i]!
    }
    const least = (speed / count) * floor
    let total = 0
    for (let i = 0; i < count; i++) {
      if (rates[i]! < least) rates[i] = least
      total += rates[i]!
    }
    // To a mean of 1: the harmonic mean of the times over each one's.
    const scale = count / total
    for (let i = 0; i < count; i++) rates[i]! *= scale
    this.#cap = 1 / least
  }

  /** Mean of the candidates' known averages; 0 while there is none. */
  #mean(): number {
    const { indexes, count } = this.#candidates
    const { avg } = this.#upstream.zone.peers
    let sum = 0
    let known = 0
    for (let i = 0; i < count; i++) {
      const average = avg[indexes[i]!]!
      if (average <= 0) continue
      sum += average
      known += 1
    }
    return known > 0 ? sum / known : 0
  }

  /** Who would answer first, behind what it has in flight; of equals each as likely. */
  #least(): number {
    let winner = 0
    let least = Number.POSITIVE_INFINITY
    let equals = 1
    for (let i = 0; i < this.#candidates.count; i++) {
      const end = this.#times[i]! * (this.#starts[i]! + 1)
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
    this.#estimate.at(now)
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
          this.#addChances(shares)
        }
      }
    } else {
      for (const [i, place] of admitted.entries()) candidates.put(i, place)
      candidates.count = total
      this.#addChances(shares)
    }
    const sum = shares.reduce((all, share) => all + share, 0)
    if (!this.#best) return shares.map((share) => share / sum)
    const idle = admitted.filter((place) => peers[place]!.zone.peers.conns[peers[place]!.index] === 0)
    const rest = 1 - (exploration * idle.length) / total
    const explored = new Set(idle)
    return shares.map((share, i) => (share / sum) * rest + (explored.has(i) ? exploration / total : 0))
  }

  /** Adds the candidates' chances to be picked, exploration left out. */
  #addChances(shares: number[]): void {
    this.#measure()
    const { places, count } = this.#candidates
    if (!this.#best) {
      const chances = new Float64Array(count)
      raceChances(this.#starts, this.#rates, count, chances)
      for (let i = 0; i < count; i++) shares[places[i]!]! += chances[i]!
      return
    }
    const ends = Array.from({ length: count }, (_, i) => this.#times[i]! * (this.#starts[i]! + 1))
    const least = Math.min(...ends)
    const equals = ends.filter((end) => end === least).length
    for (const [i, end] of ends.entries()) if (end === least) shares[places[i]!]! += 1 / equals
  }

  expected(peer: Peer, now: number): number {
    const { indexes, peers } = this.#candidates
    this.#estimate.at(now)
    indexes[0] = peer.index
    this.#estimate.expect(indexes, 1, this.#estimate.mean, peers.length, this.#times)
    return this.#times[0]!
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
