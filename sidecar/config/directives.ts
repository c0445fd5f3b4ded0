import type { Block, Context, Directive } from './directive.ts'
import { blocks } from './directives/blocks.ts'
import { clientDirectives } from './directives/client.ts'
import { fleetDirectives } from './directives/fleet.ts'
import { grpcDirectives } from './directives/grpc.ts'
import { http2Directives } from './directives/http2.ts'
import { mainDirectives } from './directives/main.ts'
import { probeDirectives } from './directives/probe.ts'
import { proxyDirectives } from './directives/proxy.ts'
import { responseDirectives } from './directives/response.ts'
import { condition, stepDirectives } from './directives/steps.ts'
import { streamDirectives } from './directives/stream.ts'
import { tlsPeerDirectives } from './directives/tls-peer.ts'
import { tlsServerDirectives } from './directives/tls-server.ts'
import { upstreamDirectives } from './directives/upstream.ts'

/** The table: every directive that has a meaning here, by area. Both syntaxes and all that is generated read it. */
export const areas = [
  { title: 'Process', directives: mainDirectives },
  { title: 'Listeners and clients', directives: clientDirectives },
  { title: 'Responses and logs', directives: responseDirectives },
  { title: 'Groups', directives: upstreamDirectives },
  { title: 'Peers', directives: proxyDirectives },
  { title: 'TLS of clients', directives: tlsServerDirectives },
  { title: 'TLS of peers', directives: tlsPeerDirectives },
  { title: 'HTTP/2', directives: http2Directives },
  { title: 'gRPC', directives: grpcDirectives },
  { title: 'Streams', directives: streamDirectives },
  { title: 'Fleet', directives: fleetDirectives },
  { title: 'Probes', directives: probeDirectives },
  { title: 'Steps', directives: [...stepDirectives, condition] },
] as const satisfies readonly { title: string; directives: readonly Directive[] }[]

export { blocks, condition }

const all: readonly Directive[] = areas
  .flatMap((area) => area.directives)
  .filter((entry) => entry !== condition)

/** The directives that may stand in a context, but `if`. */
export function directivesIn(context: Context): Directive[] {
  return all.filter((entry) => entry.in.includes(context))
}

/** The blocks that may stand in a context, but `if`. */
export function blocksIn(context: Context): Block[] {
  return blocks.filter((block) => block.in.includes(context))
}

export function findDirective(name: string, context: Context): Directive | undefined {
  return all.find((entry) => entry.name === name && entry.in.includes(context))
}

export function findBlock(name: string, context: Context): Block | undefined {
  return blocks.find((block) => block.name === name && block.in.includes(context))
}

/** Whether the table has the name in some other context. */
export function isKnown(name: string): boolean {
  return (
    name === 'if' || all.some((entry) => entry.name === name) || blocks.some((block) => block.name === name)
  )
}

/** Key in YAML: the name, or the plural where occurrences are a list of another name (`server` in a group). */
export function yamlKey(entry: Directive): string {
  return entry.many && entry.key !== undefined ? entry.key : entry.name
}
