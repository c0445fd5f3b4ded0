import { crcByte, crcEnd, crcStart, crcText } from './crc32.ts'

/** Points for each unit of weight, as many as nginx places. */
const pointsPerWeight = 160

/** More points than this are refused at load: a ring takes 6 to 8 bytes a point, and as much again while it is made. */
export const maxRingPoints = 16_000_000

/** How many points a list of servers asks for. */
export function ringPoints(servers: Iterable<{ readonly weight?: number }>): number {
  let weight = 0
  for (const server of servers) weight += server.weight ?? 1
  return weight * pointsPerWeight
}

/** The rings that are in use, by the text of their servers. */
const inUse = new Map<string, WeakRef<Ring>>()

/**
 * The ring of these servers, the one in use where there is one: a reload that leaves a group as it is costs it neither
 * time nor memory. Millions of points take half a second to place, and nothing else is done meanwhile.
 */
export function ringOf(servers: readonly { readonly server: string; readonly weight: number }[]): Ring {
  const key = JSON.stringify(servers.map(({ server, weight }) => [server, weight]))
  const known = inUse.get(key)?.deref()
  if (known) return known
  const ring = new Ring(servers)
  for (const [other, reference] of inUse) if (reference.deref() === undefined) inUse.delete(other)
  inUse.set(key, new WeakRef(ring))
  return ring
}

/**
 * The ring of consistent hashing, placed as Cache::Memcached::Fast (ketama) and nginx do: each point's hash goes
 * into the next one's, so the points of a server depend on its text alone, and a change of one server moves
 * none of the others'.
 */
export class Ring {
  /** Places of the points on the ring, ascending, none twice. */
  readonly hashes: Uint32Array
  /** Whose point it is: place in the list of servers. */
  readonly owners: Uint16Array | Uint32Array

  constructor(servers: readonly { readonly server: string; readonly weight: number }[]) {
    const count = ringPoints(servers)
    const hashes = new Uint32Array(count)
    const owners = servers.length > 0x10000 ? new Uint32Array(count) : new Uint16Array(count)
    let at = 0
    for (const [owner, { server, weight }] of servers.entries()) {
      const base = baseOf(server)
      let hash = 0
      for (let i = 0; i < weight * pointsPerWeight; i++) {
        let c = crcByte(base, hash & 0xff)
        c = crcByte(c, (hash >>> 8) & 0xff)
        c = crcByte(c, (hash >>> 16) & 0xff)
        c = crcByte(c, hash >>> 24)
        hash = crcEnd(c)
        hashes[at] = hash
        owners[at] = owner
        at += 1
      }
    }
    sortPoints(hashes, owners)
    const kept = dropRepeated(hashes, owners)
    // A copy of its own length, unless nothing was dropped.
    this.hashes = kept === count ? hashes : hashes.slice(0, kept)
    this.owners = kept === count ? owners : owners.slice(0, kept)
  }

  /** The first point at or after a hash; after the last comes the first, 0. */
  find(hash: number): number {
    const { hashes } = this
    let low = 0
    let high = hashes.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (hashes[middle]! < hash) low = middle + 1
      else high = middle
    }
    return low === hashes.length ? 0 : low
  }
}

/** The register after `HOST`, a zero byte and `PORT`; the port is empty where none is written. */
function baseOf(server: string): number {
  let host = server
  let port = ''
  if (/^unix:/i.test(server)) {
    host = server.slice(5)
  } else {
    const written = /:(\d*)$/.exec(server)
    if (written) {
      host = server.slice(0, written.index)
      port = written[1]!
    }
  }
  return crcText(crcByte(crcText(crcStart, host), 0), port)
}

/** Sorts points by their hash, those of one hash in the order they came: three passes by eleven bits each. */
function sortPoints(hashes: Uint32Array, owners: Uint16Array | Uint32Array): void {
  const count = hashes.length
  let fromHashes = hashes
  let fromOwners = owners
  let toHashes: Uint32Array = new Uint32Array(count)
  let toOwners: Uint16Array | Uint32Array =
    owners instanceof Uint16Array ? new Uint16Array(count) : new Uint32Array(count)
  for (let shift = 0; shift < 33; shift += 11) {
    const next = new Uint32Array(2049)
    for (let i = 0; i < count; i++) next[((fromHashes[i]! >>> shift) & 2047) + 1]! += 1
    for (let i = 1; i < 2049; i++) next[i]! += next[i - 1]!
    for (let i = 0; i < count; i++) {
      const hash = fromHashes[i]!
      const digit = (hash >>> shift) & 2047
      const place = next[digit]!
      next[digit] = place + 1
      toHashes[place] = hash
      toOwners[place] = fromOwners[i]!
    }
    const doneHashes = fromHashes
    const doneOwners = fromOwners
    fromHashes = toHashes
    fromOwners = toOwners
    toHashes = doneHashes
    toOwners = doneOwners
  }
  // Three passes end in the spare arrays.
  hashes.set(fromHashes)
  owners.set(fromOwners)
}

/** Of points with one hash the first stays. @returns how many are left */
function dropRepeated(hashes: Uint32Array, owners: Uint16Array | Uint32Array): number {
  let kept = 0
  for (let i = 0; i < hashes.length; i++) {
    if (kept > 0 && hashes[i] === hashes[kept - 1]) continue
    hashes[kept] = hashes[i]!
    owners[kept] = owners[i]!
    kept += 1
  }
  return kept
}
