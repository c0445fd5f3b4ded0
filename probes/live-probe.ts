import type { Call } from '../feedback/call.ts'
import type { RetryPolicy } from '../feedback/policy.ts'
import type { ProbeRule } from '../feedback/probe-health.ts'
import type { Upstream } from '../feedback/upstream.ts'
import type { ProbeKind, Question } from './probe.ts'

/** Which peers a probe asks: all; those that no client keeps busy; or those that are not healthy. */
export const probeModes = ['always', 'idle', 'onfail'] as const
export type ProbeMode = (typeof probeModes)[number]

/** A probe of a group, ready to run. Times in milliseconds. */
export interface LiveProbe extends ProbeRule {
  readonly upstream: Upstream
  /** The location that it stands in, as written. */
  readonly location: string
  readonly kind: ProbeKind
  /** The kind's own arguments; its schema has checked them. */
  readonly args: Readonly<Record<string, unknown>>
  /** Stands for what is asked and what passes: instances share the results of a probe where that is the same. */
  readonly definition: string
  /** Asked in place of a peer's own port. */
  readonly port: number | undefined
  readonly interval: number
  readonly timeout: number
  readonly mode: ProbeMode
  /** Whether one instance of the fleet asks for all, or each for itself. */
  readonly scope: 'fleet' | 'instance'
  /** What an answer must make neither empty nor `0`; undefined: nothing. */
  readonly test: ((call: Call) => string) | undefined
  /** What the location takes for a failure. */
  readonly retry: RetryPolicy
  /** A call such as the location might get, without a client. */
  call(): Call
  /**
   * What to ask for that call. Kinds that do not speak HTTP have no use for more of it than how TLS is spoken.
   * @returns undefined when its fields cannot be written down
   */
  question(call: Call): Question | undefined
}
