import type { Static, TSchema } from 'typebox'
import type { Call } from '../../feedback/call.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { Learning, Upstream } from '../../feedback/upstream.ts'

/** Parameters of `server` that a method may refuse. The others are accepted by all. */
export const serverParams = ['weight', 'slow_start', 'backup'] as const
export type ServerParam = (typeof serverParams)[number]

/** What a balancer needs from outside, so that tests can put clock and dice in its place. */
export interface Env {
  /** Monotonic milliseconds. */
  now(): number
  /** Uniform in [0, 1). */
  random(): number
}

/**
 * One request's search through one list of peers. It lives across the retries of the request, so a method can
 * leave in `memo` what must go on from there (the hash chain, the number of draws).
 */
export interface Ask {
  readonly call: Call
  /** Monotonic milliseconds of this choice. */
  readonly now: number
  /** Whether the peer may be picked now: not tried, not set aside, not full, not down, not draining. */
  ready(peer: Peer): boolean
  /** Undefined at the first choice; afterwards whatever the method left. */
  memo: unknown
  /** 0 at the first choice; a count that the method may keep beside `memo`. */
  draws: number
  /** How the choice was made, where the method has more to say than its own name: `explored`, `floor`, … */
  pick: string
  /** The drifted average the choice rests on, milliseconds; 0 where the kept one was used. See learn.ts. */
  drifted: number
  /** Whether it has left the track that the split sent it to, for good; see split.ts. */
  fallen?: boolean
}

/** A method at work on one list of peers. Nothing in it awaits; while it picks it holds the group's state. */
export interface Balancer {
  /** Reads what it needs of the call into `ask.memo`, before the group's state is held. */
  read?(ask: Ask): void
  /** @returns undefined when nobody is ready */
  pick(ask: Ask): Peer | undefined
  /**
   * The chance of each peer of the list, in its order, if a request came now and those that `ready` admits were
   * eligible: numbers that sum to 1, or all 0 when nobody is ready. For `hash` and `ip_hash`: share of the key space.
   * Of a split they sum to less where a track, and `stable` as well, has nobody ready.
   */
  shares(ready: (peer: Peer) => boolean, now: number): number[]
  /** What an answer of the peer is expected to take now, milliseconds. Absent where the method does not estimate. */
  expected?(peer: Peer, now: number): number
  /** As `Ask.drifted`, of a peer that another method has picked; left out: always 0. */
  drifted?(peer: Peer, now: number): number
  /** Whether what is stuck at a peer at other instances adds to that; left out: it does not. */
  readonly heedsStuck?: boolean
}

/** Whether a text reads a variable of such a name (lower case), itself or by what it is made of. */
export type Involves = (text: string, is: (name: string) => boolean) => boolean

/** A method with its arguments as nginx would have it written: `least_time header best`. */
export function wordsOf(
  { name, words }: Method,
  args: Readonly<Record<string, string | number | boolean>>,
): string {
  const written = Object.entries(args).map(([argument, value]) => {
    if (value === true) return argument
    return words.includes(argument) ? String(value) : `${argument}=${value}`
  })
  return [name, ...written].join(' ')
}

/** A balancing method as the configuration knows it. */
export interface Method<S extends TSchema = TSchema> {
  /** The directive's name. */
  readonly name: string
  /** One line for the directive reference. */
  readonly summary: string
  /** Arguments: one schema for YAML, nginx words, editors and docs. */
  readonly args: S
  /** Its arguments in a group of `stream`, where they are others, or that it may not stand there. */
  readonly stream?: 'never' | { readonly args: TSchema }
  /** Arguments given as bare words, in order: `least_time header`. Flags are boolean properties of the schema. */
  readonly words: readonly string[]
  /** Parameters of `server` that it honours; the others of `serverParams` are refused at load. */
  readonly supports: readonly ServerParam[]
  /**
   * What the schema cannot say of the arguments.
   * @returns the argument that does not fit, as it would be written; undefined when all do
   */
  misfit?(args: Static<S>): string | undefined
  /**
   * What must be learnt of attempts for it; undefined: nothing.
   * @param variable compiles `$name`, to be read anew of each attempt
   * @param keep the group's `response_time_factor` / 100: how much of an old average stays unless args say otherwise
   * @param involves what the variables of the configuration are made of; by default nothing
   */
  learning(
    args: Static<S>,
    variable: (text: string) => (call: Call) => string,
    keep?: number,
    involves?: Involves,
  ): Learning | undefined
  /** @param variable compiles a text with variables into a function of the call */
  create(
    upstream: Upstream,
    peers: readonly Peer[],
    args: Static<S>,
    env: Env,
    variable: (text: string) => (call: Call) => string,
  ): Balancer
}
