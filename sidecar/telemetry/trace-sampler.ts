/** The span that a request came from, as far as samplers look at it. */
export interface SampledParent {
  /** Whether it is kept. */
  readonly sampled: boolean
}

/**
 * Decides whether a trace is kept.
 * @param traceId 32 lower-case hexadecimal digits
 * @param parent undefined where the trace begins here
 */
export type Sampler = (traceId: string, parent: SampledParent | undefined) => boolean

type Env = Readonly<Record<string, string | undefined>>

const always: Sampler = () => true
const never: Sampler = () => false
const asParent = (root: Sampler): Sampler => {
  return (traceId, parent) => (parent === undefined ? root(traceId, undefined) : parent.sampled)
}

/**
 * What `OTEL_TRACES_SAMPLER` asks for. The SDK's samplers do the same, but are asked within the making of a span: too dear
 * for a request that then has none.
 * @param complain told what cannot be obeyed
 */
export function samplerOf(env: Env, complain: (text: string) => void): Sampler {
  const name = env['OTEL_TRACES_SAMPLER']?.trim() || 'parentbased_always_on'
  switch (name) {
    case 'always_on':
      return always
    case 'always_off':
      return never
    case 'traceidratio':
      return ratioOf(env, complain)
    case 'parentbased_always_on':
      return asParent(always)
    case 'parentbased_always_off':
      return asParent(never)
    case 'parentbased_traceidratio':
      return asParent(ratioOf(env, complain))
    default:
      complain(`unknown sampler "${name}": every trace is kept whose parent is, and every new one`)
      return asParent(always)
  }
}

function ratioOf(env: Env, complain: (text: string) => void): Sampler {
  const text = env['OTEL_TRACES_SAMPLER_ARG']?.trim() ?? ''
  const ratio = text === '' ? Number.NaN : Number(text)
  if (!(ratio >= 0 && ratio <= 1)) {
    complain(`OTEL_TRACES_SAMPLER_ARG is "${text}" and not a number from 0 to 1: every trace is kept`)
    return always
  }
  return ratioSampler(ratio)
}

/** Keeps that part of all traces. By their ids, so that whoever decides in this way decides alike. */
export function ratioSampler(ratio: number): Sampler {
  if (ratio === 1) return always
  const bound = Math.floor(ratio * 0xffff_ffff)
  return (traceId) => {
    // The four words of the id, folded into one.
    let word = 0
    for (let at = 0; at < 32; at += 8) word ^= Number.parseInt(traceId.slice(at, at + 8), 16)
    return word >>> 0 < bound
  }
}
