import { Type } from '../../../feedback/schema-type.ts'
import { type Context, directive } from '../directive.ts'
import { checkPattern, Fault } from '../fault.ts'
import { conditionOperators } from '../rewrite-model.ts'
import { integer, line, text, variable, word } from '../schema.ts'

const everywhere: readonly Context[] = ['server', 'location', 'if', 'server if']

/** Statuses whose text is the value of `Location`. */
const redirects: readonly number[] = [301, 302, 303, 307, 308]

/** What is done in order before a request goes on. In YAML they are items of the list `rewrites`. */
export const stepDirectives = [
  directive({
    name: 'set',
    in: everywhere,
    step: true,
    doc: 'Gives a variable a value.',
    args: Type.Object({ variable, value: text }),
    words: ['variable', 'value'],
    wrong: (name) => `invalid variable name "${name}"`,
  }),
  directive({
    name: 'rewrite',
    in: everywhere,
    step: true,
    doc: 'Changes the URI where it matches.',
    args: Type.Object({
      regex: text,
      replacement: line,
      flag: Type.Optional(word('last', 'break', 'redirect', 'permanent')),
    }),
    words: ['regex', 'replacement', 'flag'],
    tidy(value) {
      checkPattern(value.regex, false)
      return value
    },
  }),
  directive({
    name: 'return',
    in: everywhere,
    step: true,
    doc: 'Answers with a status and a text or, for 301, 302, 303, 307 and 308, a URL. A URL alone is a 302.',
    syntax: 'return CODE [TEXT] | CODE URL | URL;',
    args: Type.Object({ code: integer(0, 999), text: Type.Optional(text) }),
    words: ['code', 'text'],
    wrong: (code) => `invalid return code "${code}"`,
    split(words) {
      const [first = '', second] = words
      if (words.length === 0 || words.length > 2) {
        throw new Fault('invalid number of arguments in "return" directive')
      }
      if (second !== undefined) return { code: first, text: second }
      return /^(?:https?:\/\/|\$scheme)/i.test(first) ? { code: '302', text: first } : { code: first }
    },
    tidy(value) {
      if (redirects.includes(value.code) && /[\r\n\0]/.test(value.text ?? '')) {
        throw new Fault(`invalid value "${value.text}"`)
      }
      return value
    },
  }),
  directive({
    name: 'break',
    in: everywhere,
    step: true,
    doc: 'Ends the steps of this level.',
    args: Type.Object({}),
    words: [],
  }),
]

/** The condition of an `if`, which has a block of its own. */
export const condition = directive({
  name: 'if',
  in: ['server', 'location'],
  doc: 'Steps and settings for requests that fulfil a condition: `$v`, or `$v` with `=`, `!=`, `~`, `~*`, `!~` or `!~*` and a text.',
  syntax: 'if ($VARIABLE [= | != | ~ | ~* | !~ | !~* TEXT]) { … }',
  args: Type.Object({
    variable,
    operator: Type.Optional(word(...conditionOperators)),
    value: Type.Optional(text),
  }),
  words: ['variable', 'operator', 'value'],
  wrong: (name) => (/^\$/.test(name) ? `invalid variable name "${name}"` : `invalid condition "${name}"`),
  split(words) {
    const inner = withoutParentheses(words)
    const [first = '', operator, value, ...rest] = inner
    if (/^!?-[fdex]$/.test(first)) throw new Fault(`"${first}" condition is not supported`)
    if (!first.startsWith('$')) throw new Fault(`invalid condition "${first}"`)
    if (operator === undefined) return { variable: first }
    if (!(conditionOperators as readonly string[]).includes(operator)) {
      throw new Fault(`unexpected "${operator}" in condition`)
    }
    if (value === undefined || rest.length > 0) throw new Fault(`invalid condition "${first}"`)
    return { variable: first, operator, value }
  },
  tidy(value) {
    if ((value.operator === undefined) !== (value.value === undefined)) {
      throw new Fault(`invalid condition "${value.variable}"`)
    }
    if (value.operator?.includes('~')) checkPattern(value.value!, value.operator.endsWith('*'))
    return value
  },
})

/** nginx wants parentheses; in YAML they may be left out. */
function withoutParentheses(words: readonly string[]): readonly string[] {
  const first = words[0] ?? ''
  if (!first.startsWith('(')) return words
  const last = words.at(-1)!
  if (!last.endsWith(')')) throw new Fault(`invalid condition "${last}"`)
  const inner = [...words]
  inner[0] = first.slice(1)
  inner.push(inner.pop()!.slice(0, -1))
  return inner.filter((word, i) => word !== '' || (i > 0 && i < inner.length - 1))
}
