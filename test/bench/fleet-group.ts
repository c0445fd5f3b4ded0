import { Peer } from '../../feedback/peer.ts'
import { Upstream } from '../../feedback/upstream.ts'
import { Zone } from '../../feedback/zone.ts'
import { seeded } from '../support/dice.ts'
import { serverDefaults } from '../support/peers.ts'

/** Milliseconds in which the same part of the peers has traffic. */
const turnMs = 200

/** A group under traffic as far as the fleet can tell: its numbers change as attempts would change them. */
export class BusyGroup {
  readonly upstream: Upstream
  readonly #random: () => number
  /** Every so many-th peer has traffic. */
  readonly #step: number

  /** @param part of the peers that have traffic at a time, up to 1; at all instances they are the same */
  constructor(peers: number, part: number, seed: number) {
    this.#step = Math.round(1 / part)
    this.#random = seeded(seed)
    const zone = new Zone('shop', peers)
    this.upstream = new Upstream({
      name: zone.name,
      zone,
      peers: Array.from({ length: peers }, (_, i) => peer(zone, i)),
      backups: [],
      method: 'least_time',
      learning: { mode: 'header', factor: 0.9, errors: 3, decay: 10_000, account: undefined },
      responseTimeFactor: 0.9,
      fleet: true,
    })
  }

  /** What happens between two exchanges. */
  traffic(now: number): void {
    const { zone, peers } = this.upstream
    const { answers, goodAnswers, avg, conns } = zone.peers
    const random = this.#random
    zone.add('requests', peers.length)
    for (let i = Math.floor(now / turnMs) % this.#step; i < peers.length; i += this.#step) {
      answers[i]! += 3
      goodAnswers[i]! += random() < 0.99 ? 3 : 2
      avg[i] = 10 + 20 * random()
      conns[i] = Math.floor(5 * random())
    }
  }
}

function peer(zone: Zone, position: number): Peer {
  const host = `10.0.${position >> 8}.${position & 255}`
  const name = `${host}:8080`
  return new Peer(zone, zone.allocate()!, name, name, { kind: 'tcp', host, port: 8080 }, serverDefaults)
}
