import type { Deed, PeerWish } from '../admin/runtime-facts.ts'
import type { Plan } from '../build/plans.ts'
import type { ServerLine } from '../config/upstream-model.ts'
import { type Aim, aimAt, type Next, type Wisher } from './aim.ts'
import { linesOf, type Made, saying, type ValueKind, valueIn, valueKinds } from './changes.ts'

/**
 * What a wish about values makes of the changes of a group.
 * @throws Refusal
 */
export function revaluing(
  plan: Plan,
  made: readonly Made[],
  address: string,
  wish: PeerWish,
  wisher: Wisher,
): Next {
  const aim = aimAt(plan, made, address)
  const deeds: Deed[] = []
  const words: string[] = []
  let next = made
  for (const kind of valueKinds) {
    const value = wish[kind]
    if (value === undefined) continue
    const before = next
    next = value === null ? without(next, aim, kind) : revalued(plan, next, aim, kind, value, wisher)
    if (next === before) continue
    deeds.push(kind)
    const made = next.find((change) => is(change, aim, kind))
    const said = made?.file === undefined ? '' : `, where the file says ${made.file}`
    words.push(
      made
        ? `${kind} of ${aim.target} is ${value}${said}`
        : `${kind} of ${aim.target} is as in the file again`,
    )
  }
  return { made: next, peers: aim.peers.map(({ name }) => name), deeds, words }
}

function is(change: Made, { whole, target }: Aim, kind: Made['kind']): boolean {
  return change.kind === kind && change.whole === whole && change.target === target
}

function without(made: readonly Made[], aim: Aim, kind: ValueKind): readonly Made[] {
  const left = made.filter((change) => !is(change, aim, kind))
  return left.length === made.length ? made : left
}

function revalued(
  plan: Plan,
  made: readonly Made[],
  aim: Aim,
  kind: ValueKind,
  value: string | number,
  { by, at }: Wisher,
): readonly Made[] {
  const { whole, target, lines } = aim
  if (made.some((change) => is(change, aim, kind) && change.value === value)) {
    const overruled = whole && made.some((change) => narrower(change, target, kind))
    if (!overruled) return made
  }
  let others = without(made, aim, kind)
  // The last word on a whole line holds for each of its addresses.
  if (whole && others.some((change) => narrower(change, target, kind))) {
    others = others.filter((change) => !narrower(change, target, kind))
  }
  const about = linesOf(plan, made).filter((line) => lines.includes(line.address))
  const under = about.map((line) => underneath(line, others, aim, kind))
  if (under.every((one) => one === value)) return others
  const file = new Set(about.map((line) => (fromDns(line, kind) ? undefined : valueIn(line, kind))))
  const change: Made = {
    upstream: plan.name,
    ...{ kind, target, whole, value, at, by, lines },
    file: file.size === 1 ? [...file][0] : undefined,
    was: saying(about, kind),
  }
  return [...others, change]
}

function narrower(change: Made, line: string, kind: ValueKind): boolean {
  return change.kind === kind && !change.whole && change.lines.includes(line)
}

/** What would hold of a line's peer without the change. */
function underneath(
  line: ServerLine,
  others: readonly Made[],
  { whole }: Aim,
  kind: ValueKind,
): string | number | undefined {
  const wide = whole
    ? undefined
    : others.find((change) => change.kind === kind && change.whole && change.target === line.address)
  if (wide) return wide.value
  return fromDns(line, kind) ? undefined : valueIn(line, kind)
}

/** Whether it is a matter of service records, and of no line. */
function fromDns({ service }: ServerLine, kind: ValueKind): boolean {
  return service !== undefined && kind === 'weight'
}
