import { isGrpcFailure } from './grpc-status.ts'
import type { Ending } from './outcome.ts'
import type { AttemptReason, DenialReason } from './reasons.ts'

/** An attempt that has ended, as people watch it; plain data, so that it can be posted to another thread. */
export interface RecentAttempt {
  /** When it ended, wall clock milliseconds. */
  readonly at: number
  readonly upstream: string
  /** Undefined where nobody was eligible. */
  readonly peer: string | undefined
  readonly track: string | undefined
  /** How the choice was made; empty where nobody was eligible. */
  readonly pick: string
  /** What the peer answered, or the status that its failure stands for; undefined where there is none. */
  readonly status: number | undefined
  /** What a call of gRPC ended with, 0 to 16; undefined where it is none, or where its answer is not whole. */
  readonly grpcStatus: number | undefined
  readonly ending: Ending | undefined
  readonly reason: AttemptReason | undefined
  /** Detail for people, which a peer may have written; control characters are escaped. */
  readonly detail: string | undefined
  /** Whether the request went on to another attempt after it. */
  readonly next: boolean
  /** Why there was no further one; undefined where none was wanted. */
  readonly denial: DenialReason | undefined
  /** Milliseconds to the header and to the end; undefined where it did not come to that. */
  readonly headerMs: number | undefined
  readonly ms: number | undefined
  readonly reused: boolean
  /** How many attempts the request had before. */
  readonly retry: number
  /** `HTTP`, or what a session of `stream` runs over. */
  readonly protocol: 'HTTP' | 'TCP' | 'UDP'
  /** Empty of a session. */
  readonly method: string
  /** Without the query; cut off where it is long, control characters escaped. Of a session, where it came in. */
  readonly path: string
  /** Empty unless it is traced and the trace is kept. */
  readonly traceId: string
}

/** What has happened since the batch before. */
export interface RecentBatch {
  /** In the order in which they ended. */
  readonly attempts: readonly RecentAttempt[]
  /** How many more there were that are not listed, and how many of those are trouble. */
  readonly more: number
  readonly moreFailed: number
}

/** Reasons that say nothing of a peer. */
const neutral: ReadonlySet<AttemptReason> = new Set(['client_abort', 'stale', 'dropped'])

/** Whether it is something to look at: it failed, nobody was eligible, or the client got a server's error, of gRPC too. */
export function isTrouble({
  reason,
  ending,
  status = 0,
  grpcStatus = 0,
}: Pick<RecentAttempt, 'reason' | 'ending' | 'status' | 'grpcStatus'>): boolean {
  if (reason !== undefined) return !neutral.has(reason)
  return ending === 'no_live' || status >= 500 || isGrpcFailure(grpcStatus)
}

/** The attempts of a span, so many at most: trouble is preferred, and the rest is counted. */
export class RecentList {
  readonly #most: number
  readonly #kept: RecentAttempt[] = []
  /** Where in the list one may stand that is no trouble; all before it are. */
  #well = 0
  #more = 0
  #moreFailed = 0

  constructor(most: number) {
    this.#most = most
  }

  get empty(): boolean {
    return this.#kept.length === 0 && this.#more === 0
  }

  /** @param make is asked only where there is room: making one is most of the cost */
  add(trouble: boolean, make: () => RecentAttempt): void {
    if (this.#kept.length < this.#most) {
      this.#kept.push(make())
      return
    }
    this.#more += 1
    if (!trouble) return
    const at = this.#nextWell()
    if (at < 0) {
      this.#moreFailed += 1
      return
    }
    this.#kept.splice(at, 1)
    this.#kept.push(make())
  }

  #nextWell(): number {
    while (this.#well < this.#kept.length && isTrouble(this.#kept[this.#well]!)) this.#well += 1
    return this.#well < this.#kept.length ? this.#well : -1
  }

  /** Takes another list's batch in, with what it has left out. */
  merge({ attempts, more, moreFailed }: RecentBatch): void {
    this.#more += more
    this.#moreFailed += moreFailed
    for (const attempt of attempts) this.add(isTrouble(attempt), () => attempt)
  }

  /** Hands it all over, and begins anew. */
  take(): RecentBatch {
    const attempts = this.#kept.splice(0)
    const batch = { attempts, more: this.#more, moreFailed: this.#moreFailed }
    this.#well = 0
    this.#more = 0
    this.#moreFailed = 0
    return batch
  }
}
