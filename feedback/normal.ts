/*
 * The standard normal distribution.
 */

/** Chance of a value above z; full precision far out in the tail too, where the answer is small. */
export function normalTail(z: number): number {
  if (z < 0) return 1 - normalTail(-z)
  // Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.2.11 and 26.2.14.
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)
  if (z < 3) {
    let sum = z
    let term = z
    for (let n = 3; term > sum * 1e-17; n += 2) {
      term *= (z * z) / n
      sum += term
    }
    return 0.5 - density * sum
  }
  let fraction = z
  for (let n = 100; n > 0; n--) fraction = z + n / fraction
  return density / fraction
}

/** The z above which a value lies with the given chance, which is at most a half. */
export function normalPoint(tail: number): number {
  let low = 0
  let high = 40
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2
    if (normalTail(middle) > tail) low = middle
    else high = middle
  }
  return (low + high) / 2
}
