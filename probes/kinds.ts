import { agent } from './agent.ts'
import { backlog } from './backlog.ts'
import { grpc } from './grpc.ts'
import { http } from './http.ts'
import type { ProbeKind } from './probe.ts'
import { streamTcp } from './stream-tcp.ts'
import { tcp } from './tcp.ts'
import { udp } from './udp.ts'

/** Every way of asking; the first is what a probe without `type=` does. A new one is its own file and one line here. */
export const probeKinds = [http, tcp, grpc, agent, backlog] as const satisfies readonly ProbeKind[]

/** The same in `stream`, where nobody speaks HTTP. The first is what a probe without `type=` and `udp` does. */
export const streamProbeKinds = [streamTcp, udp, grpc, agent, backlog] as const satisfies readonly ProbeKind[]

/** @returns undefined when there is no such kind */
export function kindOf(name: string): ProbeKind | undefined {
  return probeKinds.find((kind) => kind.name === name)
}

/**
 * The kind of a probe in `stream`.
 * @param type undefined: what `udp` says
 * @returns undefined when there is no such kind
 */
export function streamKindOf(type: string | undefined, udp = false): ProbeKind | undefined {
  const name = type ?? (udp ? 'udp' : 'tcp')
  return streamProbeKinds.find((kind) => kind.name === name)
}
