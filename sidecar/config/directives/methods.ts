import { Type } from '../../../feedback/schema-type.ts'
import type { Method } from '../../balance/method.ts'
import { defaultMethod, methods } from '../../balance/methods.ts'
import { type Context, type Directive, directive } from '../directive.ts'
import { Fault } from '../fault.ts'

/** Each method as a group of that kind may have it. */
function everyMethod(context: Context): Directive[] {
  const entries: readonly Method[] = methods
  return entries.flatMap((method) => {
    const { name, summary, words, stream } = method
    if (context === 'stream upstream' && stream === 'never') return []
    const args =
      context === 'stream upstream' && stream !== undefined && stream !== 'never' ? stream.args : method.args
    return directive({
      name,
      in: [context],
      doc: summary,
      args,
      words,
      method: true,
      tidy(args) {
        const misfit = method.misfit?.(args)
        if (misfit !== undefined) throw new Fault(`invalid parameter "${misfit}"`)
        return args as never
      },
    })
  })
}

function ofContext(context: Context): Directive[] {
  const every = everyMethod(context)
  const shadow = directive({
    name: 'shadow',
    in: [context],
    doc:
      'A method that is tried beside the own one, here also `round_robin`: it picks too, on a state of its own, and nothing is sent. ' +
      'Metrics and `/explain` say what it would have done.',
    args: Type.Object({}),
    inner: every,
    wrong: (method) => `unknown balancing method "${method}" in "shadow" directive`,
    syntax: 'shadow METHOD [PARAMETER …];',
  })
  // Round robin is what a group has without a line of a method.
  return [...every.filter(({ name }) => name !== defaultMethod.name), shadow]
}

/** The methods' own lines and `shadow`, first those of `http`. Where both kinds of groups take the same, they are one. */
export const methodDirectives: readonly Directive[] = merged(
  ofContext('upstream'),
  ofContext('stream upstream'),
)

function merged(http: readonly Directive[], stream: readonly Directive[]): Directive[] {
  const twins = new Set<Directive>()
  const own = http.map((entry) => {
    const twin = stream.find((other) => other.name === entry.name && other.args === entry.args)
    if (twin === undefined) return entry
    twins.add(twin)
    return { ...entry, in: [...entry.in, ...twin.in] }
  })
  return [...own, ...stream.filter((entry) => !twins.has(entry))]
}
