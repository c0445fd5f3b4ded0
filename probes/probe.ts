import type { Static, TSchema } from 'typebox'
import type { Ending } from '../feedback/outcome.ts'
import type { Address } from '../feedback/peer.ts'
import type { AttemptReason } from '../feedback/reasons.ts'
import type { Secure } from './dial.ts'

/** Whom a probe asks: a peer, or the same host at the port that the probe names. */
export interface Target {
  /** The peer's name, for messages. */
  readonly name: string
  readonly address: Address
}

/** What the location has to say of the question. Kinds that ask nothing of HTTP leave it alone. */
export interface Question {
  readonly method: string
  /** Request target in origin form. */
  readonly target: string
  /** Names and values in turn (latin1), `Host` among them. */
  readonly headers: readonly string[]
  /** Milliseconds for connecting; the probe's own time-out holds over all. */
  readonly connectTimeout: number
  /** Speaks TLS on the connection; undefined: nobody does. */
  readonly secure?: Secure | undefined
  /** Largest response head, bytes. */
  readonly maxHead: number
}

/** What an agent on a peer asks for. What it does not mention is undefined and stays as it was. */
export interface Orders {
  /** Part of the configured weight, 0 or more: `75%` is 0.75. */
  readonly weightFactor?: number | undefined
  /** Absolute weight, 0 to 256. */
  readonly weight?: number | undefined
  /** Requests in progress at most; 0 takes the limit back. */
  readonly maxConns?: number | undefined
  readonly administrative?: 'ready' | 'drain' | 'maint' | undefined
  readonly operational?: 'up' | 'down' | undefined
}

/** Why there is no (complete) answer. */
export interface ProbeFailure {
  readonly ending: Ending
  readonly reason: AttemptReason
  /** Whether this machine could not even ask (no file descriptor, no port), which says nothing of the peer. */
  readonly local?: boolean | undefined
}

/** What came of asking. A kind says what it saw, and judges only where nobody else can. */
export interface Answer {
  /** Undefined: the peer answered. */
  readonly failure: ProbeFailure | undefined
  /** The kind's own verdict; undefined: the answer is judged as the location judges a client's. */
  readonly passed: boolean | undefined
  /** HTTP status; undefined where there is none. */
  readonly status: number | undefined
  /** Names and values in turn (latin1); empty where there are none. */
  readonly headers: readonly string[]
  readonly trailers: readonly string[]
  /** As much of the body as was asked for (latin1). */
  readonly body: string
  /** Milliseconds from the start to the connection, the header and the end; undefined where it did not come to that. */
  readonly connectMs: number | undefined
  readonly headerMs: number | undefined
  readonly responseMs: number
  /** For people: why it failed, or what was seen (`status 503`, `queue 12 of 10`); empty when there is nothing to say. */
  readonly detail: string
  readonly orders: Orders | undefined
}

/** What a kind may know beside its arguments. */
export interface Asking {
  /** Undefined where no location has one to ask. What does not speak HTTP takes nothing of it but how TLS is spoken. */
  readonly question: Question | undefined
  /** Aborted when the time is over; the kind then answers with a time-out. */
  readonly signal: AbortSignal
  /** Whether the last probe of this peer did not pass: for kinds whose limit to come back is another one. */
  readonly failing: boolean
  /**
   * Whether the test of the probe holds with what was seen so far: for kinds whose answers have no end of their own.
   * Undefined where there is no test.
   */
  readonly holds?: ((seen: Answer) => boolean) | undefined
}

/** A way of asking. */
export interface ProbeKind<S extends TSchema = TSchema> {
  /** The word of `type=`. */
  readonly name: string
  /** One line for the directive reference. */
  readonly summary: string
  /** Its own arguments beside those that every probe has. */
  readonly args: S
  /** Whether it sends the location's request: needs a `Question`. */
  readonly http: boolean
  /** Shortest interval, milliseconds. */
  readonly leastInterval: number
  /**
   * What is wrong with asking such a peer.
   * @returns the message, in the words of a configuration error; undefined when nothing is
   */
  misfit?(address: Address, args: Static<S>): string | undefined
  /**
   * What a user should be told at start, as that the kernel's table cannot be read.
   * @returns undefined when all is well
   */
  caveat?(args: Static<S>): Promise<string | undefined>
  /** Asks once. Never rejects: a peer's failure is an answer. */
  check(target: Target, args: Static<S>, asking: Asking): Promise<Answer>
}
