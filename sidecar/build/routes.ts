import type { ServerZone } from '../../feedback/server-zone.ts'
import type { Variables } from '../../feedback/variables.ts'
import { locationKey } from '../config/address.ts'
import { eachListen } from '../config/listen-range.ts'
import type * as model from '../config/model.ts'
import { sizeBytes, timeMs } from '../config/units.ts'
import { type LocationEntry, Locations } from '../proxy/locations.ts'
import type { AccessLog, Content, Route } from '../proxy/route.ts'
import { type ListenServers, Router, type ServerTls, type VirtualServer } from '../proxy/routes.ts'
import { ServerNames } from '../proxy/server-names.ts'
import { defaultRedirect, type Pass, type PassEnv, Passes, passOf, wayOf } from './passes.ts'
import { ScriptBuilder } from './scripts.ts'
import { type AccessLogSpec, SettingsBuilder } from './settings.ts'
import { bytes, patternOf, Texts } from './texts.ts'
import { buildEngine, type TlsSource } from './tls-server.ts'

/** What the routes are built upon. */
export interface RoutesEnv extends PassEnv {
  /** Certificates and keys; undefined where nothing speaks TLS. */
  readonly files?: TlsSource
  /** With everything declared: maps, and the names of `declareNames`. */
  readonly variables: Variables
  /** The counters of a `status_zone`; the same ones for the same name. */
  zone(kind: 'server' | 'location', name: string): ServerZone
  /** Called once for each line of the configuration. */
  openAccessLog(spec: AccessLogSpec): AccessLog
  /** For `server_tokens on`. */
  readonly version: string
  /** Told of every location that is built, with what it was built from. */
  onRoute?(route: Route, block: model.LocationBlock, server: model.ServerBlock): void
}

/** A level inside of a server: what its locations inherit. */
interface Level {
  readonly server: model.ServerBlock
  readonly settings: readonly model.Settings[]
  readonly zones: { readonly server: ServerZone | undefined; readonly location: ServerZone | undefined }
}

/** The `listen` of a server that has none. */
const defaultListen: readonly model.Listen[] = [{ address: '*:80' }]

/** One for each address. */
function listensOf({ listen = defaultListen }: model.ServerBlock): readonly model.Listen[] {
  return eachListen(listen)
}

/** Builds the router of a configuration. */
export function buildRouter(http: model.HttpBlock, env: RoutesEnv): Router {
  const builder = new RoutesBuilder(http, env)
  const listens = new Map<string, ListenServers & { explicit: boolean }>()
  const secured = addressesWith(http, 'ssl')
  const http2 = addressesWith(http, 'http2')
  for (const block of http.servers ?? []) {
    const server = builder.server(block, secured, http2)
    for (const { address, default_server } of listensOf(block)) {
      let listen = listens.get(address)
      if (!listen || (default_server && !listen.explicit)) {
        listen = {
          names: listen?.names ?? new ServerNames(),
          default: server,
          explicit: default_server === true,
          secure: secured.has(address),
          http2: http2.has(address),
        }
        listens.set(address, listen)
      }
      for (const name of block.server_name ?? ['']) listen.names.add(builder.serverName(name), server)
    }
  }
  return new Router(listens)
}

/** Addresses where TLS, or HTTP/2, is spoken: one `listen` that says so is enough. */
function addressesWith({ servers = [] }: model.HttpBlock, protocol: 'ssl' | 'http2'): ReadonlySet<string> {
  const lines = servers.flatMap(({ listen = [] }) => eachListen(listen))
  return new Set(lines.flatMap((line) => (line[protocol] ? [line.address] : [])))
}

/** Protocols that are spoken inside of TLS. */
const insideTls = ['http/1.1', 'http/1.0']
const withHttp2 = ['h2', ...insideTls]

class RoutesBuilder {
  readonly #http: model.HttpBlock
  readonly #env: RoutesEnv
  readonly #texts: Texts
  readonly #settings: SettingsBuilder
  readonly #scripts: ScriptBuilder
  readonly #passes: Passes

  constructor(http: model.HttpBlock, env: RoutesEnv) {
    this.#http = http
    this.#env = env
    this.#texts = new Texts(env.variables)
    this.#passes = new Passes(http, env, this.#texts)
    this.#settings = new SettingsBuilder(
      this.#texts,
      (spec) => env.openAccessLog(spec),
      env.version,
      env.files,
    )
    this.#scripts = new ScriptBuilder(this.#texts)
  }

  serverName(name: string) {
    const pattern = patternOf(name)
    // Hosts are compared in lower case, so a regular expression may be in any.
    return pattern ? this.#texts.matcher(pattern.source, true) : bytes(name)
  }

  /**
   * @param secured addresses where TLS is spoken
   * @param http2 addresses where HTTP/2 is, whatever their servers say
   */
  server(block: model.ServerBlock, secured: ReadonlySet<string>, http2: ReadonlySet<string>): VirtualServer {
    const zone = block.status_zone === undefined ? undefined : this.#env.zone('server', block.status_zone)
    const level: Level = {
      server: block,
      settings: [this.#http, block],
      zones: { server: zone, location: undefined },
    }
    const named = new Map<string, Route>()
    const locations = this.#locations(block.locations, level, named)
    const find = <K extends keyof model.ServerSettings>(key: K) => block[key] ?? this.#http[key]
    const large = find('large_client_header_buffers') ?? { number: 4, size: '8k' }
    const maxLine = sizeBytes(large.size) ?? 8192
    const first = block.server_name?.[0] ?? ''
    return {
      name: bytes(first.startsWith('.') ? first.slice(1) : first),
      route: {
        location: '',
        settings: this.#settings.build(level.settings, zonesOf(level), undefined),
        content: { kind: 'none' },
        script: this.#scripts.server(block.rewrites ?? []),
      },
      locations,
      named,
      mergeSlashes: find('merge_slashes') ?? true,
      maxLine,
      maxHead: large.number * maxLine,
      headerTimeout: Math.min(timeMs(find('client_header_timeout') ?? '60s') ?? 60_000, 2 ** 31 - 1),
      dropUnderscores: !(find('underscores_in_headers') ?? false),
      dropInvalid: find('ignore_invalid_headers') ?? true,
      http2: find('http2') ?? false,
      maxStreams: find('http2_max_concurrent_streams') ?? 128,
      tls: listensOf(block).some(({ address }) => secured.has(address))
        ? this.#tls(block, zone, http2)
        : undefined,
    }
  }

  #tls(block: model.ServerBlock, zone: ServerZone | undefined, http2: ReadonlySet<string>): ServerTls {
    if (zone) zone.secure = true
    const { files } = this.#env
    const engine = (inside: readonly string[]) => files && buildEngine([this.#http, block], inside, files)
    const own = engine((block.http2 ?? this.#http.http2) ? withHttp2 : insideTls)
    const told = listensOf(block).some(({ address }) => http2.has(address))
    return {
      engine: own,
      http2Engine: told ? engine(withHttp2) : own,
      rejects: block.ssl_reject_handshake ?? this.#http.ssl_reject_handshake ?? false,
      verify: block.ssl_verify_client ?? this.#http.ssl_verify_client ?? false,
      zone,
    }
  }

  #locations(
    blocks: Readonly<Record<string, model.LocationBlock>> | undefined,
    outer: Level,
    named: Map<string, Route>,
  ): Locations<Route> {
    const entries: LocationEntry<Route>[] = []
    for (const [key, block] of Object.entries(blocks ?? {})) {
      const { kind, text } = locationKey(key)
      const zone = block.status_zone
      const level: Level = {
        server: outer.server,
        settings: [...outer.settings, block],
        zones:
          zone === undefined ? outer.zones : { ...outer.zones, location: this.#env.zone('location', zone) },
      }
      const path = kind === 'regex' || kind === 'regex-any-case' || kind === 'named' ? '' : bytes(text)
      const value = this.#route(key, path, block, level)
      if (kind === 'named') {
        named.set(text, value)
        continue
      }
      const inner = block.locations && this.#locations(block.locations, level, named)
      const slashRedirect = passOf(block) !== undefined
      if (kind === 'regex' || kind === 'regex-any-case') {
        const matches = this.#texts.matcher(text, kind === 'regex-any-case')
        entries.push({ kind: 'regex', path, matches, slashRedirect, inner, value })
      } else {
        const how = kind === 'prefix-only' ? 'prefix_no_regex' : kind
        entries.push({ kind: how, path, matches: undefined, slashRedirect, inner, value })
      }
    }
    return new Locations(entries)
  }

  #route(key: string, path: string, block: model.LocationBlock, level: Level): Route {
    const content = this.#content(block, path, level)
    const pass = passOf(block)
    const redirect = defaultRedirect(pass, path)
    const route: Route = {
      location: key,
      settings: this.#settings.build(level.settings, zonesOf(level), redirect, wayOf(pass)),
      content,
      internal: block.internal !== undefined,
      // An `if` without a proxy_pass does what the location does, under its own settings.
      script: this.#scripts.location(block.rewrites ?? [], (inside) => {
        const own = passOf(inside)
        return {
          location: key,
          settings: this.#settings.build(
            [...level.settings, inside],
            zonesOf(level),
            own === undefined ? redirect : defaultRedirect(own, path),
            wayOf(own ?? pass),
          ),
          content: own === undefined ? content : this.#proxy(own, path, level),
          script: undefined,
        }
      }),
    }
    this.#env.onRoute?.(route, block, level.server)
    return route
  }

  #content(block: model.LocationBlock, path: string, level: Level): Content {
    const pass = passOf(block)
    if (pass !== undefined) return this.#proxy(pass, path, level)
    if (block.api !== undefined) return { kind: 'api', path: block.api }
    if (block.prometheus !== undefined) return { kind: 'prometheus', template: block.prometheus }
    return { kind: 'none' }
  }

  #proxy(pass: Pass, path: string, level: Level): Content {
    return { kind: 'proxy', pass: this.#passes.build(pass, path, level.settings) }
  }
}

function zonesOf({ zones }: Level): ServerZone[] {
  return [zones.server, zones.location].filter((zone) => zone !== undefined)
}
