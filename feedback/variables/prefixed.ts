import type { Call } from '../call.ts'

/** Variables named by a prefix and what follows it: `$http_user_agent`, `$arg_page`, `$cookie_session`, … */

type Read = (call: Call) => string

/** By prefix, its underscore included: makes a reader of the rest of the name, which is lower case. */
export const prefixed: ReadonlyMap<string, (rest: string) => Read> = new Map([
  ['http_', (rest: string): Read => reader(rest, (call) => call.rawHeaders, rest === 'cookie' ? '; ' : ', ')],
  ['sent_http_', (rest: string): Read => reader(rest, (call) => call.sentHeaders)],
  ['sent_trailer_', (rest: string): Read => reader(rest, (call) => call.sentTrailers)],
  ['upstream_http_', (rest: string): Read => reader(rest, (call) => call.attempts.at(-1)?.headers)],
  ['upstream_trailer_', (rest: string): Read => reader(rest, (call) => call.attempts.at(-1)?.trailers)],
  [
    'upstream_cookie_',
    (rest: string): Read =>
      (call) =>
        setCookie(call.attempts.at(-1)?.headers, rest),
  ],
  [
    'cookie_',
    (rest: string): Read =>
      (call) =>
        cookie(call.rawHeaders, rest),
  ],
  [
    'arg_',
    (rest: string): Read =>
      (call) =>
        argument(call.args, rest),
  ],
])

function reader(rest: string, list: (call: Call) => readonly string[] | undefined, between = ', '): Read {
  return (call) => field(list(call), rest, between)
}

/**
 * Finds a field by the form its name has in a variable: lower case, underscores for hyphens.
 * @param flat names and values in turn
 * @param between stands between the values of several lines
 * @returns empty when there is none
 */
function field(flat: readonly string[] | undefined, name: string, between: string): string {
  if (flat === undefined) return ''
  let found: string | undefined
  for (let i = 0; i < flat.length; i += 2) {
    const key = flat[i]!
    if (key.length !== name.length || !same(key, name)) continue
    found = found === undefined ? flat[i + 1]! : found + between + flat[i + 1]!
  }
  return found ?? ''
}

/** Whether a field's name is `name`, letter case and hyphens aside. Both have one length. */
function same(key: string, name: string): boolean {
  for (let i = 0; i < key.length; i++) {
    let code = key.charCodeAt(i)
    if (code >= 65 && code <= 90) code += 32
    else if (code === 45) code = 95
    if (code !== name.charCodeAt(i)) return false
  }
  return true
}

/**
 * An argument of a query string, not decoded. The first one of that name that has a `=` counts.
 * @param name lower case; compared whatever the letter case
 */
function argument(args: string, name: string): string {
  for (let start = 0; start < args.length; ) {
    let end = args.indexOf('&', start)
    if (end < 0) end = args.length
    const mark = start + name.length
    if (mark < end && args.charCodeAt(mark) === 61 && startsWith(args, start, name)) {
      return args.slice(mark + 1, end)
    }
    start = end + 1
  }
  return ''
}

/**
 * A cookie of the request.
 * @param flat the request's names and values in turn
 * @param name lower case; compared whatever the letter case, as nginx does
 */
export function cookie(flat: readonly string[], name: string): string {
  for (let i = 0; i < flat.length; i += 2) {
    if (flat[i]!.length !== 6 || flat[i]!.toLowerCase() !== 'cookie') continue
    const line = flat[i + 1]!
    for (let start = 0; start < line.length; ) {
      const value = pair(line, start, name)
      if (value !== undefined) return value
      const end = line.indexOf(';', start)
      if (end < 0) break
      start = end + 1
      while (line.charCodeAt(start) === 32) start++
    }
  }
  return ''
}

/** A cookie that a response sets. */
function setCookie(flat: readonly string[] | undefined, name: string): string {
  if (flat === undefined) return ''
  for (let i = 0; i < flat.length; i += 2) {
    if (flat[i]!.length !== 10 || flat[i]!.toLowerCase() !== 'set-cookie') continue
    const value = pair(flat[i + 1]!, 0, name)
    if (value !== undefined) return value
  }
  return ''
}

/** The value of `name = value` where it stands at `start`, up to a semicolon; undefined where it does not. */
function pair(line: string, start: number, name: string): string | undefined {
  if (!startsWith(line, start, name)) return undefined
  let at = start + name.length
  while (line.charCodeAt(at) === 32) at++
  if (line.charCodeAt(at) !== 61) return undefined
  at++
  while (line.charCodeAt(at) === 32) at++
  const end = line.indexOf(';', at)
  return end < 0 ? line.slice(at) : line.slice(at, end)
}

/** Whether `name` (lower case) stands at `start`, whatever the letter case there. */
function startsWith(text: string, start: number, name: string): boolean {
  if (start + name.length > text.length) return false
  for (let i = 0; i < name.length; i++) {
    let code = text.charCodeAt(start + i)
    if (code >= 65 && code <= 90) code += 32
    if (code !== name.charCodeAt(i)) return false
  }
  return true
}
