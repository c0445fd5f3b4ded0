import { createHash } from 'node:crypto'
import { bytes } from '../../../feedback/bytes.ts'
import type { Peer } from '../../../feedback/peer.ts'

/** Ids of the peers under one secret. */
interface Names {
  readonly peers: ReadonlyMap<string, readonly Peer[]>
  readonly ids: ReadonlyMap<Peer, string>
}

const nobody: readonly Peer[] = []
/** A secret may be made of what clients send: so many ids are kept at most, over all secrets. */
const mostIds = 100_000

/** How sessions name the peers of a group: by their ids, or by a hash of id and secret, so that nobody can make one up. */
export class PeerIds {
  readonly #peers: readonly Peer[]
  readonly #plain: Names
  /** By secret. */
  readonly #hashed = new Map<string, Names>()

  /** @param peers primaries, then backups: in this order they are looked for */
  constructor(peers: readonly Peer[]) {
    this.#peers = peers
    this.#plain = namesOf(peers, sidOf)
  }

  /** @param secret undefined: there is none */
  of(peer: Peer, secret: string | undefined): string {
    return this.#names(secret).ids.get(peer) ?? ''
  }

  /** Those that an id names: several may have one. */
  find(id: string, secret: string | undefined): readonly Peer[] {
    return this.#names(secret).peers.get(id) ?? nobody
  }

  #names(secret: string | undefined): Names {
    if (secret === undefined) return this.#plain
    const known = this.#hashed.get(secret)
    if (known !== undefined) return known
    if ((this.#hashed.size + 1) * this.#peers.length > mostIds) this.#hashed.clear()
    const names = namesOf(this.#peers, (peer) => md5(sidOf(peer) + secret))
    this.#hashed.set(secret, names)
    return names
  }
}

function sidOf({ options }: Peer): string {
  return bytes(options.sid)
}

/** Of a text of bytes, as lower-case hexadecimal digits. */
function md5(text: string): string {
  return createHash('md5').update(text, 'latin1').digest('hex')
}

function namesOf(peers: readonly Peer[], idOf: (peer: Peer) => string): Names {
  const ids = new Map(peers.map((peer) => [peer, idOf(peer)]))
  return { ids, peers: Map.groupBy(peers, (peer) => ids.get(peer)!) }
}
