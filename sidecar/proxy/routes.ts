import { Call } from '../../feedback/call.ts'
import { ClientTls, certificateRefusal } from '../tls/client-tls.ts'
import type { Engine, VerifyClient } from '../tls/engine.ts'
import type { Door, ShownServer } from '../tls/handshake.ts'
import type { Locations } from './locations.ts'
import { type LocalAnswer, type LocalContent, mostRelocations, redirectStatuses } from './respond.ts'
import type { Content, Route, Step } from './route.ts'
import type { ServerNames } from './server-names.ts'
import { escapeUri, lowerCase, parseHost, parseTarget } from './uri.ts'

/** A `server` block, ready to run. */
export interface VirtualServer {
  /** Its first name, as written; empty when it has none. */
  readonly name: string
  /** Its own level: settings until a location is known, and the script that runs before one is looked for. */
  readonly route: Route
  readonly locations: Locations<Route>
  /** By name, with the `@`. */
  readonly named: ReadonlyMap<string, Route>
  readonly mergeSlashes: boolean
  /** Most bytes of the request line's target, and of one header field: the size of a large header buffer. */
  readonly maxLine: number
  /** Most bytes of a request head. */
  readonly maxHead: number
  /** Milliseconds for a whole request head. */
  readonly headerTimeout: number
  readonly dropUnderscores: boolean
  readonly dropInvalid: boolean
  /** Whether HTTP/2 is spoken. */
  readonly http2: boolean
  /** Most requests of an HTTP/2 connection at once. */
  readonly maxStreams: number
  /** What it shows to clients of TLS and asks of them; undefined where none of its addresses speaks TLS. */
  readonly tls?: ServerTls | undefined
}

/** A server as clients of TLS meet it. */
export interface ServerTls extends ShownServer {
  readonly verify: VerifyClient
  /** The same at addresses where HTTP/2 is spoken whatever their servers say. */
  readonly http2Engine: Engine | undefined
}

/** The servers of one address that is listened on. */
export interface ListenServers {
  readonly names: ServerNames<VirtualServer>
  /** The one marked `default_server`, else the first: for hosts that no name fits. */
  readonly default: VirtualServer
  /** Whether TLS is spoken there. */
  readonly secure?: boolean
  /** Whether HTTP/2 is, whatever its servers say. */
  readonly http2?: boolean
}

/** Which server a request is for. */
export interface Admission {
  readonly server: VirtualServer
  /** Status to refuse it with; undefined: it may go on. */
  readonly refusal: number | undefined
}

/** What is to be done with a request. */
export type Decision =
  | { readonly kind: 'content'; readonly route: Route; readonly content: Exclude<Content, { kind: 'none' }> }
  /** Answer locally; see `localResponse`. */
  | {
      readonly kind: 'respond'
      readonly route: Route
      readonly status: number
      readonly content: LocalContent
      /** For the error log; undefined when this is no error of the configuration. */
      readonly error: string | undefined
    }
  /** Close the connection without an answer (`return 444`). */
  | { readonly kind: 'close'; readonly route: Route }

/** Most header fields of a request: nginx's `max_headers`. */
const mostHeaders = 1000

/** Finds server and location of requests, and runs what the configuration says on the way. */
export class Router {
  readonly #listens: ReadonlyMap<string, ListenServers>

  /** @param listens by the listening address's key */
  constructor(listens: ReadonlyMap<string, ListenServers>) {
    this.#listens = listens
  }

  /** Keys of the addresses to listen on. */
  keys(): string[] {
    return [...this.#listens.keys()]
  }

  /** The default server of an address that is listened on. */
  default(key: string): VirtualServer {
    return this.#listens.get(key)!.default
  }

  /** What clients of TLS are shown at an address; undefined where they are not to speak it. */
  door(key: string): Door | undefined {
    const listen = this.#listens.get(key)!
    if (!listen.secure) return undefined
    const own = listen.default.tls
    return {
      show(name) {
        const found = (listen.names.find(name, new Call()) ?? listen.default).tls
        const engine = listen.http2
          ? (found?.http2Engine ?? own?.http2Engine)
          : (found?.engine ?? own?.engine)
        return { engine, rejects: found?.rejects ?? false, zone: found?.zone }
      },
    }
  }

  /** What an address that speaks TLS has against a request; undefined: nothing. @returns nginx's status */
  #unfit(key: string, server: VirtualServer, call: Call): number | undefined {
    const listen = this.#listens.get(key)!
    if (!listen.secure) return undefined
    const { tls } = call
    if (!(tls instanceof ClientTls)) return 497
    const verify = server.tls?.verify ?? false
    if (verify === false) return undefined
    // Whoever has named one server is not let in by what another one asks for. Who names none (it called by address)
    // was asked for what the default server asks for, be that one's name empty or not.
    const named = tls.serverName
    if (named !== '' && call.host !== named && listen.names.find(named, new Call())) return 421
    const policy = (server.tls?.engine ?? listen.default.tls?.engine)?.policy
    if (tls.engine.verify !== false && tls.engine.policy !== policy) return 421
    return certificateRefusal(tls, verify)
  }

  /**
   * The server for a host, whose name goes on the call.
   * @param key the listening address
   * @param host lower case, without port; empty when the request has none
   */
  find(key: string, host: string, call: Call): VirtualServer {
    const listen = this.#listens.get(key)!
    const server = listen.names.find(host, call) ?? this.#named(listen, host, call) ?? listen.default
    call.serverName = server.name
    call.host = host === '' ? lowerCase(server.name) : host
    return server
  }

  /** Without a host in the request it is the one that the handshake was for. */
  #named(listen: ListenServers, host: string, call: Call): VirtualServer | undefined {
    if (host !== '' || call.tls === undefined) return undefined
    return listen.names.find(call.tls.serverName, call)
  }

  /**
   * Reads the request's target and host, chooses its server and takes the client's real address. What two parsers
   * could read in two ways is refused.
   */
  admit(key: string, call: Call): Admission {
    const refused = (refusal: number): Admission => ({ server: this.find(key, '', call), refusal })
    const hosts = hostFields(call)
    const host = hosts.length === 1 ? parseHost(hosts[0]!) : undefined
    const hostless = hosts.length === 0 && call.httpVersion === '1.0'
    if (host === undefined && !hostless) return refused(400)
    // The server decides how the path is read, and a target with a host in it decides the server.
    const early = parseTarget(call.target)
    const named = early?.authority === undefined ? host : parseHost(early.authority)
    if (early?.authority !== undefined && named === undefined) return refused(400)
    const server = this.find(key, named ?? '', call)
    if (call.target.length > server.maxLine) return { server, refusal: 414 }
    if (tooLarge(call, server.maxLine)) return { server, refusal: 431 }
    server.route.settings.realIp?.(call)
    if (call.target === '*' && call.method === 'OPTIONS') {
      call.uri = '*'
      return { server, refusal: this.#unfit(key, server, call) }
    }
    const target = server.mergeSlashes ? early : parseTarget(call.target, false)
    if (!target) return { server, refusal: 400 }
    // After the target: what cannot be read ends its connection, whatever its method.
    if (call.method === 'TRACE') return { server, refusal: 405 }
    call.target = target.origin
    call.uri = target.uri
    call.args = target.args
    return { server, refusal: this.#unfit(key, server, call) }
  }
}

function hostFields({ rawHeaders }: Call): string[] {
  const values: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length === 4 && name.toLowerCase() === 'host') values.push(rawHeaders[i + 1]!)
  }
  return values
}

function tooLarge(call: Call, maxLine: number): boolean {
  const { rawHeaders } = call
  if (rawHeaders.length / 2 >= mostHeaders) return true
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.length + rawHeaders[i + 1]!.length + 4 > maxLine) return true
  }
  return false
}

/** Runs a request through its server: the server's script, its location, that one's script, and again as these say. */
export function decide(server: VirtualServer, call: Call): Decision {
  // The question is about the server as a whole (RFC 9110 section 9.3.7): no location is concerned.
  if (call.uri === '*') return respond(server.route, 200, { text: '' })
  const step = server.route.script?.(call)
  if (step?.kind === 'return') return returned(server.route, step)
  return locate(server, call)
}

/** Goes on where `error_page` points. */
export function follow(
  server: VirtualServer,
  call: Call,
  to: Exclude<LocalAnswer, { kind: 'response' }>,
): Decision {
  call.relocations += 1
  const cycle = `rewrite or internal redirection cycle while redirecting to`
  if (to.kind === 'named') {
    if (call.relocations > mostRelocations)
      return broken(server.route, `${cycle} named location "${to.name}"`)
    const route = server.named.get(to.name)
    if (!route) return broken(server.route, `could not find named location "${to.name}"`)
    return enter(server, route, call)
  }
  if (call.relocations > mostRelocations) return broken(server.route, `${cycle} "${to.uri}"`)
  call.uri = to.uri
  call.args = to.args
  call.rewritten = true
  call.pathKept = true
  return decide(server, call)
}

function locate(server: VirtualServer, call: Call): Decision {
  const found = server.locations.find(call.uri, call)
  if (!found) return settled(server.route)
  if (found.value.internal && !call.rewritten) return respond(found.value, 404, {})
  if (found.kind === 'slash') {
    const location = escapeUri(found.path) + (call.args === '' ? '' : `?${call.args}`)
    return respond(found.value, 301, { location })
  }
  return enter(server, found.value, call)
}

function enter(server: VirtualServer, route: Route, call: Call): Decision {
  const { realIp } = route.settings
  if (realIp !== server.route.settings.realIp) realIp?.(call)
  const step = route.script?.(call)
  switch (step?.kind) {
    case 'return':
      return returned(route, step)
    case 'route':
      return settled(step.route)
    case 'relocate':
      call.relocations += 1
      if (call.relocations > mostRelocations) {
        return broken(route, `rewrite or internal redirection cycle while processing "${call.uri}"`)
      }
      return locate(server, call)
    default:
      return settled(route)
  }
}

function settled(route: Route): Decision {
  const { content } = route
  return content.kind === 'none' ? respond(route, 404, {}) : { kind: 'content', route, content }
}

/** Where `return` stops: a URL for redirects, no body and no page below 400, a page from 400 on unless there is a text. */
function returned(own: Route, step: Extract<Step, { kind: 'return' }>): Decision {
  const { status, text } = step
  const route = step.route ?? own
  if (status === 444) return { kind: 'close', route }
  if (redirectStatuses.has(status)) return respond(route, status, { location: text })
  return respond(route, status, status < 400 && status >= 200 ? { text: text ?? '' } : { text })
}

function respond(route: Route, status: number, content: LocalContent, error?: string): Decision {
  return { kind: 'respond', route, status, content, error }
}

function broken(route: Route, error: string): Decision {
  return respond(route, 500, {}, error)
}
