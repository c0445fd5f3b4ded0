/**
 * The race of `least_time`: each candidate starts at its number of requests in flight and runs for a time drawn
 * from an exponential distribution; the first to arrive wins. Without requests in flight the chances are exactly as
 * the rates; with them the numbers in flight are kept even.
 *
 * No time is drawn for each. Until the next start all runners arrive at the sum of their rates, and whoever
 * arrives is one of them by its rate: two throws decide a stretch, and an exponential time has no memory
 * of the stretches before.
 */

/**
 * @param starts any numbers; it is cheap where many are the same
 * @param rates above 0
 * @param count how many of the two lists run, 1 or more
 * @param dice uniform in [0, 1)
 * @returns place of the winner
 */
export function race(
  starts: Float64Array,
  rates: Float64Array,
  count: number,
  dice: { random(): number },
): number {
  let level = nextStart(starts, count, Number.NEGATIVE_INFINITY)
  for (;;) {
    let next = Number.POSITIVE_INFINITY
    let total = 0
    for (let i = 0; i < count; i++) {
      const start = starts[i]!
      if (start <= level) total += rates[i]!
      else if (start < next) next = start
    }
    if (next < Number.POSITIVE_INFINITY && level - Math.log(1 - dice.random()) / total >= next) {
      level = next
      continue
    }
    let point = dice.random() * total
    let last = 0
    for (let i = 0; i < count; i++) {
      if (starts[i]! > level) continue
      last = i
      point -= rates[i]!
      if (point < 0) return i
    }
    return last
  }
}

/**
 * The same race by a time drawn for each runner: cheaper where hardly two start together.
 * @param starts any numbers
 */
export function raceApart(
  starts: Float64Array,
  rates: Float64Array,
  count: number,
  dice: { random(): number },
): number {
  let winner = 0
  let first = Number.POSITIVE_INFINITY
  for (let i = 0; i < count; i++) {
    const rate = rates[i]!
    // What is left of the way of the first one so far.
    const left = (first - starts[i]!) * rate
    if (left <= 0) continue
    const thrown = dice.random()
    // The logarithm is at least as far from 0 as the throw: most runners are out without it.
    if (thrown >= left) continue
    const run = -Math.log(1 - thrown)
    if (run >= left) continue
    first = starts[i]! + run / rate
    winner = i
  }
  return winner
}

/** Each one's chance to win the race, written to `chances`. */
export function raceChances(
  starts: Float64Array,
  rates: Float64Array,
  count: number,
  chances: Float64Array,
): void {
  chances.fill(0, 0, count)
  let level = nextStart(starts, count, Number.NEGATIVE_INFINITY)
  let running = 1
  while (level < Number.POSITIVE_INFINITY) {
    const next = nextStart(starts, count, level)
    let total = 0
    for (let i = 0; i < count; i++) if (starts[i]! <= level) total += rates[i]!
    const open = next < Number.POSITIVE_INFINITY ? Math.exp(-total * (next - level)) : 0
    for (let i = 0; i < count; i++) {
      if (starts[i]! <= level) chances[i]! += (running * (1 - open) * rates[i]!) / total
    }
    running *= open
    level = next
  }
}

/** The lowest start above a level; Infinity when there is none. */
function nextStart(starts: Float64Array, count: number, level: number): number {
  let next = Number.POSITIVE_INFINITY
  for (let i = 0; i < count; i++) {
    const start = starts[i]!
    if (start > level && start < next) next = start
  }
  return next
}
