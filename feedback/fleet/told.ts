/*
 * The one round trip in which an instance tells what it has seen of a group's peers since the last time, as sums, and
 * hears what all of them have seen together.
 *
 * Two kinds of numbers are told. Counts only ever grow: they are added to the group's. Levels, such as what is stuck
 * now, are an instance's part of a sum: it tells what its part is, the script remembers that, and adds the difference.
 * An instance that has not been heard for `ttl` is taken out by whoever comes next, and its parts with it.
 *
 * Times in records are milliseconds of the server's clock since the epoch began.
 */

/** What an instance tells of one peer. Times in milliseconds. */
export interface Update {
  /** Whether it has the peer no more: then nothing else is told of it. */
  leaves: boolean
  /** Counts since the last time: answers, successes among them, ejections by `max_fails`, values reported. */
  answers: number
  good: number
  ejections: number
  values: number
  /** Sum of those values. */
  valueSum: number
  /** How old the latest of them is. */
  valueAge: number
  /** Attempts stuck now, and their age added up. */
  stuck: number
  stuckAge: number
  /** The average, and how many answers it stands for; 0: there is none. */
  weight: number
  average: number
  /** Requests in progress now. */
  conns: number
  /** `max_conns` where it is the fleet's; 0: it is not. */
  limit: number
  /** What this instance may have by its lease now, what it would like to, and what it would have use for. */
  have: number
  want: number
  need: number
}

/** What is to be told in one exchange. */
export interface Telling {
  readonly updates: readonly { readonly name: string; readonly update: Update }[]
  /** Requests and retries of this instance since the last time. */
  readonly requests: number
  readonly retries: number
}

/** What an instance sends with an exchange. Times in milliseconds. */
export interface Sent extends Telling {
  /** Names the instance. */
  readonly id: string
  /** An instance that has not been heard for so long is taken out. */
  readonly ttl: number
  /** What it knows of the shared state: the epoch and version of the last answer, and the server's time of it. */
  readonly epoch: string
  readonly version: number
  readonly at: number
  /** How many members it has known in this epoch or the one before. */
  readonly members: number
}

/** What all instances have told of a peer. Times in milliseconds since the epoch. */
export interface PeerRecord {
  /** Instances that have the peer. */
  members: number
  answers: number
  good: number
  ejections: number
  /** When the last of them was told. */
  ejectedAt: number
  values: number
  valueSum: number
  valueAt: number
  stuck: number
  /** Sum of the starts of what is stuck. */
  stuckStart: number
  /** Sum of the weights of averages, and of the averages by their weights. */
  weight: number
  weighted: number
  conns: number
  /** Requests in progress that instances may have by their leases, in all. */
  leased: number
  /** When some instance last got less than it needed, and less than a fair part. */
  shortAt: number
  /** When some instance last got less than it needed. */
  cravedAt: number
}

/** The answer to an exchange. */
export interface Heard {
  /** Names the life of the shared state; another one means that what was known of it is void. */
  readonly epoch: string
  readonly version: number
  /** The server's time, milliseconds since the epoch began. */
  readonly at: number
  /** Instances that were heard within `ttl`, this one among them. */
  readonly members: number
  /** Whether this instance was not known any more, or knew another state: then nothing before counts. */
  readonly fresh: boolean
  /** Requests and retries of the group, ever. */
  readonly requests: number
  readonly retries: number
  /** For each update, what this instance may have in progress by its lease. */
  readonly leases: readonly number[]
  /** By name, what has changed since the version that this instance knew. */
  readonly peers: ReadonlyMap<string, PeerRecord>
  /** By field, records of probes that have changed; see board.ts. */
  readonly probes: ReadonlyMap<string, Buffer>
}
