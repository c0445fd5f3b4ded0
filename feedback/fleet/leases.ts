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
  /** At most of late: within half a second or so. */
  readonly peak: number
  /** What the lease allows now. */
  readonly have: number
  /** Whether the group had any request of late. */
  readonly asked: boolean
  /** Places that nobody has leased; 0 or less: there is none. */
  readonly free: number
  /** Whether some instance has less than a fair part and would like more. */
  readonly short: boolean
}

/** What each would have if all had the same, 1 at least. */
export function fairLease(limit: number, members: number): number {
  return Math.max(1, Math.floor(limit / Math.max(1, members)))
}

/**
 * How many an instance would like to be allowed: a quarter more than it needed of late, so that a burst finds room, and
 * twice as many where it came to the end of its lease. While places are free anybody may have them, and who has nothing
 * to do keeps one for its first request. Where none is left, nobody keeps what it does not need; who has more than a fair
 * part asks for no more, and gives back bit by bit where another has less and would like more.
 * @returns may be less than what is in progress: then nothing more is to be begun until that has ended
 */
export function wanted({ limit, members, conns, peak, have, asked, free, short }: Demand): number {
  const used = Math.max(peak, conns)
  const fair = fairLease(limit, members)
  const like = Math.min(limit, liked(used, have, asked, free, members))
  if (like <= fair) return like
  // What was given back before and is still in use will be free.
  if (short && have > fair && free + Math.max(0, conns - have) <= 0) {
    return Math.min(like, have - Math.ceil((have - fair) / 4))
  }
  const room = Math.max(0, short ? Math.floor(free / 2) : free)
  return Math.max(fair, Math.min(like, have + room))
}

function liked(used: number, have: number, asked: boolean, free: number, members: number): number {
  if (used === 0) {
    // Not for the few that others have just given back to whoever needs them.
    const ample = have > 0 ? free > 0 : free >= members
    return asked || ample ? 1 : 0
  }
  if (used >= have) return Math.max(2 * have, used + 1)
  return used + (free > 0 ? Math.ceil(used / 4) : 1)
}
