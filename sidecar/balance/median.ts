/**
 * The median of the first `count` numbers, which it puts into another order. No allocation, and a few passes
 * instead of a sort.
 * @returns of an even count the mean of the middle two; 0 of none
 */
export function median(values: Float64Array, count: number): number {
  if (count === 0) return 0
  const middle = count >> 1
  const upper = select(values, count, middle)
  if (count % 2 === 1) return upper
  // All that is left of the middle is at most as great.
  let lower = values[0]!
  for (let i = 1; i < middle; i++) if (values[i]! > lower) lower = values[i]!
  return (lower + upper) / 2
}

/** Hoare's selection: the number that would stand at place `k` of the sorted ones, put there. */
function select(values: Float64Array, count: number, k: number): number {
  let left = 0
  let right = count - 1
  while (left < right) {
    const pivot = values[(left + right) >> 1]!
    let i = left
    let j = right
    while (i <= j) {
      while (values[i]! < pivot) i += 1
      while (values[j]! > pivot) j -= 1
      if (i <= j) {
        const value = values[i]!
        values[i] = values[j]!
        values[j] = value
        i += 1
        j -= 1
      }
    }
    if (k <= j) right = j
    else if (k >= i) left = i
    else break
  }
  return values[k]!
}
