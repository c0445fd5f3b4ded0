import type { ResolverSpec } from '../membership.ts'

/** An answer is good for a second at least, whoever says zero, and for a day at most. Milliseconds. */
const shortest = 1000
const longest = 86_400_000
/** First pause after a look-up that failed, and the longest one, milliseconds. */
export const firstPauseMs = 1000
const longestPause = 30_000

/**
 * Milliseconds that an answer is taken for good.
 * @param ttl seconds
 */
export function goodForMs(ttl: number, { validMs }: Pick<ResolverSpec, 'validMs'>): number {
  return Math.min(longest, Math.max(shortest, validMs ?? 1000 * ttl))
}

/**
 * Milliseconds until what could not be looked up is looked up again, while old addresses stand in for it. Many who have
 * lost the same server do not come back to it in one moment.
 * @param failures look-ups that failed before this one, in a row
 * @param random uniform in [0, 1)
 */
export function pauseMs(
  failures: number,
  { validMs = longestPause }: Pick<ResolverSpec, 'validMs'>,
  random: number,
): number {
  const most = Math.min(longestPause, Math.max(shortest, validMs))
  return Math.min(most, firstPauseMs * 2 ** Math.min(failures, 10) * (1 + random / 2))
}
