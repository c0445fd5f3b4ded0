const dot = 46
const colon = 58
const percent = 37

/**
 * The octets of an address: four of IPv4, sixteen of IPv6, its zone (`%eth0`) left out. Made for addresses that a
 * socket or a check has let through: of another text it makes some octets or other.
 * @returns how many were written: 4 or 16, or 0 for a client without an address (`unix:`)
 */
export function readOctets(address: string, into: Uint8Array): 0 | 4 | 16 {
  into.fill(0)
  if (address === '' || address.startsWith('unix:')) return 0
  if (!address.includes(':')) {
    readDotted(address, 0, into, 0)
    return 4
  }
  let at = 0
  let gap = 16
  for (let i = 0; i < address.length && at < 16; ) {
    const code = address.charCodeAt(i)
    if (code === percent) break
    if (code === colon) {
      // `::` stands for as many zeros as are missing.
      if (address.charCodeAt(i + 1) === colon) gap = at
      i += 1
      continue
    }
    let group = 0
    let end = i
    let next = code
    for (; next !== colon && next !== percent && next !== dot; next = address.charCodeAt(end)) {
      group = group * 16 + hexDigit(next)
      end += 1
      if (end === address.length) break
    }
    if (next === dot) {
      readDotted(address, i, into, at)
      at += 4
      break
    }
    into[at] = group >> 8
    into[at + 1] = group
    at += 2
    i = end
  }
  if (gap < at) {
    into.copyWithin(16 - (at - gap), gap, at)
    into.fill(0, gap, 16 - (at - gap))
  }
  return 16
}

function readDotted(address: string, from: number, into: Uint8Array, at: number): void {
  let place = at
  let value = 0
  for (let i = from; i < address.length && place < at + 4 && place < 16; i++) {
    const code = address.charCodeAt(i)
    if (code === dot) {
      place += 1
      value = 0
    } else {
      value = value * 10 + (code - 48)
      into[place] = value
    }
  }
}

function hexDigit(code: number): number {
  return code < colon ? code - 48 : (code | 32) - 87
}
