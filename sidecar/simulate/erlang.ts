/** What the theory says of one queue before equal workers. */
export interface Waiting {
  /** Chance that a request has to wait, 0 to 1. */
  readonly chance: number
  /** Mean wait over all requests, those that do not wait included; milliseconds, Infinity from full load on. */
  readonly meanMs: number
}

/**
 * Erlang's C formula: Poisson arrivals, exponential service times, one queue.
 * @param workers 1 or more
 * @param load part of all workers' time that is asked for, 0 to 1
 * @param serviceMs mean service time, milliseconds
 */
export function erlangC(workers: number, load: number, serviceMs: number): Waiting {
  if (load >= 1) return { chance: 1, meanMs: Number.POSITIVE_INFINITY }
  const offered = workers * load
  // The B formula by its recursion, which needs no factorial.
  let blocked = 1
  for (let k = 1; k <= workers; k++) blocked = (offered * blocked) / (k + offered * blocked)
  const chance = blocked / (1 - load * (1 - blocked))
  return { chance, meanMs: (chance * serviceMs) / (workers * (1 - load)) }
}
