import type { Peer } from '../../feedback/peer.ts'
import { Type } from '../../feedback/schema-type.ts'
import { signalOf } from '../../feedback/signal.ts'
import type { Learning, Upstream } from '../../feedback/upstream.ts'
import { Draw } from './draw.ts'
import { Estimate } from './estimate.ts'
import { learningArgs, learningOf } from './learning-args.ts'
import { LeastTimePlain } from './least-time-plain.ts'
import type { Env, Method } from './method.ts'
import { startTurns } from './round-robin.ts'

const others = {
  best: Type.Optional(Type.Boolean({ description: 'the best peer instead of a draw; explores with 1 %' })),
  plain: Type.Optional(Type.Boolean({ description: "Angie's rule: a draw by averages, nothing else" })),
  inflight: Type.Optional(Type.Boolean({ description: "nginx's word for what is the default here" })),
  ...learningArgs,
}

const args = Type.Object(
  {
    mode: Type.Enum(['header', 'last_byte'], {
      description: 'what is timed: the header, or the whole answer',
    }),
    ...others,
  },
  { additionalProperties: false },
)

const streamArgs = Type.Object(
  {
    mode: Type.Enum(['connect', 'first_byte', 'last_byte'], {
      description: "what is timed: connecting, the peer's first byte, or the whole session",
    }),
    ...others,
  },
  { additionalProperties: false },
)

/**
 * By expected time. Ordinarily a draw, with a chance inverse to it among peers that are as busy; with `best` the
 * peer that would answer first.
 */
class LeastTime extends Draw {
  readonly #estimate: Estimate
  readonly #count: number
  readonly heedsStuck: boolean

  constructor(upstream: Upstream, peers: readonly Peer[], learning: Learning, best: boolean, env: Env) {
    const estimate = new Estimate(upstream, upstream.cohort(peers[0]), learning, !best)
    super(upstream, peers, estimate, env, { best, inFlight: 'even' })
    this.#estimate = estimate
    this.#count = peers.length
    this.heedsStuck = !best
    startTurns(peers)
  }

  expected(peer: Peer, now: number): number {
    return this.#estimate.expected(peer, this.#count, now)
  }
}

/** What is measured by each word. The first byte of a session is what the header of an answer is. */
const modes = { header: 'header', first_byte: 'header', connect: 'connect', last_byte: 'last_byte' } as const

export const leastTime = {
  name: 'least_time',
  summary: 'By response times, requests in flight and failures.',
  args,
  stream: { args: streamArgs },
  words: ['mode'],
  supports: ['backup'],
  misfit({ best, plain, inflight, errors, decay }) {
    if (!plain) return undefined
    if (best || inflight) return 'plain'
    if (errors !== undefined) return `errors=${errors}`
    return decay === undefined ? undefined : `decay=${decay}`
  },
  learning({ mode: word, best, plain, ...args }, compile, keep = 0.9, involves = () => false) {
    const signal = signalOf(`least_time ${word}`)
    // In `stream` the words are others, see above.
    const mode = modes[word as keyof typeof modes]
    const learning = { ...learningOf(args, compile, best ? 0.98 : keep, involves), signal }
    return plain ? { ...learning, mode, errors: 0, decay: 0, plain } : { ...learning, mode, plain: false }
  },
  create(upstream, peers, { best, plain }, env) {
    const { learning } = upstream
    if (learning === undefined) throw new Error(`upstream "${upstream.name}" learns nothing for least_time`)
    return plain
      ? new LeastTimePlain(upstream, peers, learning, env)
      : new LeastTime(upstream, peers, learning, best === true, env)
  },
} as const satisfies Method<typeof args>
