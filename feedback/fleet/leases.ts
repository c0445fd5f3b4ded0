/*
 * A limit of requests in progress that all instances keep together is divided into leases: each instance may have so
 * many as it has leased, and what all have leased is the limit at most. While nobody lacks anything each has a fair part
 * at least, in reserve; otherwise leases follow demand. Nothing of this is asked on the path of a request.
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
  /** Whether its last place is kept for a first request, even where others have use for it. */
  readonly keeps: boolean
  /** Places that nobody has leased; 0 or less: there is none. */
  readonly free: number
  /** Whether some instance had less than a fair part of late, and needed more. */
  readonly short: boolean
  /** Whether some instance had less than it needed of late, be that more than a fair part. */
  readonly craved: boolean
}

/** What is to be asked for. */
export interface Wish {
  /** What it is to have: may be less than what is in progress, then nothing more is to be begun until that has ended. */
  readonly want: number
  /** What it would have use for: may be more than it asks for, and never counts what is only in reserve. */
  readonly need: number
}

/** What each would have if all had the same, 1 at least. */
export function fairLease(limit: number, members: number): number {
  return Math.max(1, Math.floor(limit / Math.max(1, members)))
}

/**
 * What an instance asks for: a quarter more than it needed of late, so that there is room, and twice as many where it
 * came to the end of its lease; and a fair part in any case, for a burst.
 *
 * Where somebody lacks what it needs and nothing is free, whoever does not need its reserve gives up three quarters of it
 * at a time. Who has more than a fair part asks for nothing but what is free, and gives back half of what it has more
 * where another needs its fair part.
 */
export function wanted(demand: Demand): Wish {
  const { limit, members, conns, peak, have, asked, free, short, craved } = demand
  const used = Math.max(peak, conns)
  const ends = used > 0 && used >= have
  const need = Math.min(limit, ends ? Math.max(2 * have, used + 1) : Math.max(used, asked ? 1 : 0))
  const room = ends || used === 0 ? 0 : free > 0 ? Math.ceil(used / 4) : 1
  const like = Math.min(limit, need + room)
  const fair = fairLease(limit, members)
  // Who lacks something itself takes what is free of its part: how much it lacks it cannot know.
  if (like <= fair) return { want: craved && need <= have ? without(like, fair, demand) : fair, need }
  // What was given back before and is still in use will be free.
  if (short && have > fair && free + Math.max(0, conns - have) <= 0) {
    return { want: Math.min(like, have - Math.ceil((have - fair) / 2)), need }
  }
  const left = Math.max(0, short ? Math.floor(free / 2) : free)
  return { want: Math.max(fair, Math.min(like, have + left)), need }
}

/** What is left of a fair part that others have more use for. As long as anything is free nobody has to give up more. */
function without(like: number, fair: number, { have, free, keeps }: Demand): number {
  if (like >= have) return like
  if (have > fair) return fair
  if (free > 0) return have
  return Math.max(keeps ? 1 : 0, have - Math.ceil((3 / 4) * (have - like)))
}
