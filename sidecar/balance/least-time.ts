import Type from 'typebox'
import { LeastTime } from './least-time-draw.ts'
import { LeastTimePlain } from './least-time-plain.ts'
import type { Method } from './method.ts'

const args = Type.Object(
  {
    mode: Type.Enum(['header', 'last_byte'], {
      description: 'what is timed: the header, or the whole answer',
    }),
    best: Type.Optional(Type.Boolean({ description: 'the best peer instead of a draw; explores with 1 %' })),
    plain: Type.Optional(Type.Boolean({ description: "Angie's rule: a draw by averages, nothing else" })),
    inflight: Type.Optional(Type.Boolean({ description: "nginx's word for what is the default here" })),
    factor: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 99, description: 'percent of an old average that stay' }),
    ),
    account: Type.Optional(
      Type.String({
        format: 'variable',
        pattern: '^\\$[A-Za-z0-9_]+$',
        description: 'nothing is learnt of a request for which it is empty or 0',
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
  },
  { additionalProperties: false },
)

export const leastTime = {
  name: 'least_time',
  summary: 'By response times, requests in flight and failures.',
  args,
  words: ['mode'],
  supports: ['backup'],
  misfit({ best, plain, inflight, errors, decay }) {
    if (!plain) return undefined
    if (best || inflight) return 'plain'
    if (errors !== undefined) return `errors=${errors}`
    return decay === undefined ? undefined : `decay=${decay}`
  },
  learning({ mode, best, plain, factor, account, errors, decay }, variable, keep = 0.9) {
    return {
      mode,
      factor: factor === undefined ? (best ? 0.98 : keep) : factor / 100,
      errors: plain ? 0 : (errors ?? 3),
      decay: plain ? 0 : milliseconds(decay ?? '10s'),
      account: account === undefined ? undefined : variable(account),
      plain: plain === true,
    }
  },
  create(upstream, peers, { best, plain }, env) {
    const { learning } = upstream
    if (learning === undefined) throw new Error(`upstream "${upstream.name}" learns nothing for least_time`)
    return plain
      ? new LeastTimePlain(upstream, peers, env)
      : new LeastTime(upstream, peers, { learning, best: best === true }, env)
  },
} as const satisfies Method<typeof args>

const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const

/** Of a time in the model's canonical form: one number and one unit. */
function milliseconds(text: string): number {
  const [, digits, unit = 's'] = /^(\d+)(ms|[smhdw])?$/.exec(text) ?? []
  if (digits === undefined) throw new Error(`invalid time "${text}"`)
  // The expression lets no other unit through.
  return Number(digits) * unitMs[unit as keyof typeof unitMs]
}
