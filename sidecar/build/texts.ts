import { compilePattern } from '../../feedback/pattern.ts'
import type { Variables } from '../../feedback/variables.ts'
import type { Text } from '../proxy/route.ts'
import type { Matcher } from '../proxy/server-names.ts'

/** A configuration's text as the bytes of its UTF-8, one character each: the form of all header text. */
export function bytes(text: string): string {
  return /[^\x00-\x7f]/.test(text) ? Buffer.from(text, 'utf8').toString('latin1') : text
}

/** Makes live functions of a configuration's texts. */
export class Texts {
  readonly variables: Variables

  constructor(variables: Variables) {
    this.variables = variables
  }

  /** @throws Error for an unknown variable */
  compile = (text: string): Text => this.variables.compile(bytes(text))

  /**
   * Declares the names that a regular expression captures, so that texts may use them wherever they stand.
   * @returns these names
   * @throws PatternError, and Error for a name that is taken
   */
  declare(source: string): readonly string[] {
    const { names } = compilePattern(source)
    this.variables.declareCaptures(names)
    return names
  }

  /** @param anyCase for `~*` */
  matcher(source: string, anyCase: boolean): Matcher {
    const { regex, names } = compilePattern(source, anyCase)
    const keep = this.variables.declareCaptures(names)
    return (call, text) => {
      const match = regex.exec(text)
      if (match === null) return false
      keep(call, match)
      return true
    }
  }
}

/** Takes `~ re` or `~* re` (the space may be missing) apart; undefined for a text that is no regular expression. */
export function patternOf(text: string): { readonly source: string; readonly anyCase: boolean } | undefined {
  const [, star, source] = /^~(\*?) *(.*)$/s.exec(text) ?? []
  return source === undefined ? undefined : { source, anyCase: star === '*' }
}
