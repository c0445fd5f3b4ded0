/**
 * Regular expressions as configurations write them, which is PCRE's language, on JavaScript's engine. Both match
 * bytes: the subjects are latin1 texts, and so is the pattern once it is compiled.
 */
export interface Pattern {
  readonly regex: RegExp
  /** Names of named groups, each once, in order. */
  readonly names: readonly string[]
  /** How many groups capture, named ones included. */
  readonly captures: number
}

/** A regular expression that cannot be compiled; the message names it. */
export class PatternError extends Error {}

/**
 * Compiles a regular expression.
 * @param source as written, without nginx's `~` or `~*` before it
 * @param anyCase for `~*`
 * @throws PatternError for a bad one, and for one that needs what JavaScript has not (atomic and possessive groups,
 * recursion, conditions)
 */
export function compilePattern(source: string, anyCase = false): Pattern {
  const bytes = Buffer.from(source, 'utf8').toString('latin1')
  const [, options = ''] = /^\(\?([ims]+)\)/.exec(bytes) ?? []
  const body = options === '' ? bytes : bytes.slice(options.length + 3)
  const flags = new Set(anyCase ? ['i', ...options] : options)
  try {
    const translation = new Translation(body, flags.has('s'))
    const regex = new RegExp(translation.text, [...flags].join(''))
    return { regex, names: [...translation.names], captures: translation.captures }
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^.*\/[a-z]*: /s, '') : String(error)
    throw new PatternError(`regex compilation failed: ${lowerFirst(reason)} in "${source}"`)
  }
}

/** What stands for an escape of PCRE; the second text is for inside of a class, undefined: not possible there. */
const escapes: Readonly<Record<string, readonly [string, string | undefined]>> = {
  A: ['^', undefined],
  z: ['$', undefined],
  Z: ['(?=\\n?$)', undefined],
  // JavaScript's \s takes 0xA0 too, which is a part of many UTF-8 characters.
  s: ['[\\t-\\r ]', '\\t-\\r '],
  S: ['[^\\t-\\r ]', '\\0-\\x08\\x0e-\\x1f!-\\xff'],
  h: ['[\\t ]', '\\t '],
  H: ['[^\\t ]', '\\0-\\x08\\n-\\x1f!-\\xff'],
  v: ['[\\n-\\r]', '\\n-\\r'],
  V: ['[^\\n-\\r]', '\\0-\\t\\x0e-\\xff'],
  R: ['(?:\\r\\n|[\\n-\\r])', undefined],
  N: ['[^\\n]', undefined],
  a: ['\\x07', '\\x07'],
  e: ['\\x1b', '\\x1b'],
}

const classes: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\0-\\x7f',
  blank: '\\t ',
  cntrl: '\\0-\\x1f\\x7f',
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: '!-\\/:-@\\[-`{-~',
  space: '\\t-\\r ',
  upper: 'A-Z',
  word: '\\w',
  xdigit: '0-9A-Fa-f',
}

/** One pass over a pattern, rewriting what the two languages write differently. */
class Translation {
  text = ''
  readonly names = new Set<string>()
  captures = 0
  readonly #source: string
  readonly #dotAll: boolean
  #at = 0

  constructor(source: string, dotAll: boolean) {
    this.#source = source
    this.#dotAll = dotAll
    while (this.#at < source.length) this.text += this.#atom()
  }

  /** Takes what the expression (sticky) matches here. */
  #take(expression: RegExp): RegExpExecArray | undefined {
    expression.lastIndex = this.#at
    const match = expression.exec(this.#source)
    if (!match) return undefined
    this.#at += match[0].length
    return match
  }

  #atom(): string {
    const character = this.#source[this.#at]!
    if (character === '\\') return this.#escape(false)
    if (character === '[') return this.#class()
    if (character === '(') return this.#group()
    this.#at += 1
    // PCRE's dot leaves out the line feed alone.
    return character === '.' && !this.#dotAll ? '[^\\n]' : character
  }

  #group(): string {
    const named = this.#take(/\(\?(?:P?<([A-Za-z_]\w*)>|'([A-Za-z_]\w*)')/y)
    if (named) {
      const name = named[1] ?? named[2]!
      this.names.add(name)
      this.captures += 1
      return `(?<${name}>`
    }
    const again = this.#take(/\(\?P=(\w+)\)/y)
    if (again) return `\\k<${again[1]!}>`
    if (this.#take(/\(\?#[^)]*\)/y)) return ''
    this.#at += 1
    if (this.#source[this.#at] !== '?') this.captures += 1
    return '('
  }

  #class(): string {
    const [open] = this.#take(/\[\^?\]?/y)!
    // A bracket that closes at once is a member of the class.
    let text = open.replace(']', '\\]')
    for (;;) {
      const posix = this.#take(/\[:(\^?\w+):\]/y)
      if (posix) {
        const range = Object.hasOwn(classes, posix[1]!) ? classes[posix[1]!] : undefined
        if (range === undefined) throw new Error(`unknown POSIX class name "${posix[1]!}"`)
        text += range
        continue
      }
      const character = this.#source[this.#at]
      if (character === undefined) throw new Error('missing terminating ] for character class')
      if (character === '\\') text += this.#escape(true)
      else {
        this.#at += 1
        text += character
        if (character === ']') return text
      }
    }
  }

  #escape(inClass: boolean): string {
    const literal = this.#take(/\\Q(.*?)(?:\\E|$)/sy)
    if (literal) return literal[1]!.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
    const hex = this.#take(/\\x(?:\{([0-9a-fA-F]{1,2})\}|([0-9a-fA-F]{0,2}))/y)
    if (hex) return `\\x${(hex[1] ?? hex[2]!).padStart(2, '0')}`
    const reference = inClass
      ? undefined
      : this.#take(/\\(?:k(?:<(\w+)>|\{(\w+)\}|'(\w+)')|g(?:\{(\w+)\}|(\d+)))/y)
    if (reference) {
      const to = reference.slice(1).find((name) => name !== undefined)!
      return /^\d+$/.test(to) ? `(?:\\${to})` : `\\k<${to}>`
    }
    const letter = this.#source[this.#at + 1]
    if (letter === undefined) throw new Error('\\ at end of pattern')
    this.#at += 2
    const entry = Object.hasOwn(escapes, letter) ? escapes[letter] : undefined
    const replacement = entry?.[inClass ? 1 : 0]
    if (replacement !== undefined) return replacement
    if (entry !== undefined || (/[A-Za-z]/.test(letter) && !/[dDwWbBnrtfc]/.test(letter))) {
      throw new Error(`\\${letter} is not supported${inClass ? ' in a class' : ''}`)
    }
    return `\\${letter}`
  }
}

function lowerFirst(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1)
}
