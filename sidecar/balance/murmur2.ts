const multiplier = 0x5bd1e995

/**
 * MurmurHash2 of a text of which each character stands for one byte, with the seed 0, as nginx counts it.
 * @returns 0 to 2³² − 1
 */
export function murmur2(text: string): number {
  const { length } = text
  let hash = length
  let at = 0
  for (; length - at >= 4; at += 4) {
    let word =
      byte(text, at) | (byte(text, at + 1) << 8) | (byte(text, at + 2) << 16) | (byte(text, at + 3) << 24)
    word = Math.imul(word, multiplier)
    word ^= word >>> 24
    word = Math.imul(word, multiplier)
    hash = Math.imul(hash, multiplier) ^ word
  }
  if (at < length) {
    for (let i = length - 1; i >= at; i--) hash ^= byte(text, i) << (8 * (i - at))
    hash = Math.imul(hash, multiplier)
  }
  hash ^= hash >>> 13
  hash = Math.imul(hash, multiplier)
  return (hash ^ (hash >>> 15)) >>> 0
}

function byte(text: string, at: number): number {
  return text.charCodeAt(at) & 0xff
}
