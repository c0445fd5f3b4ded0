import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { Call } from '../../feedback/call.ts'
import { isLocal } from '../../feedback/fleet/peer-id.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import type { Variables } from '../../feedback/variables.ts'
import type { Secure } from '../../probes/dial.ts'
import type { LiveProbe } from '../../probes/live-probe.ts'
import type { ProbeKind, Question } from '../../probes/probe.ts'
import { declaredGroups, groupMeant, grpcAddress, passPort, proxyAddress } from '../config/address.ts'
import { kindOfLine, probeMisfit } from '../config/check/probes.ts'
import { kindArgs } from '../config/directives/probe.ts'
import type * as model from '../config/model.ts'
import { timeMs } from '../config/units.ts'
import { requestHead } from '../proxy/headers.ts'
import type { PeerGroup } from '../proxy/pools.ts'
import type { PeerTls, Route, Settings } from '../proxy/route.ts'
import { fitForLine, splitArgs } from '../proxy/uri.ts'
import { PartError } from './place.ts'
import { bytes } from './texts.ts'

/** What of a configuration probes are built upon. */
export interface ProbesEnv {
  /** What declares groups. */
  readonly http: Pick<model.HttpBlock, 'upstreams'>
  /** With everything declared. */
  readonly variables: Variables
  /** By lower-case name. */
  readonly groups: ReadonlyMap<string, PeerGroup>
  /** Folder that relative paths start from. */
  readonly prefix: string
}

/**
 * Makes live probes of the lines of a location.
 * @throws Error for an unknown variable, and for a peer that cannot be asked so
 */
export function buildProbes(
  route: Route,
  block: model.LocationBlock,
  server: model.ServerBlock,
  env: ProbesEnv,
): LiveProbe[] {
  const lines = block.upstream_probe ?? []
  if (lines.length === 0) return []
  const pass =
    block.proxy_pass === undefined
      ? grpcAddress(bytes(block.grpc_pass ?? ''))
      : proxyAddress(bytes(block.proxy_pass))
  const group = env.groups.get(groupMeant(pass, declaredGroups(env.http)).toLowerCase())
  if (group === undefined) throw new Error(`host not found in upstream "${pass.authority}"`)
  const { upstream } = group.balancing
  const [first = ''] = server.server_name ?? []
  // A pattern is no host.
  const serverName = /^[A-Za-z0-9.-]+$/.test(first) ? first : ''
  const { peerTls } = route.settings
  return lines.map((line): LiveProbe => {
    for (const { address } of [...upstream.peers, ...upstream.backups]) {
      const misfit = probeMisfit(line, address)
      if (misfit !== undefined) throw new PartError(`upstream_probe "${line.name}": ${misfit}`, line)
    }
    const kind = kindOfLine(line)
    const args = argsOf(kind, line, route.settings)
    const http2 = kind.name === 'grpc' || args.http_version === '2'
    const tls = pass.secure && peerTls ? speaking(peerTls, kind, http2) : undefined
    const secure = tls && ((call: Call) => secured(tls, pass.host, call))
    const target = joined(pass.uri ?? '', bytes(line.uri ?? '/'))
    const method = line.method ?? 'GET'
    const request = kind.http ? requestOf(target, method, serverName, route.settings) : []
    return {
      upstream,
      location: route.location,
      name: line.name,
      kind,
      args: located(args, env.prefix),
      definition: definition(kind.name, line.port, args, line.test, request),
      port: line.port,
      interval: ms(line.interval, 5000),
      timeout: ms(line.timeout, 1000),
      fails: line.fails ?? 1,
      passes: line.passes ?? 1,
      essential: line.essential ?? false,
      persistent: line.persistent ?? false,
      mode: line.mode ?? 'always',
      scope: scopeOf(line, kind, upstream),
      test: line.test === undefined ? undefined : env.variables.compile(bytes(line.test)),
      retry: route.settings.retry,
      call() {
        const call = new Call()
        const { uri, args } = splitArgs(target)
        call.method = method
        call.target = target
        call.uri = uri
        call.args = args
        call.serverName = serverName
        call.host = serverName
        call.proxyHost = pass.authority
        call.proxyPort = String(passPort(pass))
        call.upstream = upstream.name
        call.probe = line.name
        return call
      },
      question: (call) => question(call, route.settings, secure),
    }
  })
}

/**
 * One instance asks for all where that says to all what they would have found themselves.
 * @throws PartError where the line asks for it and that is not so
 */
export function scopeOf(
  line: Pick<model.ProbeLine, 'scope'>,
  kind: ProbeKind,
  upstream: Upstream,
): 'fleet' | 'instance' {
  // What a method learns from the answers of probes has to reach every instance's own zone.
  const learning = upstream.learning?.probes === true
  if (line.scope === 'fleet') {
    if (learning) {
      const text = '"scope=fleet" parameter is incompatible with a method that learns from probes'
      throw new PartError(text, line, 'scope')
    }
    return 'fleet'
  }
  if (line.scope === 'instance' || !upstream.fleet || learning || kind.name === 'backlog') return 'instance'
  // 127.0.0.1 is another app in every pod.
  return [...upstream.peers, ...upstream.backups].some(({ address }) => isLocal(address))
    ? 'instance'
    : 'fleet'
}

/** A kind's own arguments; which HTTP it speaks stands there where that is not HTTP/1.1, whoever says so. */
function argsOf(
  kind: ProbeKind,
  line: model.ProbeLine,
  { http2Peer }: Settings,
): Readonly<Record<string, unknown>> {
  const { http_version = http2Peer ? '2' : '1.1', ...args } = kindArgs(kind, line)
  return kind.http && http_version === '2' ? { ...args, http_version } : args
}

/** TLS as the location speaks it, but for what is spoken inside of it. Kinds that speak no HTTP take it as it is. */
function speaking(tls: PeerTls, kind: ProbeKind, http2: boolean): PeerTls {
  if (!kind.http && !http2) return tls
  return { ...tls, engine: tls.engine.speaking(http2 ? ['h2'] : []) }
}

/** What makes the request of a probe, and what the location takes for a failure. Variables stand as written. */
function requestOf(target: string, method: string, serverName: string, settings: Settings): unknown[] {
  const fields = settings.setHeaders.map(({ lower, written }) => [lower, written])
  const secure = settings.peerTls === undefined ? [] : ['https']
  return [target, method, serverName, fields, [...settings.retry.on].sort(), ...secure]
}

/**
 * Stands for what a probe asks and what passes, the same for all instances that have it so. How often it is asked and
 * what comes of the results is each instance's own affair.
 */
export function definition(
  kind: string,
  port: number | undefined,
  args: Readonly<Record<string, unknown>>,
  test: string | undefined,
  request: readonly unknown[],
): string {
  const all = [kind, port ?? null, Object.entries(args).sort(), test ?? null, request]
  // 48 bits: a probe has a handful of definitions at a time.
  return createHash('sha256').update(JSON.stringify(all)).digest('base64url').slice(0, 8)
}

/** With the path of what an agent is sent complete. */
export function located(
  args: Readonly<Record<string, unknown>>,
  prefix: string,
): Readonly<Record<string, unknown>> {
  const { send } = args
  if (typeof send !== 'string' || send.startsWith('data:')) return args
  return { ...args, send: resolve(prefix, send) }
}

/** A timer of Node takes 31 bits of milliseconds (24.8 days). */
const longestTimer = 2 ** 31 - 1

/** A time of a line. */
export function ms(text: string | undefined, otherwise: number): number {
  return text === undefined ? otherwise : Math.min(timeMs(text) ?? otherwise, longestTimer)
}

/** The probe's own path after that of proxy_pass, with one slash between them. */
function joined(base: string, uri: string): string {
  const path = base.endsWith('/') && uri.startsWith('/') ? base + uri.slice(1) : base + uri
  return fitForLine(path.startsWith('/') ? path : `/${path}`)
}

/** TLS as the location speaks it. */
export function secured({ engine, name }: PeerTls, host: string, call: Call): Secure {
  const own = name?.(call) ?? host
  return (socket, done) => {
    const { remoteAddress = '', remotePort = '' } = socket
    engine.begin(socket, engine.lane(`${remoteAddress}:${remotePort}`, own), done)
  }
}

/** The request as the location would send it. Its connection is the probe's own affair. */
function question(
  call: Call,
  settings: Settings,
  secure: ((call: Call) => Secure) | undefined,
): Question | undefined {
  const { method, target } = call
  const head = requestHead(call, settings, { method, target, framing: { kind: 'none' }, upgrade: false })
  if (head === undefined) return undefined
  const headers: string[] = []
  let host = ''
  for (const line of head.text.split('\r\n').slice(1)) {
    const colon = line.indexOf(':')
    if (colon < 0) continue
    const name = line.slice(0, colon)
    const value = line.slice(colon + 2)
    if (name.toLowerCase() === 'host') host = value
    else headers.push(name, value)
  }
  // `Host $http_host` is empty without a client, and every HTTP/1.1 request needs one.
  headers.unshift('Host', host || call.proxyHost)
  return {
    method,
    target,
    headers,
    connectTimeout: settings.connectTimeout,
    maxHead: settings.bufferSize,
    ...(secure && { secure: secure(call) }),
  }
}
