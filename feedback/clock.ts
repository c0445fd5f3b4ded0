/**
 * What is added to this thread's own clock. Each thread's `performance.now()` counts from the thread's start; all of
 * them go by the same clock of the system, so that one number brings two of them together.
 */
let offset = 0

/** Monotonic milliseconds, the same in every thread of the program; resolution a microsecond. */
export function monotonic(): number {
  return performance.now() + offset
}

/**
 * Sets this thread's clock by the one of the thread that started it.
 * @param origin what `clockOrigin` gave there
 */
export function setClock(origin: number): void {
  offset = ownOrigin() - origin
}

/** The moment at which `monotonic` was 0, milliseconds of the system's monotonic clock. */
export function clockOrigin(): number {
  return ownOrigin() - offset
}

/** Of several readings the one least disturbed: between the two clocks' readings the thread may have had to wait. */
function ownOrigin(): number {
  let closest = Number.NEGATIVE_INFINITY
  for (let i = 0; i < 20; i++) {
    const system = Number(process.hrtime.bigint()) / 1e6
    closest = Math.max(closest, system - performance.now())
  }
  return closest
}
