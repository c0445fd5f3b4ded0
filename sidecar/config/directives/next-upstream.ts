import type { Static } from 'typebox'
import { Type } from '../../../feedback/schema-type.ts'
import type { Directive } from '../directive.ts'
import { Fault } from '../fault.ts'
import { integer, time } from '../schema.ts'
import { timeMs } from '../units.ts'

const args = Type.Object({
  percent: Type.Number({ minimum: 0, maximum: 100 }),
  min: Type.Optional(Type.Number({ minimum: 0 })),
  window: Type.Optional(time),
})

/** What `proxy_next_upstream_tries` is in `http` and in `stream` alike. */
export const triesArgs = {
  name: 'proxy_next_upstream_tries',
  default: '0',
  args: integer(0),
} as const satisfies Partial<Directive>

/** And `proxy_next_upstream_timeout`. */
export const tryingTimeArgs = {
  name: 'proxy_next_upstream_timeout',
  doc: 'No further attempt when this much time has passed since the first; 0 is unlimited.',
  default: '0',
  args: time,
} as const satisfies Partial<Directive>

/** And `proxy_next_upstream_budget`. */
export const budgetArgs = {
  name: 'proxy_next_upstream_budget',
  default: '20% min=10 window=10s',
  syntax: 'proxy_next_upstream_budget N% [min=NUMBER] [window=TIME] | off;',
  args,
  words: ['percent'],
  off: true,
  split([percent = '', ...rest]: readonly string[]) {
    if (!/^[\d.]+%$/.test(percent)) throw new Fault(`invalid value "${percent}"`)
    return { percent: percent.slice(0, -1), ...parameters(rest, ['min', 'window']) }
  },
  tidy(budget: Static<typeof args>) {
    if (budget.window !== undefined && timeMs(budget.window)! < 1000) {
      throw new Fault(`invalid parameter "window=${budget.window}"`)
    }
    return budget
  },
} as const satisfies Omit<Directive<typeof args>, 'in' | 'doc'>

/** `name=value` words by name; others are left for the reader to refuse. */
function parameters(words: readonly string[], names: readonly string[]): Record<string, string | true> {
  const parts: Record<string, string | true> = Object.create(null)
  for (const word of words) {
    const name = names.find((name) => word.startsWith(`${name}=`))
    if (name === undefined) parts[word] = true
    else parts[name] = word.slice(name.length + 1)
  }
  return parts
}
