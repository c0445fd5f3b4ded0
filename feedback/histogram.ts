import { latencyBucketsMs, sessionBucketsMs } from './fields.ts'
import type { Column } from './zone-numbers.ts'

/**
 * Counts a time in the histogram of one slot.
 * @param counts a column a bucket, the last for what lies above every bound
 * @param sum the column of the sums
 * @param index the slot
 * @param ms milliseconds; a time that equals a bound belongs below it, as in Prometheus
 * @param bounds of the buckets, milliseconds
 */
export function count(
  counts: readonly Column[],
  sum: Column,
  index: number,
  ms: number,
  bounds: readonly number[] = latencyBucketsMs,
): void {
  counts[bucketOf(ms, bounds)]![index]! += 1
  sum[index]! += ms
}

/** The place of a time's bucket; one more than there are bounds where it lies above all of them. */
export function bucketOf(ms: number, bounds: readonly number[] = latencyBucketsMs): number {
  let bucket = 0
  while (bucket < bounds.length && ms > bounds[bucket]!) bucket += 1
  return bucket
}

/** Bounds for times of whole requests, or of whole sessions, of a group. */
export function wholeBounds(kind: 'http' | 'stream'): readonly number[] {
  return kind === 'stream' ? sessionBucketsMs : latencyBucketsMs
}
