import type { Counted } from './counted.ts'
import type { ReadReport } from './orca.ts'
import type { Peer } from './peer.ts'
import type { AttemptReason } from './reasons.ts'
import type { SessionKey } from './sessions/entries.ts'
import type { ShadowAttempt } from './shadow.ts'
import type { Upstream } from './upstream.ts'

/** How an attempt ended. Undefined (on an Attempt) while it runs. */
export const endings = [
  /** The peer answered to the last byte; its status may be any that the group does not list as a failure. */
  'ok',
  /** Refused, unreachable, reset or closed before a complete header, or cut off in the body. */
  'error',
  /** Connecting, sending or reading took too long. */
  'timeout',
  /** The header was malformed or too large. */
  'invalid_header',
  /** A status that `proxy_next_upstream` lists. */
  'http',
  /** The client went away first, or the peer left its group: says nothing of how the peer works. */
  'aborted',
  /** A kept-alive connection that the peer had closed as it was reused: says nothing of the peer. */
  'stale',
  /** Nobody was eligible: no peer was asked. */
  'no_live',
] as const

export type Ending = (typeof endings)[number]

/**
 * One try of one request against one peer: begun by `pick`, filled in as it goes, and handed to `observe` when
 * it has ended. All moments are monotonic milliseconds, all spans milliseconds.
 */
export class Attempt {
  readonly upstream: Upstream
  /** Undefined only for the entry that says that nobody was eligible. */
  readonly peer: Peer | undefined
  /** `$upstream_addr` of this attempt: the peer's address, or the group's name when nobody was eligible. */
  readonly address: string
  startedAt: number
  /** How the choice was made: the method's name, `explored`, `floor`, `unmeasured`, `backup`, `sticky`, `single`, or `fallback`: of another track than the split says. */
  pick: string
  /** `NEW`, `HIT` or `MISS`; empty when the group has no sticky sessions. `$upstream_sticky_status`. */
  sticky = ''

  /** Key of the session that the request says it is of, where sessions are learnt. Owned by pick. */
  session: SessionKey | undefined = undefined
  /** Id of the peer that this session was bound to then; empty: to none. Owned by pick. */
  boundTo = ''
  /** Whether it is to find out whether the primaries work again; see backup-switch.ts. Owned by pick. */
  returning = false

  /** Time to an established connection; undefined when none was made. 0 on a reused one. */
  connectMs: number | undefined = undefined
  /** Whether a kept-alive connection was reused. */
  reused = false
  /** Time to the complete header, or to the first byte of a session; undefined when none came. */
  headerMs: number | undefined = undefined
  /** Time to the end of the attempt; undefined while it runs. */
  responseMs: number | undefined = undefined
  /** The status line the peer sent; undefined when none was parsed. */
  peerStatus: number | undefined = undefined
  /** `$upstream_status`: the peer's status, or the one this failure stands for (502, 504); undefined: unknown. */
  status: number | undefined = undefined
  /** Status that a call of gRPC ended with, 0 to 16; undefined where it is none, or where its answer is not whole. */
  grpcStatus: number | undefined = undefined
  /** The peer's header names and values in turn (latin1); undefined until they came. */
  headers: readonly string[] | undefined = undefined
  /** Trailer names and values in turn; undefined when none came. */
  trailers: readonly string[] | undefined = undefined
  /** Bytes written to and read from the peer for this attempt, heads included. */
  bytesSent = 0
  bytesReceived = 0
  /** What of them was counted while it runs; undefined: nothing. Owned by observe-bytes. */
  counted: Counted | undefined = undefined
  /** Bytes of the response body received. `$upstream_response_length`. */
  bodyLength = 0

  ending: Ending | undefined = undefined
  /** Undefined for plain success. */
  reason: AttemptReason | undefined = undefined
  /** Whether it counts against the peer (passive health). */
  failed = false
  /** Whether the request was handed on to another peer after it, or could have been. */
  next = false
  /** Whether the same peer is asked once more on a fresh connection, since it had closed the kept one. */
  resent = false
  /** Detail for humans (`connect ECONNREFUSED 127.0.0.1:81`); empty when there is none. Never a metric label. */
  detail = ''

  /** Whether this attempt is counted among the peer's `conns` now. Owned by observe. */
  reserved = false
  /** Whether its answer was accepted at the header, to be passed to the client. Owned by observe. */
  accepted = false
  /** Whether this attempt is counted in the group's `waiting` numbers now. Owned by observe. */
  waiting = false
  /** The drifted average that the pick used, from which learning starts; 0 when the kept one was used. */
  drifted = 0
  /** Whether learning is done with this attempt, and what it took it for. Owned by learn. */
  learnt: 'success' | 'failure' | undefined = undefined
  /** Whether the value that `feedback` asks for may still come with the trailers. Owned by learn. */
  awaitsValue = false
  /** Ids of its span, 32 and 16 hexadecimal digits; empty unless it is traced and the trace is kept. */
  traceId = ''
  spanId = ''
  /** What a method that is tried beside the own one has of it; undefined where there is none. Owned by shadow. */
  shadow: ShadowAttempt | undefined = undefined
  /** What was read of its load report; undefined before anybody asked. Owned by orca. */
  report: ReadReport | undefined = undefined

  constructor(upstream: Upstream, peer: Peer | undefined, startedAt: number, pick: string) {
    this.upstream = upstream
    this.peer = peer
    this.address = peer ? peer.name : upstream.label
    this.startedAt = startedAt
    this.pick = pick
  }
}
