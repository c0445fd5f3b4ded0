import type { Call } from '../../feedback/call.ts'
import { lowerCase } from './uri.ts'

/**
 * A regular expression at work: tells whether the text matches, and if so leaves its captures and the values of
 * its named groups on the call.
 */
export type Matcher = (call: Call, text: string) => boolean

/** A name of a virtual server: a text of `server_name`, or a regular expression. */
export type ServerName = string | Matcher

/**
 * Finds the virtual server of a host, as nginx does: an exact name, else the longest that begins with `*.`, else
 * the longest that ends in `.*`, else the first regular expression in file order. Of two servers with the same
 * name the first has it.
 */
export class ServerNames<T> {
  #exact = new Map<string, T>()
  /** `.example.com` of `*.example.com`: longest first. */
  #suffixes: [string, T][] = []
  /** `www.` of `www.*`: longest first. */
  #prefixes: [string, T][] = []
  #patterns: [Matcher, T][] = []

  /**
   * @param name lower or upper case alike; an empty text is the name of requests without a host. `.example.com` is
   * both `example.com` and `*.example.com`
   */
  add(name: ServerName, server: T): void {
    if (typeof name !== 'string') {
      this.#patterns.push([name, server])
      return
    }
    const lower = lowerCase(name)
    if (lower.startsWith('*.')) insert(this.#suffixes, lower.slice(1), server)
    else if (lower.endsWith('.*')) insert(this.#prefixes, lower.slice(0, -1), server)
    else if (lower.startsWith('.')) {
      insert(this.#suffixes, lower, server)
      this.#addExact(lower.slice(1), server)
    } else this.#addExact(lower, server)
  }

  #addExact(name: string, server: T): void {
    if (!this.#exact.has(name)) this.#exact.set(name, server)
  }

  /**
   * @param host lower case, without port; empty when the request has none
   * @param call gets the captures of a regular expression that matches
   * @returns undefined when no name fits: the default server's
   */
  find(host: string, call: Call): T | undefined {
    const exact = this.#exact.get(host)
    if (exact !== undefined || host === '') return exact
    // A star stands for at least one character.
    for (const [suffix, server] of this.#suffixes) {
      if (host.length > suffix.length && host.endsWith(suffix)) return server
    }
    for (const [prefix, server] of this.#prefixes) {
      if (host.length > prefix.length && host.startsWith(prefix)) return server
    }
    for (const [matches, server] of this.#patterns) {
      if (matches(call, host)) return server
    }
    return undefined
  }
}

function insert<T>(list: [string, T][], part: string, server: T): void {
  if (list.some(([known]) => known === part)) return
  list.push([part, server])
  list.sort((a, b) => b[0].length - a[0].length)
}
