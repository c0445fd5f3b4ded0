import type { Script } from './answers.ts'
import type { Message, Plan } from './plan.ts'

/** Smaller cases that may show the same, the greatest steps first. */
function* smaller(plan: Plan): Generator<Plan> {
  const { messages, scripts } = plan
  for (let i = messages.length - 1; i >= 0 && messages.length > 1; i--) {
    yield {
      ...plan,
      messages: messages.toSpliced(i, 1),
      scripts: scripts.length > 1 ? scripts.toSpliced(i, 1) : scripts,
    }
  }
  if (plan.cuts.length > 0) yield { ...plan, cuts: [] }
  if (plan.slowMs > 0) yield { ...plan, slowMs: 0 }
  if (plan.pauseMs > 0) yield { ...plan, pauseMs: 0 }
  if (plan.inTurn) yield { ...plan, inTurn: false }
  const whole: Script['cuts'] = []
  if (scripts.some((list) => list.some(({ cuts }) => cuts.length > 0))) {
    yield { ...plan, scripts: scripts.map((list) => list.map((script) => ({ ...script, cuts: whole }))) }
  }
  for (const [i, message] of messages.entries()) {
    for (const bytes of shorter(message.bytes)) {
      yield { ...plan, messages: messages.with(i, { bytes, sound: false } satisfies Message) }
    }
  }
}

/** Leaves out lines of the head, then parts of the body. */
function* shorter(bytes: Buffer): Generator<Buffer> {
  const text = bytes.toString('latin1')
  const lines = text.split('\r\n')
  for (let i = 1; i < Math.min(lines.length, 40); i++) {
    if (lines[i] !== '') yield Buffer.from(lines.toSpliced(i, 1).join('\r\n'), 'latin1')
  }
}

/**
 * Makes a case smaller as long as it still shows a fault.
 * @param shows runs a case and says whether it does
 */
export async function shrink(plan: Plan, shows: (plan: Plan) => Promise<boolean>, ms: number): Promise<Plan> {
  const end = performance.now() + ms
  let best = plan
  for (let again = true; again; ) {
    again = false
    for (const one of smaller(best)) {
      if (performance.now() > end) return best
      if (!(await shows(one))) continue
      best = one
      again = true
      break
    }
  }
  return best
}
