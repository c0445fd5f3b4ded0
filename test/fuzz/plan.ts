import { makeScript, makeSwitch, type Script } from './answers.ts'
import { Draw } from './draw.ts'
import { mutate } from './mutations.ts'
import { type Made, makeRequest } from './requests.ts'
import { originForm, readRequests, type StrictRequest } from './strict.ts'
import { type Variant, variants } from './variants.ts'

/** One message of a client, as it goes over the connection. */
export interface Message {
  readonly bytes: Buffer
  /** It is valid, and of a kind that has to be served. */
  readonly sound: boolean
}

/** One connection of a client, and what peers answer to what comes over it. Plain data, so that it can be made smaller. */
export interface Plan {
  readonly seed: number
  readonly id: string
  readonly variant: number
  readonly messages: readonly Message[]
  /** Places in the messages' bytes where the client waits a moment, and how long, milliseconds. */
  readonly cuts: readonly number[]
  readonly pauseMs: number
  /** Each message waits for the answer to the one before. */
  readonly inTurn: boolean
  /** `leave`: with a reset, as soon as it has got so many bytes. */
  readonly ending: 'wait' | 'fin' | 'reset' | { readonly leave: number }
  /** Milliseconds before the client begins to read. */
  readonly slowMs: number
  /** By request and attempt; the last of a list stands for all that follow. */
  readonly scripts: readonly (readonly Script[])[]
}

/** What the client's bytes mean, read strictly. */
export function meaning(plan: Plan) {
  return readRequests(Buffer.concat(plan.messages.map((message) => message.bytes)))
}

/** How many of the requests, from the first, have to be served. */
export function sure(plan: Plan): number {
  const first = plan.messages.findIndex((message) => !message.sound)
  return first < 0 ? plan.messages.length : first
}

export function scriptOf(plan: Plan, request: number, attempt: number): Script {
  const list = plan.scripts[Math.min(request, plan.scripts.length - 1)]
  const script = list?.[Math.min(attempt, list.length - 1)]
  if (!script) throw new Error('a plan without answers')
  return script
}

export function variantOf(plan: Plan): Variant {
  return variants[plan.variant]!
}

/** How peers know a request again. */
export function keyOf(request: Pick<StrictRequest, 'method' | 'target'>): string {
  return `${request.method} ${originForm(request.method, request.target)}`
}

/** The case of a seed: the same each time. */
export function planOf(seed: number): Plan {
  const draw = new Draw(seed)
  const id = draw.hex(12)
  const variant = draw.below(variants.length)
  const { patient, attempts } = variants[variant]!
  const kind = draw.pick([
    'valid',
    'valid',
    'mutated',
    'mutated',
    'mutated',
    'answers',
    'answers',
    'both',
    'switch',
  ])
  if (kind === 'switch') return switching(draw, seed, id, variant)
  const count = draw.pick([1, 1, 2, 3, 5])
  const made: Made[] = []
  for (let i = 0; i < count; i++) made.push(makeRequest(draw, id, i, i === count - 1))
  const hit = kind === 'mutated' || kind === 'both' ? draw.below(count) : -1
  let messages: Message[] = made.map(({ bytes, sound }, i) => {
    return i === hit ? { bytes: mutate(draw, bytes), sound: false } : { bytes, sound }
  })
  const spoilt = kind === 'answers' || kind === 'both'
  const scripts = made.map(({ method }, i) =>
    Array.from({ length: attempts }, (_, attempt) =>
      makeScript(draw, {
        method,
        tag: `${id}.${i}.${attempt}`,
        spoilt: spoilt && draw.chance(0.7),
        stalls: !patient,
      }),
    ),
  )
  let ending: Plan['ending'] = 'wait'
  if (draw.chance(0.12)) {
    // Cut off at any byte.
    const whole = Buffer.concat(messages.map(({ bytes }) => bytes))
    const at = draw.between(1, whole.length)
    messages = truncated(messages, at)
    ending = draw.pick(['fin', 'reset', 'wait'] as const)
  } else {
    const whim = draw.below(12)
    if (whim === 0) ending = draw.pick(['fin', 'reset'] as const)
    else if (whim === 1) ending = { leave: draw.pick([1, 10, 100, 1000, 50_000]) }
  }
  const length = messages.reduce((sum, { bytes }) => sum + bytes.length, 0)
  const plan: Plan = {
    seed,
    id,
    variant,
    messages,
    cuts: draw.cuts(length),
    pauseMs: draw.pick([0, 1, 3, 15]),
    inTurn: draw.chance(0.3),
    ending,
    slowMs: draw.chance(0.1) ? draw.between(10, 60) : 0,
    scripts,
  }
  // Whoever waits for a request that never becomes whole waits for a time-out, which only some servers have short.
  const unfinished = meaning(plan).rest === 'cut'
  if (plan.ending === 'wait' && unfinished && patient)
    return { ...plan, ending: draw.pick(['fin', 'reset'] as const) }
  return plan
}

function truncated(messages: readonly Message[], at: number): Message[] {
  const kept: Message[] = []
  let left = at
  for (const { bytes, sound } of messages) {
    if (left === 0) break
    const part = bytes.subarray(0, left)
    kept.push({ bytes: part, sound: sound && part.length === bytes.length })
    left -= part.length
  }
  return kept
}

/** A request that asks to switch protocols, with bytes of the other protocol at its heels or after the answer. */
function switching(draw: Draw, seed: number, id: string, variant: number): Plan {
  const target = `/q/${id}/0`
  const head = `GET ${target} HTTP/1.1\r\nHost: fuzz\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`
  const evil = `GET /evil/${id} HTTP/1.1\r\nHost: fuzz\r\n\r\n`
  const spoken = draw.chance(0.6) ? evil : draw.hex(draw.size())
  const agreed = draw.chance(0.7)
  const script = agreed
    ? makeSwitch(draw, `${id}.0.0`)
    : makeScript(draw, { method: 'GET', tag: `${id}.0.0`, spoilt: false, stalls: false })
  const messages = [
    { bytes: Buffer.from(head, 'latin1'), sound: true },
    { bytes: Buffer.from(spoken, 'latin1'), sound: false },
  ]
  return {
    seed,
    id,
    variant,
    messages,
    cuts: draw.cuts(head.length + spoken.length),
    pauseMs: draw.pick([0, 1, 3]),
    inTurn: draw.chance(0.5),
    ending: draw.chance(0.8) ? 'fin' : 'reset',
    slowMs: 0,
    scripts: [[script]],
  }
}
