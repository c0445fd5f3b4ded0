import { isAbsolute, resolve } from 'node:path'
import { Call } from '../../feedback/call.ts'
import { declareMaps } from '../../feedback/map.ts'
import type { ServerZone } from '../../feedback/server-zone.ts'
import { Variables } from '../../feedback/variables.ts'
import type { LiveProbe } from '../../probes/live-probe.ts'
import type { Template } from '../admin/facts.ts'
import { template } from '../admin/template.ts'
import { listenAddress } from '../config/address.ts'
import { eachListen } from '../config/listen-range.ts'
import type { Loaded } from '../config/load.ts'
import type { HttpBlock, Listen, Model } from '../config/model.ts'
import type { Resolving } from '../config/upstream-model.ts'
import { type Membership, noMembership } from '../membership.ts'
import type { ListenSpec } from '../proxy/listen-spec.ts'
import type { Route } from '../proxy/route.ts'
import type { Router } from '../proxy/routes.ts'
import { systemAnswers } from '../resolving.ts'
import { AccessLogs } from '../telemetry/access-log.ts'
import { TlsStore } from '../tls/store.ts'
import { FoundGroups } from './found-groups.ts'
import { buildGroups, type GroupLevel, impliedAuthorities, type Leaving, type LiveGroup } from './groups.ts'
import type { JoinedMemory } from './joined-memory.ts'
import { checkListenHosts } from './listen-hosts.ts'
import { where } from './listening.ts'
import { type Memory, ownMemory, type ServerZoneKind } from './memory.ts'
import { type NameServers, nameServersOf, resolverLines } from './name-servers.ts'
import { type Draft, draftGroups, followedNames, type Plan, planGroups } from './plans.ts'
import { buildProbes } from './probes.ts'
import { lookedUpBy } from './resolver-spec.ts'
import { buildRouter } from './routes.ts'
import { declareNames } from './scripts.ts'
import type { AccessLogSpec } from './settings.ts'
import { checkTables } from './sticky.ts'
import { buildStreams, impliedTargets, type Streams } from './stream.ts'
import { buildStreamProbes } from './stream-probes.ts'

/** Everything that one configuration is at run time. */
export interface Running {
  readonly model: Model
  readonly router: Router
  /** Every location, those inside of others and of `if` too. */
  readonly routes: readonly Route[]
  /** By lower-case name. */
  readonly groups: ReadonlyMap<string, LiveGroup>
  readonly listens: readonly ListenSpec[]
  readonly serverZones: ReadonlyMap<string, ServerZone>
  readonly locationZones: ReadonlyMap<string, ServerZone>
  /** Of servers of `stream`. */
  readonly streamZones: ReadonlyMap<string, ServerZone>
  readonly streams: Streams
  readonly templates: ReadonlyMap<string, Template>
  readonly probes: readonly LiveProbe[]
  /** Peers of the configuration before it that this one has no more. */
  readonly leaving: readonly Leaving[]
  /** Whether that one was the same but for the peers of groups. */
  readonly refreshed: boolean
  /** Groups of addresses that requests bring along, and those of the configuration before it, to be closed. */
  readonly found: FoundGroups
  readonly replaced: FoundGroups | undefined
}

/** What a configuration is built from. Plain data: it refers to nothing that runs. */
export interface Basis {
  readonly model: Model
  readonly drafts: readonly Draft[]
  readonly options: BuildOptions
  /** How many threads work on it beside this one. */
  readonly threads: number
}

/** A configuration that is known to be good, and has not touched what runs. */
export interface Prepared {
  readonly basis: Basis
  readonly listens: readonly ListenSpec[]
  readonly streams: Streams
  readonly plans: readonly Plan[]
  /** Makes it live: what was learnt of groups and peers that stay is taken over. */
  commit(): Running
}

export interface BuildOptions {
  /** Folder that relative paths start from. */
  readonly prefix: string
  readonly version: string
  /** Undefined: files of TLS are read as they are needed. */
  readonly tls?: TlsStore
  /** Hosts that `resolver` lines have; left out where there is none. */
  readonly nameServers?: NameServers
}

/**
 * Builds a configuration's live objects, on their own at first, so that every mistake shows before anything changes.
 * @param threads how many will work on it beside this one; 0: this one does it all
 * @throws Error with nginx's words for what only building shows: an unknown variable, host, or log format
 */
export async function prepare(
  loaded: Loaded,
  given: BuildOptions,
  old: Running | undefined,
  threads = 0,
  membership: Membership = noMembership,
): Promise<Prepared> {
  await checkListenHosts(loaded.model)
  const options = { ...given, nameServers: await nameServersOf(resolverLines(loaded.model)) }
  const http = loaded.model.http ?? {}
  const stream = loaded.model.stream ?? {}
  const fleet = loaded.model.fleet !== undefined
  const drafts = [
    ...(await draftGroups(http, impliedAuthorities(http), fleet)),
    ...(await draftGroups(stream, impliedTargets(stream), fleet, 'stream')),
  ]
  await membership.expect(followedNames(drafts))
  const plans = planGroups(drafts, membership)
  checkTables(plans, old?.groups.values() ?? [])
  const memory = ownMemory(threads)
  const rehearsal = assemble(loaded.model, plans, options, memory, undefined)
  return {
    basis: { model: loaded.model, drafts, options, threads },
    listens: rehearsal.listens,
    streams: rehearsal.streams,
    plans,
    commit: () => (old ? assemble(loaded.model, plans, options, memory, old) : rehearsal),
  }
}

/**
 * The same configuration in another thread, in the memory that the first one has made.
 * @param refreshed whether `old` is the same but for the peers of groups
 */
export function join(
  model: Model,
  plans: readonly Plan[],
  options: BuildOptions,
  memory: JoinedMemory,
  old: Running | undefined,
  refreshed = false,
): Running {
  return assemble(model, plans, options, memory, old, refreshed)
}

/**
 * @param old what runs now, to be taken over
 * @param refreshed whether that is the same configuration but for the peers of groups
 */
export function assemble(
  model: Model,
  plans: readonly Plan[],
  options: BuildOptions,
  memory: Memory,
  old: Running | undefined,
  refreshed = false,
): Running {
  const http = model.http ?? {}
  const stream = model.stream ?? {}
  const levels = levelsOf(model, options)
  const { variables } = levels.http
  const setValue = variables.declareSet('p8s_value')
  const logs = new AccessLogs(variables, http.log_format ?? [])
  const { groups, leaving } = buildGroups(plans, levels, memory, old?.groups ?? new Map(), refreshed)
  const serverZones = new Map<string, ServerZone>()
  const locationZones = new Map<string, ServerZone>()
  const streamZones = new Map<string, ServerZone>()
  // The functions below live as long as the routes do. They see these two maps and not `old` itself, which would hold
  // the configuration before it, and that one its own, for ever.
  const zonesBefore = { server: old?.serverZones, location: old?.locationZones, stream: old?.streamZones }
  const routes: Route[] = []
  const probes: LiveProbe[] = []
  const zoneOf = (kind: ServerZoneKind, name: string) => {
    const zones = { server: serverZones, location: locationZones, stream: streamZones }[kind]
    const zone = zones.get(name) ?? memory.serverZone(kind, name, zonesBefore[kind]?.get(name))
    zones.set(name, zone)
    return zone
  }
  const opened = (logs: AccessLogs, { path, format }: AccessLogSpec) =>
    logs.open({ path: isAbsolute(path) ? path : resolve(options.prefix, path), format })
  const files = { prefix: options.prefix, tls: options.tls ?? new TlsStore() }
  const found = (refreshed ? old?.found : undefined) ?? new FoundGroups(levels, systemAnswers)
  const { nameServers = new Map() } = options
  const finder = (kind: Plan['kind'], resolving: readonly Resolving[]) =>
    found.finder(kind, lookedUpBy(resolving, nameServers))
  const router = buildRouter(http, {
    variables,
    group: (authority) => groups.get(authority.toLowerCase()),
    finder: (resolving) => finder('http', resolving),
    zone: zoneOf,
    openAccessLog: (spec) => opened(logs, spec),
    version: options.version,
    files,
    onRoute(route, block, server) {
      routes.push(route)
      probes.push(...buildProbes(route, block, server, { variables, groups, http, prefix: options.prefix }))
    },
  })
  const templates = new Map<string, Template>()
  for (const [name, block] of Object.entries(http.prometheus_templates ?? {})) {
    const compile = (text: string) => {
      const read = variables.compile(text)
      return (raw: string) => {
        const call = new Call()
        setValue(call, raw)
        return read(call)
      }
    }
    templates.set(name, template(block.metrics ?? [], compile))
  }
  const streamLogs = new AccessLogs(levels.stream.variables, stream.log_format ?? [], undefined, 'stream')
  const streams = buildStreams(stream, {
    variables: levels.stream.variables,
    group: (name) => groups.get(name),
    finder: (resolving) => finder('stream', resolving),
    zone: (name) => zoneOf('stream', name),
    files,
    openAccessLog: (spec) => opened(streamLogs, spec),
  })
  const probing = { variables: levels.stream.variables, groups, prefix: options.prefix, stream, files }
  for (const server of stream.servers ?? []) probes.push(...buildStreamProbes(server, probing))
  const listens = listenSpecs(http, router)
  return {
    model,
    router,
    routes,
    groups,
    listens,
    serverZones,
    locationZones,
    streamZones,
    streams,
    templates,
    probes,
    leaving,
    refreshed,
    found,
    replaced: old?.found === found ? undefined : old?.found,
  }
}

/** What the groups of a configuration have in common, their variables all declared. */
export function levelsOf(
  { http = {}, stream = {} }: Model,
  { version }: Pick<BuildOptions, 'version'>,
): Readonly<Record<Plan['kind'], GroupLevel>> {
  const variables = new Variables({ version })
  variables.declareSet('p8s_value')
  declareMaps(http.maps ?? {}, variables)
  declareNames(http, variables)
  const ofStream = new Variables({ version }, 'stream')
  declareMaps(stream.maps ?? {}, ofStream)
  return {
    http: { factor: http.response_time_factor, variables },
    stream: { factor: stream.response_time_factor, variables: ofStream },
  }
}

function listenSpecs({ servers = [] }: HttpBlock, router: Router): ListenSpec[] {
  const lines = eachListen(servers.flatMap(({ listen = [] }) => listen))
  const byAddress = Map.groupBy(lines, ({ address }) => address)
  return router.keys().map((key) => listenSpec(key, byAddress.get(key) ?? [], router))
}

/** @param lines those of the address */
function listenSpec(key: string, lines: readonly Listen[], router: Router): ListenSpec {
  const server = router.default(key)
  const address = listenAddress(key)
  const backlog = lines.find((line) => line.backlog !== undefined)?.backlog ?? 511
  const { settings } = server.route
  return {
    key,
    address: where(address),
    backlog,
    headerTimeout: server.headerTimeout,
    maxHead: server.maxHead,
    keepaliveTimeout: settings.keepaliveTimeout,
    keepaliveRequests: settings.keepaliveRequests,
    dropUnderscores: server.dropUnderscores,
    dropInvalid: server.dropInvalid,
    proxyProtocol: lines.some((line) => line.proxy_protocol === true),
    door: router.door(key),
    http2: server.http2 || lines.some((line) => line.http2 === true),
    maxStreams: server.maxStreams,
    settings,
  }
}
