import type { Peer } from '../../feedback/peer.ts'

/**
 * The weights of a list laid end to end, peers that are down included: so nobody's keys move when a peer is marked
 * `down` or is set aside.
 */
export class Weights {
  readonly peers: readonly Peer[]
  /** Sum of all weights. */
  readonly total: number
  /** Where each peer's stretch ends; it ends before that number. */
  readonly ends: Float64Array

  constructor(peers: readonly Peer[]) {
    this.peers = peers
    this.ends = new Float64Array(peers.length)
    let total = 0
    for (const [i, peer] of peers.entries()) {
      total += peer.options.weight
      this.ends[i] = total
    }
    this.total = total
  }

  /** The peer in whose stretch a point lies, from 0 up to the total, the total excluded. */
  at(point: number): Peer {
    const { ends } = this
    let low = 0
    let high = ends.length - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if (ends[middle]! <= point) low = middle + 1
      else high = middle
    }
    return this.peers[low]!
  }

  /**
   * The share of each peer when whole numbers from 0 up to `range`, equally likely, are taken modulo the total.
   * What falls to a peer that is not ready goes to those that are, by their weights, as renewed draws would have it.
   * All 0 when nobody is ready.
   */
  shares(range: number, ready: (peer: Peer) => boolean): number[] {
    const rounds = Math.floor(range / this.total)
    const rest = range % this.total
    const admitted = this.peers.map(ready)
    let lost = 0
    let weight = 0
    const found = this.peers.map((peer, i) => {
      const end = this.ends[i]!
      const start = end - peer.options.weight
      const hits = rounds * (end - start) + Math.max(0, Math.min(end, rest) - Math.min(start, rest))
      if (admitted[i]) weight += peer.options.weight
      else lost += hits
      return admitted[i] ? hits / range : 0
    })
    if (weight === 0) return found
    return found.map((share, i) =>
      admitted[i] ? share + ((lost / range) * this.peers[i]!.options.weight) / weight : 0,
    )
  }
}
