import { Type } from '../../../feedback/schema-type.ts'
import { directive, type Part } from '../directive.ts'
import { Fault } from '../fault.ts'
import { variable } from '../schema.ts'

/** Two decimals, as in nginx's `split_clients`. */
const percentage = /^(?=\.?\d)\d{0,9}(?:\.\d{0,2})?$/

/** Stands before `=` in place of a track's name. */
const keyWord = 'key'

export const split = directive({
  name: 'split',
  in: ['upstream', 'stream upstream'],
  doc:
    "Which track of the group's servers a request goes to: the one that the variable names; else by percentages, the rest to `stable`. " +
    "With `key` they are stretches of its hash, as in nginx's `split_clients`, in the order written, names that are whole numbers first. Two decimals are the most; `0%` sends a track nothing for now; where `stable` has a percentage, they are 100 % in all. May stand twice, once with each.",
  args: Type.Object({
    by: Type.Optional(variable),
    percent: Type.Optional(
      Type.Record(
        Type.String({ pattern: '^[A-Za-z0-9._-]{1,64}$' }),
        Type.String({ pattern: '^[0-9.]+%?$' }),
        {
          description: 'percent of the requests by track',
        },
      ),
    ),
    key: Type.Optional(Type.String({ description: 'a text with variables' })),
  }),
  words: ['by'],
  merge: true,
  syntax: 'split $VARIABLE; split TRACK=NUMBER% … [key=TEXT];',
  split: partsOf,
  tidy({ percent, key, ...rest }) {
    if (key !== undefined && !key.includes('$')) throw new Fault(`invalid parameter "key=${key}"`, 'key')
    const texts = Object.entries(percent ?? {})
    const hundredths = texts.map(([track, text]): [string, number] => [track, hundredthsOf(track, text)])
    if (hundredths.reduce((sum, [, one]) => sum + one, 0) > 10_000) {
      throw new Fault('percent total is greater than 100%', 'percent')
    }
    // A name of a track is a key of its own whatever it is, also one that objects have from the start.
    const percents = Object.fromEntries(hundredths.map(([track, one]) => [track, one / 100]))
    return {
      ...rest,
      ...(texts.length > 0 ? { percent: percents } : {}),
      ...(key === undefined ? {} : { key }),
    }
  },
})

/** A bare word is the variable, `key=…` the key, and every other `…=…` a percentage. */
function partsOf(words: readonly string[]): Record<string, Part> {
  const parts: Record<string, Part> = Object.create(null)
  const percent: Record<string, string> = Object.create(null)
  if (words.length === 0) throw new Fault('invalid number of arguments in "split" directive')
  for (const word of words) {
    const [, name, value] = /^([^$=]*)=(.*)$/s.exec(word) ?? []
    if (name === undefined || value === undefined) {
      if (!word.startsWith('$')) {
        throw new Fault(`invalid parameter "${word}", "$VARIABLE" or "TRACK=NUMBER%" is expected`)
      }
      if ('by' in parts) throw new Fault('"split" directive is duplicate')
      parts['by'] = word
    } else if (name === keyWord) {
      if (keyWord in parts) throw new Fault(`duplicate parameter "${keyWord}"`)
      parts[keyWord] = value
    } else {
      if (name in percent) throw new Fault(`duplicate parameter "${name}"`)
      if (!value.endsWith('%')) throw new Fault(invalidPercent(value, true))
      percent[name] = value
      parts['percent'] = percent
    }
  }
  return parts
}

/**
 * A track may get nothing for now, as before a canary begins and after it has failed.
 * @throws Fault in nginx's words for what is no percentage
 */
function hundredthsOf(track: string, text: string): number {
  const signed = text.endsWith('%')
  const bare = signed ? text.slice(0, -1) : text
  if (!percentage.test(bare)) throw new Fault(invalidPercent(text, signed), `percent ${track}`)
  return Math.round(100 * Number(bare))
}

/** @param sign whether `%` belongs to it: in YAML a number may stand alone */
function invalidPercent(text: string, sign: boolean): string {
  const wanted = `a number with at most two decimals${sign ? ' and "%"' : ''}`
  return `invalid percent value "${text}", ${wanted} is expected`
}
