import type { HandshakeCount, ServerZone } from '../../feedback/server-zone.ts'
import { type Exposition, escapeLabel } from './exposition.ts'
import type { Facts } from './facts.ts'

/*
 * Where the numbers of handshakes in the table of metrics (feedback/metrics-table.ts) come from: by name,
 * which counter of a zone it is.
 */

/** A zone of servers that speak TLS to clients. */
export interface SecureZone {
  readonly zone: ServerZone
  /** `{zone="NAME"}`. */
  readonly labels: string
}

/** Counters of a zone by the metrics that tell them. */
export const tlsCounts: ReadonlyMap<string, HandshakeCount> = new Map([
  ['evenkeel_tls_handshakes_total', 'handshaked'],
  ['evenkeel_tls_handshakes_reused_total', 'reuses'],
  ['evenkeel_tls_handshakes_timedout_total', 'timedout'],
  ['evenkeel_tls_handshakes_failed_total', 'failed'],
])

/** Zones of servers of `http`, then those of `stream`, which may have the same names and are told as `stream/NAME`. */
export function secureZones(facts: Facts): SecureZone[] {
  return [...secureOf(facts.serverZones(), ''), ...secureOf(facts.streamZones(), 'stream/')]
}

function* secureOf(zones: ReadonlyMap<string, ServerZone>, before: string): Generator<SecureZone> {
  for (const [name, zone] of zones) {
    if (zone.secure) yield { zone, labels: `{zone="${before}${escapeLabel(name)}"}` }
  }
}

/** Adds a sample of each zone, where the metric is one of handshakes. */
export function tlsSamples(out: Exposition, name: string, zones: readonly SecureZone[]): void {
  const count = tlsCounts.get(name)
  if (count === undefined) return
  for (const { zone, labels } of zones) out.sample(name, labels, zone.handshakes(count))
}
