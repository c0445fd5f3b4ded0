import { holdGroup } from './held.ts'
import type { RetryBudget } from './policy.ts'
import type { Upstream } from './upstream.ts'
import type { Zone } from './zone.ts'
import { budgetCell, budgetSeconds } from './zone-numbers.ts'

/*
 * The retry budget: so many of a group's requests may be sent again, and no more, so that peers in trouble are not
 * hammered with retries on top. Requests and retries are counted by the second. A retry that waits for its back-off
 * counts as one that has begun; otherwise a thousand that wait would all find the budget untouched.
 *
 * A retry passes `claimRetry`; when it goes, or is given up, `retryWaits(upstream, -1)`; and when it goes `retryBegan`.
 */

/** A request asks the group for a peer: once a request, however many attempts come of it. */
export function countRequest(upstream: Upstream, now: number): void {
  const { zone } = upstream
  zone.enter()
  zone.add('requests', 1)
  zone.budget[cell(zone, now)]! += 1
  zone.leave()
}

/**
 * Whether the budget lets a further attempt of a request go: there may be as many retries within the window as `ratio`
 * of its requests and `min` a second on top (the rule of Finagle's RetryBudget).
 * @param budget undefined: there is none, every retry may go
 */
export function mayRetry(upstream: Upstream, budget: RetryBudget | undefined, now: number): boolean {
  if (budget === undefined) return true
  const { zone } = upstream
  const { requests, retries } = recent(zone, budget.window, now)
  const allowed = budget.ratio * requests + (budget.min * budget.window) / 1000
  // The smallest part more, since 29 % of 100 is a little less than 29 in binary.
  return retries + zone.get('retriesWaiting') + 1 <= allowed + 1e-9
}

/**
 * The same question by who takes the place at once, as `retryWaits(upstream, 1)` does.
 * @returns whether it is taken
 */
export function claimRetry(upstream: Upstream, budget: RetryBudget | undefined, now: number): boolean {
  const { zone } = upstream
  zone.enter()
  const free = mayRetry(upstream, budget, now)
  if (free) holdGroup(zone, 'retriesWaiting', 1)
  zone.leave()
  return free
}

/**
 * A retry waits for its back-off, or has stopped waiting.
 * @param change 1 or -1
 */
export function retryWaits(upstream: Upstream, change: 1 | -1): void {
  const { zone } = upstream
  zone.enter()
  holdGroup(zone, 'retriesWaiting', change)
  zone.leave()
}

/** A retry goes to a peer now. */
export function retryBegan(upstream: Upstream, now: number): void {
  const { zone } = upstream
  zone.enter()
  zone.add('retries', 1)
  zone.budget[cell(zone, now) + 1]! += 1
  zone.leave()
}

/** Counts requests and retries that other instances have had of late as if they had them now. */
export function heardBudget(upstream: Upstream, requests: number, retries: number, now: number): void {
  const { zone } = upstream
  zone.enter()
  const at = cell(zone, now)
  zone.budget[at + 3]! += requests
  zone.budget[at + 4]! += retries
  zone.leave()
}

/**
 * Requests and retries of the running second and those before it, of other instances too as far as they have told.
 * @param window how far to look back, milliseconds; whole seconds, 1 at least and 64 at most
 */
export function recent(zone: Zone, window: number, now: number): { requests: number; retries: number } {
  const second = Math.floor(now / 1000)
  const span = Math.min(budgetSeconds, Math.max(1, Math.ceil(window / 1000)))
  let requests = 0
  let retries = 0
  for (let past = 0; past < span && past <= second; past += 1) {
    const at = budgetCell * ((second - past) % budgetSeconds)
    // The cell may still hold what happened a round of the clock earlier.
    if (zone.budget[at + 2] !== second - past) continue
    requests += zone.budget[at]! + zone.budget[at + 3]!
    retries += zone.budget[at + 1]! + zone.budget[at + 4]!
  }
  return { requests, retries }
}

/**
 * Where the running second's numbers begin: requests, retries, the second itself, and requests and retries of other
 * instances. Cleared when it is a new one.
 */
function cell(zone: Zone, now: number): number {
  const second = Math.floor(now / 1000)
  const at = budgetCell * (second % budgetSeconds)
  if (zone.budget[at + 2] !== second) {
    zone.budget[at] = 0
    zone.budget[at + 1] = 0
    zone.budget[at + 2] = second
    zone.budget[at + 3] = 0
    zone.budget[at + 4] = 0
  }
  return at
}
