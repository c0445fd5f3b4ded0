import type { Call } from '../../feedback/call.ts'
import type { Matcher } from './server-names.ts'

/** How a location says which paths are its own. */
export type LocationKind = 'exact' | 'prefix' | 'prefix_no_regex' | 'regex'

/** A location with those inside of it. */
export interface LocationEntry<T> {
  readonly kind: LocationKind
  /** Prefix or whole path, decoded; empty for a regular expression. */
  readonly path: string
  /** Undefined but for a regular expression. */
  readonly matches: Matcher | undefined
  /** A request for `path` without its final slash is sent to the form with it: for those with a proxy_pass. */
  readonly slashRedirect: boolean
  readonly inner: Locations<T> | undefined
  readonly value: T
}

/** Where a path leads. */
export type Found<T> =
  | { readonly kind: 'location'; readonly value: T }
  /** The path is this location's but for the final slash. */
  | { readonly kind: 'slash'; readonly value: T; readonly path: string }

/**
 * The locations of one level, searched in nginx's order: an exact one ends the search; else the longest prefix is
 * noted, and inside of it the search goes on; then regular expressions in file order, unless the prefix has `^~` or
 * an inner one has matched by regular expression; else it is the prefix.
 */
export class Locations<T> {
  #exact = new Map<string, LocationEntry<T>>()
  /** Longest first. */
  #prefixes: LocationEntry<T>[] = []
  #regexes: LocationEntry<T>[] = []
  /** By the path without its final slash. */
  #slashes = new Map<string, LocationEntry<T>>()

  constructor(entries: readonly LocationEntry<T>[]) {
    for (const entry of entries) {
      if (entry.kind === 'regex') this.#regexes.push(entry)
      else if (entry.kind === 'exact') this.#exact.set(entry.path, entry)
      else this.#prefixes.push(entry)
      if (entry.kind !== 'regex' && entry.slashRedirect && entry.path.endsWith('/')) {
        this.#slashes.set(entry.path.slice(0, -1), entry)
      }
    }
    this.#prefixes.sort((a, b) => b.path.length - a.path.length)
  }

  /**
   * @param call gets the captures of a regular expression that matches
   * @returns undefined when no location fits: the server's own level
   */
  find(uri: string, call: Call): Found<T> | undefined {
    return this.#search(uri, call)?.found
  }

  /** `final`: an outer level's regular expressions are not asked any more. */
  #search(uri: string, call: Call): { found: Found<T>; final: boolean } | undefined {
    const exact = this.#exact.get(uri)
    if (exact) return { found: { kind: 'location', value: exact.value }, final: true }
    const inside = ({ inner }: LocationEntry<T>) => (inner ? inner.#search(uri, call) : undefined)
    const prefix = this.#prefixes.find((entry) => uri.startsWith(entry.path))
    const slash = this.#slashes.get(uri)
    if (slash && prefix?.path !== uri) {
      return { found: { kind: 'slash', value: slash.value, path: slash.path }, final: true }
    }
    let found: Found<T> | undefined
    if (prefix) {
      found = { kind: 'location', value: prefix.value }
      const inner = inside(prefix)
      if (inner?.final) return inner
      if (inner) found = inner.found
    }
    if (prefix?.kind !== 'prefix_no_regex') {
      for (const entry of this.#regexes) {
        if (!entry.matches!(call, uri)) continue
        const inner = inside(entry)
        return { found: inner?.found ?? { kind: 'location', value: entry.value }, final: true }
      }
    }
    return found && { found, final: false }
  }
}
