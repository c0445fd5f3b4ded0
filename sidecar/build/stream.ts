import type { Address } from '../../feedback/peer.ts'
import type { ServerZone } from '../../feedback/server-zone.ts'
import { streamPrefix } from '../../feedback/upstream.ts'
import type { Variables } from '../../feedback/variables.ts'
import type { Group } from '../balance/group.ts'
import { hasVariables, listenAddress, streamTarget } from '../config/address.ts'
import { Fault } from '../config/fault.ts'
import { eachListen } from '../config/listen-range.ts'
import type * as model from '../config/stream-model.ts'
import type { Bind } from '../net/bind.ts'
import type { UdpBind } from '../net/bind-udp.ts'
import type { Nowhere } from '../proxy/route.ts'
import type {
  GroupTarget,
  PeerTls,
  SessionSettings,
  StreamContent,
  StreamServer,
  StreamTarget,
} from '../stream/settings.ts'
import type { AccessLog } from '../telemetry/access-log.ts'
import type { Door } from '../tls/handshake.ts'
import type { Finder } from './found-groups.ts'
import type { LiveGroup } from './groups.ts'
import { where } from './listening.ts'
import { type AccessLogSpec, conditional, defaultAccessLog } from './settings.ts'
import { sessionSettings } from './stream-settings.ts'
import { bytes } from './texts.ts'
import { buildPeerEngine, PeerLevels } from './tls-peer.ts'
import { buildEngine, type TlsSource } from './tls-server.ts'
import { isNumeric, mostWritten, writtenTexts, writtenValues } from './written-targets.ts'

/** The `stream` side of a configuration. */
export interface Streams {
  /** By the address that they listen on. */
  readonly tcp: ReadonlyMap<string, StreamServer>
  readonly udp: ReadonlyMap<string, StreamServer>
  readonly binds: readonly Bind[]
  readonly udpBinds: readonly UdpBind[]
}

/** A group, and which form of it is in force. */
export interface StreamGroup {
  readonly balancing: Group
  readonly forms?: GroupTarget['forms']
}

/** What it is built upon. */
export interface StreamsEnv {
  /** With everything declared. */
  readonly variables: Variables
  /** A group by its lower-case name, of `stream` with its prefix. */
  group(name: string): StreamGroup | undefined
  /** The counters of a `status_zone`; the same ones for the same name. */
  zone(name: string): ServerZone
  /**
   * What finds groups of addresses that no group of the configuration has.
   * @param levels from the outermost to the innermost
   */
  finder(levels: readonly model.StreamSettings[]): Finder
  readonly files: TlsSource
  /** Called once for each line of the configuration. */
  openAccessLog(spec: AccessLogSpec): AccessLog
}

/** Every address that a `proxy_pass` names, by a `map` too, and that is no group. */
export function impliedTargets({ servers = [], upstreams = {}, maps = {} }: model.StreamBlock): string[] {
  const known = new Set(Object.keys(upstreams).map((name) => name.toLowerCase()))
  const written = writtenValues({ maps })
  const named = new Set<string>()
  const mapped = new Set<string>()
  for (const { proxy_pass: pass } of servers) {
    if (pass === undefined) continue
    if (!hasVariables(pass)) named.add(pass)
    else for (const text of writtenTexts(pass, written)) if (isWritten(text)) mapped.add(text)
  }
  const unknown = (names: Iterable<string>) => [...names].filter((name) => !known.has(name.toLowerCase()))
  return [...new Set([...unknown(named), ...unknown(mapped).slice(0, mostWritten)])]
}

/** Whether it is an address that needs no looking up. */
function isWritten(text: string): boolean {
  try {
    const target = streamTarget(text)
    return target.kind === 'unix' || isNumeric(target.host)
  } catch {
    return false
  }
}

/** @throws Error for an unknown variable, and for a log that cannot be opened */
export function buildStreams(block: model.StreamBlock, env: StreamsEnv): Streams {
  const builder = new StreamsBuilder(block, env)
  for (const server of block.servers ?? []) builder.add(server)
  return builder
}

class StreamsBuilder implements Streams {
  readonly tcp = new Map<string, StreamServer>()
  readonly udp = new Map<string, StreamServer>()
  readonly binds: Bind[] = []
  readonly udpBinds: UdpBind[] = []
  readonly #block: model.StreamBlock
  readonly #env: StreamsEnv
  /** Servers that share a line share its log. */
  readonly #logs = new Map<unknown, AccessLog>()

  constructor(block: model.StreamBlock, env: StreamsEnv) {
    this.#block = block
    this.#env = env
  }

  add(server: model.StreamServerBlock): void {
    const { status_zone: zone } = server
    const counted = zone === undefined ? undefined : this.#env.zone(zone)
    const common = {
      settings: this.#settings(server),
      content: this.#content(server),
      accessLogs: this.#accessLogs(server.access_log ?? this.#block.access_log ?? defaultAccessLog),
      zone: counted,
    }
    const door = server.listen?.some(({ ssl }) => ssl) ? this.#door(server, counted) : undefined
    for (const line of eachListen(server.listen ?? [])) {
      const { address: key } = line
      const address = where(listenAddress(key))
      const live = { ...common, address: key, proxied: line.proxy_protocol === true, door: line.ssl && door }
      if (line.udp && address.kind === 'tcp') {
        this.udp.set(key, live)
        this.udpBinds.push({ key, address })
      } else {
        this.tcp.set(key, live)
        this.binds.push({ key, address, backlog: line.backlog ?? 511 })
      }
    }
  }

  #settings(server: model.StreamServerBlock): SessionSettings {
    const settings = sessionSettings([this.#block, server])
    if (!(server.proxy_ssl ?? this.#block.proxy_ssl)) return settings
    return { ...settings, peerTls: streamPeerTls([this.#block, server], [], this.#env) }
  }

  /** What clients are shown: there is one server on each address, whatever they ask for. */
  #door(server: model.StreamServerBlock, zone: ServerZone | undefined): Door {
    const block = this.#block
    const alpn = server.ssl_alpn ?? block.ssl_alpn ?? []
    const engine = buildEngine([block, server], alpn, this.#env.files)
    const rejects = server.ssl_reject_handshake ?? block.ssl_reject_handshake ?? false
    const shown = { engine, rejects, zone }
    if (zone) zone.secure = true
    return { show: () => shown }
  }

  #content(server: model.StreamServerBlock): StreamContent {
    const { variables } = this.#env
    const { proxy_pass: pass } = server
    if (pass === undefined) return { kind: 'return', text: variables.compile(bytes(server.return ?? '')) }
    const text = variables.compile(bytes(pass))
    const hostOf = (name: string) => hostNamed(this.#block, name)
    const group = (name: string) => this.#env.group(`${streamPrefix}${name}`.toLowerCase())
    if (!hasVariables(pass)) {
      const found = group(bytes(pass))
      if (found === undefined) throw new Error(`host not found in upstream "${pass}"`)
      const target = targetOf(found, hostNamed(this.#block, pass))
      return { kind: 'proxy', group: found.balancing.upstream.name, target: () => target }
    }
    const find = this.#env.finder([this.#block, server])
    return {
      kind: 'proxy',
      group: undefined,
      target(call) {
        const name = text(call)
        const found = group(name)
        return found ? targetOf(found, hostOf(name)) : foundTarget(name, find)
      },
    }
  }

  #accessLogs(lines: NonNullable<model.StreamSettings['access_log']>): AccessLog[] {
    if (lines === 'off') return []
    return lines.map((line) => {
      let log = this.#logs.get(line)
      if (!log) {
        const open = this.#env.openAccessLog({ path: line.path, format: line.format ?? 'json' })
        log = line.if === undefined ? open : conditional(open, this.#env.variables.compile(bytes(line.if)))
        this.#logs.set(line, log)
      }
      return log
    })
  }
}

/** The name that peers are to have, as `proxy_pass` says it: a group's own, or a host without its port. */
export function hostNamed({ upstreams = {} }: model.StreamBlock, pass: string): string {
  const names = Object.keys(upstreams)
  if (names.some((name) => name.toLowerCase() === pass.toLowerCase())) return pass
  const address = streamTarget(pass)
  return address.kind === 'unix' ? '' : address.host
}

/**
 * How TLS is spoken with peers at some levels, from the outermost to the innermost.
 * @param alpn protocols inside
 * @throws PartError for files that are not what they should be
 */
export function streamPeerTls(
  levels: readonly model.StreamSettings[],
  alpn: readonly string[],
  { files, variables }: Pick<StreamsEnv, 'files' | 'variables'>,
): PeerTls {
  const tls = new PeerLevels('proxy_ssl_', levels)
  const name = tls.find('name')
  const engine = buildPeerEngine(tls, alpn, files)
  return { engine, name: name === undefined ? undefined : variables.compile(bytes(name)) }
}

/** Where an address goes that no group of the configuration has. As in nginx, a session that goes nowhere is a 500. */
function foundTarget(text: string, find: Finder): StreamTarget {
  const nowhere = (error: string) => ({ group: undefined, status: 500, error })
  let address: Address
  try {
    const target = streamTarget(text)
    if (target.kind === 'tcp' && target.port === undefined) return nowhere(`no port in upstream "${text}"`)
    address = target.kind === 'unix' ? target : { ...target, port: target.port! }
  } catch (error) {
    // Whatever it says of the text, nginx's words or not.
    return nowhere(error instanceof Fault ? error.message : `invalid upstream "${text}"`)
  }
  const host = address.kind === 'unix' ? '' : address.host
  const given = (found: LiveGroup | Nowhere) =>
    'balancing' in found ? targetOf(found, host) : nowhere(found.text)
  const found = find(address)
  return found instanceof Promise ? { group: undefined, pending: found.then(given) } : given(found)
}

function targetOf({ balancing, forms }: StreamGroup, host: string): GroupTarget {
  return { group: balancing, host, forms }
}
