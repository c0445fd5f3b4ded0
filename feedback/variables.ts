import { hostname } from 'node:os'
import type { Call } from './call.ts'
import { attemptVariables } from './variables/attempts.ts'
import { orcaPrefixed, orcaVariables } from './variables/orca.ts'
import { computed, type Own } from './variables/own.ts'
import { prefixed } from './variables/prefixed.ts'
import { tlvRead } from './variables/proxy-protocol.ts'
import { requestVariables } from './variables/request.ts'
import { splitText } from './variables/split.ts'
import { streamVariables } from './variables/stream.ts'
import { tlsVariables } from './variables/tls.ts'
import { traceVariables } from './variables/trace.ts'

/** Reads something of a call as text; empty where it is absent. */
export type Read = (call: Call) => string

/**
 * The variables of one configuration: those that every configuration has, and those it declares. Texts are
 * compiled once, at load; a compiled text looks no name up. Names are whatever their letter case, as in nginx.
 */
export class Variables {
  readonly #own = new Map<string, Own>()
  readonly #defined = new Map<string, Read>()
  readonly #prefixed: Map<string, (rest: string) => Read>
  /** What the texts read that a declared variable is made of: see `depends`. */
  readonly #reads = new Map<string, Set<string>>()

  /**
   * @param options what `$hostname`, `$pid` and `$nginx_version` say; by default of this process, and nothing
   * @param kind whether they tell of requests, or of sessions
   */
  constructor(
    options: { hostname?: string; pid?: number; version?: string } = {},
    kind: 'http' | 'stream' = 'http',
  ) {
    const fixed = new Map([
      ['hostname', options.hostname ?? hostname()],
      ['pid', `${options.pid ?? process.pid}`],
      ['nginx_version', options.version ?? ''],
      ['angie_version', options.version ?? ''],
    ])
    for (const [name, text] of fixed) this.#defined.set(name, constantRead(text))
    const known =
      kind === 'stream'
        ? [streamVariables, tlsVariables]
        : [requestVariables, tlsVariables, attemptVariables, orcaVariables, traceVariables]
    for (const list of known) for (const [name, read] of list) this.#defined.set(name, read)
    this.#prefixed = new Map(kind === 'stream' ? [] : [...prefixed, ...orcaPrefixed])
    this.#prefixed.set('proxy_protocol_tlv_', tlvRead)
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
   * Compiles a text that is to be read of one attempt after the other: what maps have found for the attempt before,
   * or before the first one, does not hold for this one. What is found is not kept for others either.
   * @throws Error as `compile` does
   */
  fresh(text: string): Read {
    const read = this.compile(text)
    if (!this.involves(text, (name) => this.#own.has(name))) return read
    return (call) => {
      const { cache, captures } = call
      call.cache = []
      try {
        return read(call)
      } finally {
        call.cache = cache
        call.captures = captures
      }
    }
  }

  /**
   * Notes what a declared variable is made of, for `involves`.
   * @param texts with the variables that its value comes from or is chosen by
   */
  depends(name: string, texts: readonly string[]): void {
    const key = name.toLowerCase()
    const reads = this.#reads.get(key) ?? new Set()
    this.#reads.set(key, reads)
    for (const text of texts) {
      for (const [, found] of text.matchAll(/\$\{?(\w+)/g)) reads.add(found!.toLowerCase())
    }
  }

  /** Whether a text reads a variable of such a name (lower case), in itself or by what it reads is made of. */
  involves(text: string, is: (name: string) => boolean): boolean {
    const names = new Set(this.names(text))
    // A set goes on over what is added meanwhile.
    for (const name of names) {
      if (is(name)) return true
      for (const further of this.#reads.get(name) ?? []) names.add(further)
    }
    return false
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

function constantRead(text: string): Read {
  return () => text
}
