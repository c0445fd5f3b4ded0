import type { Call } from '../../feedback/call.ts'
import type { PeerGroup } from './pools.ts'
import type { Nowhere, ProxyPass, Target, Text } from './route.ts'
import { escapeUri, fitForLine } from './uri.ts'

/** What `proxy_pass` points at, taken apart. */
export interface PassAddress {
  /** Host with its port as written, or `unix:/path`; a group's name. */
  readonly authority: string
  /** Host alone; the path for a Unix socket. */
  readonly host: string
  readonly unix: boolean
  /** Undefined when not written: 80, or 443 with TLS. */
  readonly port: number | undefined
  /** Whether TLS is spoken there. */
  readonly secure: boolean
  /** From the first `/` or `?` on; undefined when there is none. */
  readonly uri: string | undefined
}

/** What an address comes to at run time; a promise where its name has to be looked up. */
export type Destination = PeerGroup | Nowhere | Promise<PeerGroup | Nowhere>

/**
 * A `proxy_pass` without variables.
 * @param prefix the path of the location that it stands in, which its own path replaces; empty for a regular
 * expression
 */
export function fixedPass(address: PassAddress, group: PeerGroup | undefined, prefix: string): ProxyPass {
  const target = targetOf(address, group)
  const { uri } = address
  const name = group?.balancing.upstream.name
  if (uri === undefined) return { group: name, target: () => target, requestTarget: ownTarget }
  const path = fitForLine(uri.startsWith('/') ? uri : `/${uri}`)
  return {
    group: name,
    target: () => target,
    requestTarget(call) {
      // `rewrite … break` has made the whole path anew: neither location nor proxy_pass have a part in it.
      if (!call.pathKept) return withArgs(call, absolute(rest(call, 0)))
      return withArgs(call, path + rest(call, prefix.length))
    },
  }
}

/**
 * A `proxy_pass` with variables: its text is made anew for each request. With a path in it that is sent as it
 * comes out, and nothing is added to it.
 * @param parse takes the text apart; what is wrong with it when it is no URL
 * @param group finds a group by its address
 */
export function variablePass(
  text: Text,
  parse: (text: string) => PassAddress | string,
  group: (address: PassAddress) => Destination,
): ProxyPass {
  return {
    group: undefined,
    target(call) {
      const address = parse(text(call))
      if (typeof address === 'string') {
        return { group: undefined, host: '', port: '', failure: { status: 500, text: address } }
      }
      const found = group(address)
      if ('balancing' in found) return targetOf(address, found)
      const target = targetOf(address, undefined)
      return found instanceof Promise ? { ...target, pending: found } : { ...target, failure: found }
    },
    requestTarget(call) {
      const address = parse(text(call))
      const uri = typeof address === 'string' ? undefined : address.uri
      return uri === undefined ? ownTarget(call) : fitForLine(absolute(uri))
    },
  }
}

/** nginx leaves the default port out of `$proxy_host`, and says `localhost` for Unix sockets. */
function targetOf(address: PassAddress, group: PeerGroup | undefined): Target {
  const { authority, port, unix, secure, host: name } = address
  const usual = secure ? 443 : 80
  const host = unix ? 'localhost' : port === usual ? authority.replace(/:\d+$/, '') : authority
  return { group, host, port: unix ? '' : String(port ?? usual), name: unix ? host : name, secure }
}

/**
 * The client's own target, byte for byte; where the path was rewritten, that one, escaped anew. The location was
 * chosen by the normalised path, which a peer may read out of these bytes otherwise: a proxy_pass with a path sends
 * the normalised one.
 */
function ownTarget(call: Call): string {
  if (!call.rewritten) return call.target
  return withArgs(call, absolute(rest(call, 0)))
}

/**
 * The path from `from` on. What the client sent without a single escape is not escaped either: it was fit to be
 * sent, and some bytes (quotes, braces) that nginx would escape may be what the peer expects.
 */
function rest(call: Call, from: number): string {
  const path = from === 0 ? call.uri : call.uri.slice(from)
  return call.rewritten || hadEscapes(call.target) ? escapeUri(path) : path
}

function hadEscapes(target: string): boolean {
  const percent = target.indexOf('%')
  if (percent < 0) return false
  const question = target.indexOf('?')
  return question < 0 || percent < question
}

function withArgs(call: Call, path: string): string {
  // `set $args` can have put anything there.
  return call.args === '' ? path : `${path}?${fitForLine(call.args)}`
}

/** A rewrite can leave a path without its slash, or a URL have arguments alone: a request line needs one. */
function absolute(path: string): string {
  return path.startsWith('/') ? path : `/${path}`
}
