import { Type } from '../../feedback/schema-type.ts'
import { signalOf } from '../../feedback/signal.ts'
import { Draw } from './draw.ts'
import { learningArgs, learningOf, milliseconds } from './learning-args.ts'
import type { Method } from './method.ts'
import { Reports } from './reports.ts'
import { RoundRobin } from './round-robin.ts'

/*
 * By what the peers report of themselves: a draw by weight and reported value. Beside the values it goes by what it
 * sees itself: requests in flight are kept in the same proportion as the shares, so that a value that is no longer
 * true cannot flood a peer.
 */

const value = {
  variable: Type.String({
    format: 'variable',
    pattern: '^\\$[A-Za-z0-9_]+$',
    description: 'what a peer reports with an answer: a number, 0 or more; the share is proportional to it',
  }),
  inverse: Type.Optional(Type.Boolean({ description: 'less is better: the share is inverse to the value' })),
}

const learnt = {
  ...learningArgs,
  expire: Type.Optional(
    Type.String({
      format: 'time',
      description: 'a value that is not renewed for so long, 3m unless told, counts as not reported; 0 never',
    }),
  ),
}

const args = Type.Object(
  {
    ...value,
    last_byte: Type.Optional(Type.Boolean({ description: 'the value is read after the last byte' })),
    ...learnt,
  },
  { additionalProperties: false },
)

/** A session has no header to read it after. */
const streamArgs = Type.Object({ ...value, ...learnt }, { additionalProperties: false })

export const feedback = {
  name: 'feedback',
  summary: 'By a value that the peers report of themselves, and requests in flight.',
  args,
  stream: { args: streamArgs },
  words: ['variable'],
  supports: ['weight', 'backup'],
  learning({ variable, inverse, last_byte, expire, ...args }, compile, keep = 0.9, involves = () => false) {
    return {
      ...learningOf(args, compile, keep, involves),
      signal: signalOf(variable),
      mode: last_byte ? 'last_byte' : 'header',
      value: {
        name: variable,
        read: compile(variable),
        orca: involves(variable, (name) => name.startsWith('orca_')),
        inverse: inverse === true,
        expire: milliseconds(expire ?? '3m'),
      },
    }
  },
  create(upstream, peers, _args, env) {
    const { learning } = upstream
    if (learning?.value === undefined)
      throw new Error(`upstream "${upstream.name}" learns no value for feedback`)
    // With fewer than two values there is nothing to compare.
    const otherwise = new RoundRobin(peers)
    const reports = new Reports(upstream, peers, learning, learning.value)
    return new Draw(upstream, peers, reports, env, { inFlight: 'by share', otherwise })
  },
} as const satisfies Method<typeof args>
