import type { Call } from '../../feedback/call.ts'
import type { Peer } from '../../feedback/peer.ts'
import { crcEnd, crcStart, crcText } from './crc32.ts'
import type { Ask, Balancer } from './method.ts'
import { maxDraws } from './random.ts'
import { type Ring, ringOf } from './ring.ts'
import { effectiveOf, leftOf, RoundRobin, turn } from './round-robin.ts'

/**
 * By the hash of a key on a ring of points: a change of one server moves only its keys. A point stands for the
 * server as written and so for all addresses of its name, which take turns.
 */
export class ConsistentHash implements Balancer {
  readonly #peers: readonly Peer[]
  readonly #turns: RoundRobin
  readonly #key: (call: Call) => string
  readonly #ring: Ring
  /** The peers of each server of the ring. */
  readonly #members: readonly (readonly Peer[])[]
  #divided: Division | undefined

  constructor(peers: readonly Peer[], key: (call: Call) => string) {
    this.#peers = peers
    this.#turns = new RoundRobin(peers)
    this.#key = key
    const byServer = new Map<string, Peer[]>()
    for (const peer of peers) {
      const members = byServer.get(peer.server)
      if (members) members.push(peer)
      else byServer.set(peer.server, [peer])
    }
    this.#members = [...byServer.values()]
    // Peers of one server would repeat each other's points: the heaviest has all of them.
    this.#ring = ringOf(
      Array.from(byServer, ([server, members]) => ({
        server,
        weight: Math.max(...members.map(({ options }) => options.weight)),
      })),
    )
  }

  /** The key is evaluated once a request. */
  read(ask: Ask): void {
    if (typeof ask.memo !== 'string') ask.memo = this.#key(ask.call)
  }

  pick(ask: Ask): Peer | undefined {
    this.read(ask)
    const key = ask.memo
    const { hashes, owners } = this.#ring
    if (typeof key === 'string' && key !== '' && this.#peers.length > 1) {
      // Each point that was passed over counts, so they say where a retry goes on.
      let at = (this.#ring.find(crcEnd(crcText(crcStart, key))) + ask.draws) % hashes.length
      for (; ask.draws <= maxDraws; ask.draws += 1) {
        const peer = turnOf(this.#members[owners[at]!]!, ask)
        if (peer !== undefined) return peer
        at = at + 1 === hashes.length ? 0 : at + 1
      }
    }
    return this.#turns.pick(ask)
  }

  /** Exactly the arcs of the ring, each with the points that stand in for one that is not ready. */
  shares(ready: (peer: Peer) => boolean, now: number): number[] {
    if (this.#peers.length < 2) return this.#turns.shares(ready, now)
    const { arcs, lost } = this.#divide(this.#members.map((members) => members.some(ready)))
    const shares = this.#turns.shares(ready, now).map((share) => share * lost)
    const places = new Map(this.#peers.map((peer, i) => [peer, i]))
    for (const [i, members] of this.#members.entries()) {
      const able = members.filter(ready)
      const total = able.reduce((sum, peer) => sum + weightOf(peer), 0)
      for (const [k, peer] of able.entries()) {
        const part = total > 0 ? weightOf(peer) / total : k === 0 ? 1 : 0
        shares[places.get(peer)!]! += arcs[i]! * part
      }
    }
    return shares
  }

  /** The part of the ring that goes to each server when only those that are admitted take any. */
  #divide(admitted: readonly boolean[]): Division {
    const known = this.#divided
    // Whoever watches asks every few seconds, and millions of points are long to walk.
    if (known?.admitted.every((one, i) => one === admitted[i])) return known
    const { hashes, owners } = this.#ring
    const arcs = new Float64Array(this.#members.length)
    let lost = 0
    const count = hashes.length
    let next = Number.POSITIVE_INFINITY
    let owner = 0
    for (let k = count + maxDraws; k >= 0; k--) {
      const at = k % count
      if (admitted[owners[at]!]) {
        next = k
        owner = owners[at]!
      }
      if (k >= count) continue
      const arc = at === 0 ? hashes[0]! + 2 ** 32 - hashes[count - 1]! : hashes[at]! - hashes[at - 1]!
      if (next - k <= maxDraws) arcs[owner]! += arc / 2 ** 32
      else lost += arc / 2 ** 32
    }
    this.#divided = { admitted, arcs, lost }
    return this.#divided
  }
}

/** How a ring is divided. */
interface Division {
  /** By server. */
  readonly admitted: readonly boolean[]
  /** By server: its part of the ring, 0 to 1. */
  readonly arcs: Float64Array
  /** The part where nobody admitted is found in time, so that turns are taken. */
  readonly lost: number
}

function weightOf(peer: Peer): number {
  return leftOf(peer, effectiveOf(peer))
}

/** One turn of smooth weighted round robin among the ready peers of one server. */
function turnOf(members: readonly Peer[], ask: Ask): Peer | undefined {
  let best: Peer | undefined
  let total = 0
  for (let i = 0; i < members.length; i++) {
    const peer = members[i]!
    if (!ask.ready(peer)) continue
    const { currentWeight } = peer.zone.peers
    const gain = turn(peer, ask.now)
    total += gain
    currentWeight[peer.index]! += gain
    if (best === undefined || currentWeight[peer.index]! > currentWeight[best.index]!) best = peer
  }
  if (best !== undefined) best.zone.peers.currentWeight[best.index]! -= total
  return best
}
