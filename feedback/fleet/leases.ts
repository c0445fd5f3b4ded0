/*
 * A limit of requests in progress that all instances keep together is divided into leases: each instance may have so
 * many as it has leased, and what all have leased is the limit at most. Leases follow demand. Nothing of this is asked
 * on the path of a request.
 */

/** What there is to decide by. Counts of requests in progress at one peer. */
export interface Demand {
  /** `max_conns`. */
  readonly limit: number
  /** Instances that share it, 1 or more. */
  readonly members: number
  /** Now. */
  readonly conns: number
  /** At most within the last second or so. */
  readonly peak: number
  /** What the lease allows now. */
  readonly have: number
  /** Whether the group had any request of late. */
  readonly asked: boolean
  /** Whether some instance gets less than it would like. */
  readonly short: boolean
}

/** What each would have if all had the same, 1 at least. */
export function fairLease(limit: number, members: number): number {
  return Math.max(1, Math.floor(limit / Math.max(1, members)))
}

/**
 * How many an instance would like to be allowed. Ordinarily a quarter more than it needed of late, so that a burst finds
 * room, and twice as many where it came to the end of its lease. Where somebody goes short nobody keeps more than a fair
 * part but for what is in progress, and who has nothing to do keeps nothing.
 */
export function wanted({ limit, members, conns, peak, have, asked, short }: Demand): number {
  const used = Math.max(peak, conns)
  const ample = have > 0 && used >= have ? 2 * have : used + Math.max(1, Math.ceil(used / 4))
  const like = Math.min(limit, Math.max(1, ample))
  if (!short) return like
  if (used === 0 && !asked) return 0
  return Math.max(conns, Math.min(like, fairLease(limit, members)))
}
