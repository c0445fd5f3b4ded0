/**
 * What peers are like in a scenario and what befalls them. Times are milliseconds from the start of the measured part;
 * before it all is well.
 */

/** Each peer works on so many requests at the same time; the others wait in line. */
export const workers = 4
/** Mean time of a request at a peer of speed 1, milliseconds; the times are exponential. */
export const meanMs = 20
/** Offered, as a part of what all peers can do while they are well. */
export const load = 0.7

/** A time of trouble for one peer, from `from` until before `until`. */
export interface Fault {
  readonly peer: number
  readonly from: number
  readonly until: number
  /** What is left of its speed: 0 stands still, with all it was working on. */
  readonly rate: number
  /** Whether it answers 503 at once and does no work for what comes. */
  readonly fails: boolean
}

export interface Plan {
  /** Speed of each peer; one of 2 is done in half the time. */
  readonly speeds: readonly number[]
  readonly faults: readonly Fault[]
}

/** Requests a second at `load`. */
export function arrivalRate({ speeds }: Plan): number {
  const speed = speeds.reduce((sum, one) => sum + one, 0)
  return (load * speed * workers * 1000) / meanMs
}

/** A peer's speed at a moment; 0 when it stands still. */
export function speedAt(plan: Plan, peer: number, at: number): number {
  let speed = plan.speeds[peer]!
  for (const fault of plan.faults) if (active(fault, peer, at)) speed *= fault.rate
  return speed
}

/** Whether what comes to a peer at a moment is answered 503. */
export function failsAt(plan: Plan, peer: number, at: number): boolean {
  return plan.faults.some((fault) => fault.fails && active(fault, peer, at))
}

/**
 * When work is done that a peer begins at a moment, whatever befalls the peer in between.
 * @param work milliseconds at speed 1
 */
export function doneAt(plan: Plan, peer: number, begin: number, work: number): number {
  let at = begin
  let left = work
  for (;;) {
    const speed = speedAt(plan, peer, at)
    const end = speed > 0 ? at + left / speed : Number.POSITIVE_INFINITY
    const change = nextChange(plan, peer, at)
    if (end <= change) return end
    left -= (change - at) * speed
    at = change
  }
}

function active(fault: Fault, peer: number, at: number): boolean {
  return fault.peer === peer && at >= fault.from && at < fault.until
}

function nextChange(plan: Plan, peer: number, at: number): number {
  let next = Number.POSITIVE_INFINITY
  for (const fault of plan.faults) {
    if (fault.peer !== peer) continue
    for (const moment of [fault.from, fault.until]) if (moment > at && moment < next) next = moment
  }
  return next
}
