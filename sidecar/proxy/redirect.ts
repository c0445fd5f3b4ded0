import type { Call } from '../../feedback/call.ts'
import type { Redirect, Text } from './route.ts'
import type { Matcher } from './server-names.ts'

/** A line of `proxy_redirect`: a beginning to replace, or a regular expression that replaces the whole. */
export type RedirectRule =
  | { readonly kind: 'prefix'; readonly from: Text; readonly to: Text }
  | { readonly kind: 'regex'; readonly matches: Matcher; readonly to: Text }

/**
 * Compiles `proxy_redirect`: the first rule that fits rewrites the URL. In `Refresh` the URL is what follows `url=`.
 * @returns undefined when there are no rules
 */
export function compileRedirect(
  rules: readonly RedirectRule[],
  style: RedirectStyle = usualStyle,
): Redirect | undefined {
  if (rules.length === 0) return undefined
  return (call, name, value) => {
    if (name === 'location') {
      const url = rewritten(rules, call, value)
      return url === undefined ? value : locationUrl(call, url, style)
    }
    const at = value.search(/url=/i)
    if (at < 0) return value
    const url = rewritten(rules, call, value.slice(at + 4))
    return url === undefined ? value : value.slice(0, at + 4) + url
  }
}

/** @returns undefined when no rule fits */
function rewritten(rules: readonly RedirectRule[], call: Call, url: string): string | undefined {
  for (const rule of rules) {
    if (rule.kind === 'regex') {
      if (rule.matches(call, url)) return rule.to(call)
      continue
    }
    const from = rule.from(call)
    if (url.startsWith(from)) return rule.to(call) + url.slice(from.length)
  }
  return undefined
}

/** `absolute_redirect` and `port_in_redirect`: how a `Location` on this server is written. */
export interface RedirectStyle {
  readonly absolute: boolean
  readonly port: boolean
}

export const usualStyle: RedirectStyle = { absolute: true, port: true }

/** What a client is told of a URL, or of a path on this server. */
export function locationUrl(call: Call, url: string, { absolute, port }: RedirectStyle): string {
  return absolute && url.startsWith('/') ? absoluteUrl(call, url, port) : url
}

/**
 * A `Location` on this server with scheme, host and port, as nginx makes it (`absolute_redirect on`): the port is
 * the one that was connected to, left out where it is the scheme's own.
 */
export function absoluteUrl(call: Call, path: string, withPort = true): string {
  const usual = call.scheme === 'https' ? '443' : '80'
  const told = withPort && call.serverPort !== '' && call.serverPort !== usual
  const port = told ? `:${call.serverPort}` : ''
  const host = call.host !== '' ? call.host : call.serverAddr
  return `${call.scheme}://${host}${port}${path}`
}
