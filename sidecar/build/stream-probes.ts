import { Call } from '../../feedback/call.ts'
import type { RetryPolicy } from '../../feedback/policy.ts'
import { streamPrefix, type Upstream } from '../../feedback/upstream.ts'
import type { Variables } from '../../feedback/variables.ts'
import type { LiveProbe } from '../../probes/live-probe.ts'
import type { ProbeKind } from '../../probes/probe.ts'
import type { Group } from '../balance/group.ts'
import { kindOfStreamLine, probeMisfit } from '../config/check/probes.ts'
import { kindArgs } from '../config/directives/probe.ts'
import type * as model from '../config/stream-model.ts'
import { PartError } from './place.ts'
import { definition, located, ms, scopeOf, secured } from './probes.ts'
import { hostNamed, streamPeerTls } from './stream.ts'
import { bytes } from './texts.ts'
import type { TlsSource } from './tls-server.ts'

/** What of a configuration probes of `stream` are built upon. */
export interface StreamProbesEnv {
  /** With everything declared. */
  readonly variables: Variables
  /** By lower-case name, those of `stream` with their prefix. */
  readonly groups: ReadonlyMap<string, { readonly balancing: Group }>
  /** Folder that relative paths start from. */
  readonly prefix: string
  /** What the server stands in. */
  readonly stream: model.StreamBlock
  readonly files: TlsSource
}

/**
 * Makes live probes of the lines of a server in `stream`.
 * @throws Error for an unknown variable, and for a peer that cannot be asked so
 */
export function buildStreamProbes(block: model.StreamServerBlock, env: StreamProbesEnv): LiveProbe[] {
  const lines = block.upstream_probe ?? []
  if (lines.length === 0) return []
  const name = block.proxy_pass ?? ''
  const group = env.groups.get(`${streamPrefix}${name}`.toLowerCase())
  if (group === undefined) throw new Error(`host not found in upstream "${name}"`)
  const { upstream } = group.balancing
  const [listen] = block.listen ?? []
  const location = `${listen?.address ?? ''}${listen?.udp ? ' udp' : ''}`
  return lines.map((line): LiveProbe => {
    const kind = kindOfStreamLine(line)
    const args = kindArgs(kind, line)
    refuse(line, kind, upstream)
    const spoken = kind.name !== 'udp' && (block.proxy_ssl ?? env.stream.proxy_ssl ?? false)
    const alpn = kind.name === 'grpc' ? ['h2'] : []
    const tls = spoken ? streamPeerTls([env.stream, block], alpn, env) : undefined
    return {
      upstream,
      location,
      name: line.name,
      kind,
      args: located(args, env.prefix),
      definition: definition(kind.name, line.port, args, line.test, tls ? ['stream', 'tls'] : ['stream']),
      port: line.port,
      interval: ms(line.interval, 5000),
      timeout: ms(line.timeout ?? block.upstream_probe_timeout, 1000),
      fails: line.fails ?? 1,
      passes: line.passes ?? 1,
      essential: line.essential ?? false,
      persistent: line.persistent ?? false,
      mode: line.mode ?? 'always',
      scope: scopeOf(line, kind, upstream),
      test: line.test === undefined ? undefined : env.variables.compile(bytes(line.test)),
      retry: noRetry,
      call() {
        const call = new Call()
        call.protocol = kind.name === 'udp' ? 'UDP' : 'TCP'
        call.proxyHost = name
        call.upstream = upstream.name
        call.probe = line.name
        return call
      },
      question: (call) => tls && { ...nothing, secure: secured(tls, hostNamed(env.stream, name), call) },
    }
  })
}

/** TLS is all that a server of `stream` says of a question. The probe's own time-out holds over it. */
const nothing = {
  method: '',
  target: '',
  headers: [],
  connectTimeout: Number.POSITIVE_INFINITY,
  maxHead: 0,
} as const

/** @throws PartError where a peer cannot be asked so */
function refuse(line: model.StreamProbeLine, kind: ProbeKind, { peers, backups }: Upstream): void {
  for (const { address } of [...peers, ...backups]) {
    const misfit = probeMisfit(line, address, kind)
    if (misfit !== undefined) throw new PartError(`upstream_probe "${line.name}": ${misfit}`, line)
  }
}

/** There are no statuses, and a probe is nobody's retry. */
const noRetry: RetryPolicy = {
  on: new Set(['error', 'timeout']),
  nonIdempotent: false,
  tries: 0,
  timeout: 0,
  budget: undefined,
  backoff: undefined,
}
