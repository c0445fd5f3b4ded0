import { bytes, lowerCase } from './bytes.ts'
import { compilePattern } from './pattern.ts'
import type { Read, Variables } from './variables.ts'

/** A `map` block as a configuration writes it. */
export interface MapOptions {
  /** Text with variables that is looked up. */
  readonly source: string
  /** Value where no key fits, empty unless given. May have variables. */
  readonly default?: string
  /** Keys may be `*.example.com`, `www.example.*` and `.example.com`. */
  readonly hostnames?: boolean
  /** Evaluated anew at each use. */
  readonly volatile?: boolean
  /**
   * Values by key. A key is a literal, whatever its letter case, or `~regex` or `~*regex`; one backslash before a
   * literal is left out. Values may have variables, and captures of their own key.
   */
  readonly values?: Readonly<Record<string, string>>
}

/**
 * Declares and compiles all maps of a configuration. Names are declared before anything is compiled, so that maps may
 * read each other in any order.
 * @param maps by variable, with or without its `$`
 * @throws Error for an unknown variable, a name that is taken or a bad regular expression
 */
export function declareMaps(maps: Readonly<Record<string, MapOptions>>, variables: Variables): void {
  const entries = Object.entries(maps).map(([name, options]) => [name.replace(/^\$/, ''), options] as const)
  for (const [name, { source, default: fallback = '', values = {} }] of entries) {
    variables.declareSet(name)
    variables.depends(name, [source, fallback, ...Object.values(values)])
    for (const key of Object.keys(values)) {
      const pattern = patternOf(key)
      if (!pattern) continue
      const { names } = compilePattern(pattern.source, pattern.anyCase)
      variables.declareCaptures(names)
      for (const captured of names) variables.depends(captured, [source])
    }
  }
  for (const [name, options] of entries) {
    variables.declareMap(name, compileMap(options, variables), options.volatile === true)
  }
}

/**
 * Compiles the look-up of a map, in nginx's order: a literal; with `hostnames` the longest mask that begins with a
 * star, then the longest that ends in one; then regular expressions in file order; then the default.
 * @throws Error as `declareMaps`
 */
export function compileMap(options: MapOptions, variables: Variables): Read {
  const { hostnames = false } = options
  const compile = (text: string) => variables.compile(bytes(text))
  const source = compile(options.source)
  const table = new Table()
  const patterns: ((call: Parameters<Read>[0], text: string) => Read | undefined)[] = []
  for (const [key, text] of Object.entries(options.values ?? {})) {
    const pattern = patternOf(key)
    if (pattern) {
      const { regex, names } = compilePattern(pattern.source, pattern.anyCase)
      const keep = variables.declareCaptures(names)
      const value = compile(text)
      patterns.push((call, subject) => {
        const match = regex.exec(subject)
        if (match === null) return undefined
        keep(call, match)
        return value
      })
    } else {
      const literal = lowerCase(bytes(key.startsWith('\\') ? key.slice(1) : key))
      table.add(literal, compile(text), hostnames && !key.startsWith('\\'))
    }
  }
  const fallback = compile(options.default ?? '')
  return (call) => {
    const text = source(call)
    // The final dot of a full host name means nothing, except to a regular expression.
    const value = table.find(lowerCase(hostnames && text.endsWith('.') ? text.slice(0, -1) : text))
    if (value) return value(call)
    for (const match of patterns) {
      const found = match(call, text)
      if (found) return found(call)
    }
    return fallback(call)
  }
}

/** Literals and masks, in lower case. */
class Table {
  readonly #exact = new Map<string, Read>()
  /** `.example.com` of `*.example.com`. */
  readonly #tails = new Map<string, Read>()
  /** `www.example.` of `www.example.*`. */
  readonly #heads = new Map<string, Read>()

  /** @param masks whether stars and a leading dot mean something */
  add(key: string, value: Read, masks: boolean): void {
    if (masks && key.startsWith('*.')) this.#tails.set(key.slice(1), value)
    else if (masks && key.endsWith('.*')) this.#heads.set(key.slice(0, -1), value)
    else if (masks && key.startsWith('.')) {
      this.#tails.set(key, value)
      this.#exact.set(key.slice(1), value)
    } else this.#exact.set(key, value)
  }

  find(text: string): Read | undefined {
    const exact = this.#exact.get(text)
    if (exact) return exact
    if (this.#tails.size > 0) {
      // From the left, so that the longest tail is found first; a star stands for one character or more.
      for (let dot = text.indexOf('.', 1); dot >= 0; dot = text.indexOf('.', dot + 1)) {
        const found = this.#tails.get(text.slice(dot))
        if (found) return found
      }
    }
    if (this.#heads.size > 0) {
      for (let dot = text.lastIndexOf('.', text.length - 2); dot >= 0; dot = text.lastIndexOf('.', dot - 1)) {
        const found = this.#heads.get(text.slice(0, dot + 1))
        if (found) return found
        if (dot === 0) break
      }
    }
    return undefined
  }
}

function patternOf(key: string): { readonly source: string; readonly anyCase: boolean } | undefined {
  if (!key.startsWith('~')) return undefined
  const anyCase = key.startsWith('~*')
  return { source: key.slice(anyCase ? 2 : 1), anyCase }
}
