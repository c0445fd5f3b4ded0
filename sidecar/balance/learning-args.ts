import type { Static } from 'typebox'
import type { Call } from '../../feedback/call.ts'
import { Type } from '../../feedback/schema-type.ts'
import type { Learning } from '../../feedback/upstream.ts'
import type { Involves } from './method.ts'

/** Arguments of every method that learns, and what they make of its learning. */
export const learningArgs = {
  factor: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 99, description: 'percent of an old average that stay' }),
  ),
  account: Type.Optional(
    Type.String({
      format: 'variable',
      pattern: '^\\$[A-Za-z0-9_]+$',
      description:
        'nothing is learnt of an answer for which it is empty or 0; of probes only if it reads $upstream_probe',
    }),
  ),
  errors: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 10,
      description: 'exponent of the rate of success; 0 ignores failures',
    }),
  ),
  decay: Type.Optional(
    Type.String({ format: 'time', description: 'how fast what is not renewed is forgotten; 0 never' }),
  ),
}

const schema = Type.Object(learningArgs)

/**
 * @param compile makes a reader of `$name`
 * @param keep how much of an old average stays unless `factor` says so, 0 to 1
 * @param involves whether a text reads a variable; by default none does
 */
export function learningOf(
  { factor, account, errors, decay }: Static<typeof schema>,
  compile: (text: string) => (call: Call) => string,
  keep: number,
  involves: Involves = () => false,
): Omit<Learning, 'mode'> {
  return {
    factor: factor === undefined ? keep : factor / 100,
    errors: errors ?? 3,
    decay: milliseconds(decay ?? '10s'),
    account: account === undefined ? undefined : compile(account),
    probes: account !== undefined && involves(account, (name) => probeVariables.has(name)),
  }
}

/** Whoever asks for one of these means probes: for a client's request they are empty. */
const probeVariables = new Set(['upstream_probe', 'upstream_probe_body', 'upstream_probe_response'])

const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const

/** Of a time in the model's canonical form: one number and one unit. */
export function milliseconds(text: string): number {
  const [, digits, unit = 's'] = /^(\d+)(ms|[smhdw])?$/.exec(text) ?? []
  if (digits === undefined) throw new Error(`invalid time "${text}"`)
  // The expression lets no other unit through.
  return Number(digits) * unitMs[unit as keyof typeof unitMs]
}
