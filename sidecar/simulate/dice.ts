/**
 * Dice of a simulation: the same for the same seed and names, and independent of those of other names, so that what
 * one part throws never changes what another one gets.
 * @returns uniform in [0, 1), 32 bits (the generator known as sfc32)
 */
export function dice(seed: number, ...names: readonly (string | number)[]): () => number {
  let a = seed | 0
  let b = hash(names.join('/'))
  let c = Math.floor(seed / 2 ** 32) ^ 0x243f6a88
  let counter = 1
  const next = () => {
    const sum = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = ((c << 21) | (c >>> 11)) + sum
    c |= 0
    return (sum >>> 0) / 2 ** 32
  }
  for (let i = 0; i < 16; i++) next()
  return next
}

/** A time drawn from an exponential distribution. */
export function exponential(random: () => number, mean: number): number {
  return -Math.log(1 - random()) * mean
}

/** FNV-1a. */
function hash(text: string): number {
  let state = 0x811c9dc5
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193)
  return state
}
