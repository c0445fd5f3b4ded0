import { hostname } from 'node:os'
import type { Call } from './call.ts'
import { attemptVariables } from './variables/attempts.ts'
import { prefixed } from './variables/prefixed.ts'
import { requestVariables } from './variables/request.ts'

/** Reads something of a call as text; empty where it is absent. */
export type Read = (call: Call) => string

/** A variable that a configuration declares: by `set`, by a named capture, by `map`, or by several of these. */
interface Own {
  /** In `call.values` and `call.cache`. */
  readonly slot: number
  /** Undefined until a map of that name is declared. */
  compute: Read | undefined
  volatile: boolean
  /** A map that reads itself, through others or not, finds nothing instead of running for ever. */
  running: boolean
}

/**
 * The variables of one configuration: those that every configuration has, and those it declares. Texts are
 * compiled once, at load; a compiled text looks no name up. Names are whatever their letter case, as in nginx.
 */
export class Variables {
  readonly #own = new Map<string, Own>()
  readonly #defined = new Map<string, Read>()
  readonly #prefixed = new Map(prefixed)

  /** @param options what `$hostname`, `$pid` and `$nginx_version` say; by default of this process, and nothing */
  constructor(options: { hostname?: string; pid?: number; version?: string } = {}) {
    const fixed = new Map([
      ['hostname', options.hostname ?? hostname()],
      ['pid', `${options.pid ?? process.pid}`],
      ['nginx_version', options.version ?? ''],
      ['angie_version', options.version ?? ''],
    ])
    for (const [name, text] of fixed) this.#defined.set(name, constantRead(text))
    for (const [name, read] of requestVariables) this.#defined.set(name, read)
    for (const [name, read] of attemptVariables) this.#defined.set(name, read)
  }

  /** @param name without the dollar sign */
  has(name: string): boolean {
    return this.#find(name.toLowerCase()) !== undefined
  }

  /** Whether the configuration declares it: then an empty value is a value. */
  declared(name: string): boolean {
    return this.#own.has(name.toLowerCase())
  }

  /**
   * Reader of one variable.
   * @param name without the dollar sign
   * @throws Error `unknown "name" variable`
   */
  variable(name: string): Read {
    const read = this.#find(name.toLowerCase())
    if (!read) throw new Error(`unknown "${name}" variable`)
    return read
  }

  /**
   * Compiles a text with `$name`, `${name}` and `$1` to `$9` in it. Names must have been declared before.
   * @throws Error for an unknown or ill-written name
   */
  compile(text: string): Read {
    const parts = splitText(text).map((part) => (part.literal ? part.text : this.variable(part.text)))
    if (parts.length === 0) return constantRead('')
    const [first, second] = parts
    if (parts.length === 1) return typeof first === 'string' ? constantRead(first) : first!
    if (parts.length === 2) {
      if (typeof first === 'string') return (call) => first + (second as Read)(call)
      if (typeof second === 'string') return (call) => first!(call) + second
      return (call) => first!(call) + second!(call)
    }
    return (call) => {
      let joined = ''
      for (let i = 0; i < parts.length; i++) {
        const part = parts[i]!
        joined += typeof part === 'string' ? part : part(call)
      }
      return joined
    }
  }

  /** The text itself when no variable stands in it, so that callers can decide at load; else undefined. */
  constant(text: string): string | undefined {
    return text.includes('$') ? undefined : text
  }

  /** Names of the variables in a text, in order, lower case. */
  names(text: string): string[] {
    return splitText(text).flatMap((part) => (part.literal ? [] : [part.text.toLowerCase()]))
  }

  /**
   * Declares a variable that `set` gives values; `$args` too can be set.
   * @returns gives it a value for one call
   * @throws Error `the duplicate "name" variable` when the name is taken by one that cannot be set
   */
  declareSet(name: string): (call: Call, value: string) => void {
    if (name.toLowerCase() === 'args') {
      return (call, value) => {
        call.args = value
      }
    }
    const { slot } = this.#declare(name)
    return (call, value) => {
      call.values[slot] = value
    }
  }

  /**
   * Declares the named captures of a regular expression.
   * @param names as they stand in the pattern
   * @returns keeps what a match captured: `$1` to `$9` and the names. A group that took no part is empty
   * @throws Error as `declareSet` does
   */
  declareCaptures(names: readonly string[]): (call: Call, match: RegExpExecArray) => void {
    if (names.length === 0) {
      return (call, match) => {
        call.captures = match
      }
    }
    const slots = names.map((name) => this.#declare(name).slot)
    return (call, match) => {
      call.captures = match
      const groups = match.groups!
      for (let i = 0; i < names.length; i++) call.values[slots[i]!] = groups[names[i]!] ?? ''
    }
  }

  /**
   * Declares a variable that is computed when it is read: once a request, or anew each time. A value that `set`
   * gave it goes before.
   * @throws Error as `declareSet` does
   */
  declareMap(name: string, compute: Read, volatile = false): void {
    const own = this.#declare(name)
    own.compute = compute
    own.volatile = volatile
  }

  /** Adds a variable of the program's own, read anew each time. A later one of the same name takes its place. */
  define(name: string, read: Read): void {
    this.#defined.set(name, read)
  }

  /**
   * Adds all variables whose names begin so (lower case, with the underscore).
   * @param make gets the rest of the name, in lower case
   */
  definePrefix(prefix: string, make: (rest: string) => Read): void {
    this.#prefixed.set(prefix, make)
  }

  #declare(name: string): Own {
    const key = name.toLowerCase()
    if (this.#defined.has(key)) throw new Error(`the duplicate "${name}" variable`)
    let own = this.#own.get(key)
    if (!own) {
      own = { slot: this.#own.size, compute: undefined, volatile: false, running: false }
      this.#own.set(key, own)
    }
    return own
  }

  #find(key: string): Read | undefined {
    if (/^[1-9]$/.test(key)) {
      const index = Number(key)
      return (call) => call.captures[index] ?? ''
    }
    const own = this.#own.get(key)
    if (own) return (call) => call.values[own.slot] ?? computed(own, call)
    const defined = this.#defined.get(key)
    if (defined) return defined
    // `upstream_http_` must win over a shorter prefix that also fits.
    let best = ''
    for (const prefix of this.#prefixed.keys()) {
      if (prefix.length > best.length && key.length > prefix.length && key.startsWith(prefix)) best = prefix
    }
    return this.#prefixed.get(best)?.(key.slice(best.length))
  }
}

function computed(own: Own, call: Call): string {
  const { compute, slot } = own
  if (compute === undefined || own.running) return ''
  if (own.volatile) return guarded(own, compute, call)
  const known = call.cache[slot]
  if (known !== undefined) return known
  const value = guarded(own, compute, call)
  call.cache[slot] = value
  return value
}

function guarded(own: Own, compute: Read, call: Call): string {
  own.running = true
  try {
    return compute(call)
  } finally {
    own.running = false
  }
}

function constantRead(text: string): Read {
  return () => text
}

/** A piece of a text with variables. */
export interface Part {
  readonly literal: boolean
  /** The text itself, or a variable's name as written. */
  readonly text: string
}

/**
 * Splits a text at its variables. `$10` is `$1` and a zero, as in nginx.
 * @throws Error for an ill-written name
 */
export function splitText(text: string): Part[] {
  const parts: Part[] = []
  let from = 0
  for (let at = text.indexOf('$'); at >= 0; at = text.indexOf('$', from)) {
    if (at > from) parts.push({ literal: true, text: text.slice(from, at) })
    const braced = text[at + 1] === '{'
    const start = at + (braced ? 2 : 1)
    const name = (braced ? /^\w+/ : /^(?:[1-9]|\w+)/).exec(text.slice(start))?.[0] ?? ''
    from = start + name.length
    if (braced && name !== '' && text[from] !== '}') {
      throw new Error(`the closing bracket in "${name}" variable is missing`)
    }
    if (name === '') throw new Error('invalid variable name')
    if (braced) from += 1
    parts.push({ literal: false, text: name })
  }
  if (from < text.length) parts.push({ literal: true, text: text.slice(from) })
  return parts
}
