import { mayRetry, recent } from '../../feedback/budget.ts'
import type { BudgetFacts, UpstreamFacts } from './facts.ts'

/** How often attempts of a group were retried, and what more its locations allow. */
export interface Retries {
  /** Since the start. */
  readonly requests: number
  readonly retries: number
  /** Retries that wait for their back-off now. */
  readonly waiting: number
  readonly budgets: readonly BudgetState[]
}

/** A location's budget, and what it looks at now. */
export interface BudgetState extends BudgetFacts {
  /** Requests and retries within its window. */
  readonly recent: { readonly requests: number; readonly retries: number }
  /** Whether a retry would be allowed now. */
  readonly allows: boolean
}

/** @param now monotonic milliseconds */
export function explainRetries(group: UpstreamFacts, now: number): Retries {
  const { upstream } = group
  const { zone } = upstream
  return {
    requests: zone.get('requests'),
    retries: zone.get('retries'),
    waiting: zone.get('retriesWaiting'),
    budgets: group.budgets().map((budget) => ({
      ...budget,
      recent: recent(zone, budget.window, now),
      allows: mayRetry(upstream, budget, now),
    })),
  }
}

/** The same for people, a line each. */
export function* retryLines(
  { requests, retries, waiting, budgets }: Retries,
  kind: 'http' | 'stream',
): Generator<string> {
  const asked = kind === 'stream' ? 'sessions' : 'requests'
  yield `retries: ${retries} in ${requests} ${asked}, ${waiting} waiting`
  // Locations with the same budget look at the same numbers, and servers may have locations of the same name.
  const lines = new Map<string, Set<string>>()
  for (const { location, ratio, min, window, recent, allows } of budgets) {
    const percent = Number((100 * ratio).toFixed(2))
    const limit = `at most ${percent} % of the ${asked} of ${window / 1000} s, plus ${min} a second`
    const state = `${recent.retries} of ${recent.requests} now, ${allows ? 'another may go' : 'spent'}`
    const line = `${limit}; ${state}`
    lines.set(line, (lines.get(line) ?? new Set()).add(location))
  }
  for (const [line, locations] of lines) yield `  ${[...locations].join(', ')}: ${line}`
}
