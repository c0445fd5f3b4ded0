import { type Exemplar, exemplarSize, readExemplar } from '../../feedback/exemplar.ts'
import type { PeerField } from '../../feedback/fields.ts'
import { grpcStatusNames } from '../../feedback/grpc-status.ts'
import { connsLimit, downtime, throttle } from '../../feedback/health.ts'
import { waitingAge } from '../../feedback/learn.ts'
import { attemptReasons, exclusionReasons, signalReasons } from '../../feedback/reasons.ts'
import { reporting } from '../../feedback/report.ts'
import type { Zone } from '../../feedback/zone.ts'
import type { Column } from '../../feedback/zone-numbers.ts'
import type { Exposition } from './exposition.ts'
import { fleetPeerNumbers } from './fleet-samples.ts'
import { latencyBounds, sessionBounds } from './latency-bounds.ts'
import { type Series, sum } from './series.ts'

/*
 * Where the numbers of a peer in the table of metrics (feedback/metrics-table.ts) come from: by name,
 * how the samples are read. Name, type, help and labels are the table's.
 */

/** Adds the samples of a peer: none, where there is nothing to tell. */
export type PeerSampler = (out: Exposition, name: string, series: Series, now: number) => void

/** One sample a peer. @param read undefined leaves the peer out */
function ofPeer(read: (series: Series, now: number) => number | undefined): PeerSampler {
  return (out, name, series, now) => {
    const value = read(series, now)
    if (value !== undefined) out.sample(name, `${series.labels}}`, value)
  }
}

/** A number of the zone as it is. */
function field(of: PeerField): PeerSampler {
  return ofPeer((series) => sum(series, series.zone.peers[of]))
}

type Kind = 'http' | 'stream'

/** What there is of groups of one kind only. */
function only(kind: Kind, read: PeerSampler): PeerSampler {
  return (out, name, series, now) => {
    if (series.group.upstream.kind === kind) read(out, name, series, now)
  }
}

/** A moving average in milliseconds, told in seconds; 0 is no data. */
function average(of: PeerField): PeerSampler {
  return ofPeer(({ zone, first }) => zone.peers[of][first.index]! / 1000 || undefined)
}

/** @param exemplars by bucket; left out where none are kept */
function histogram(
  bounds: readonly number[],
  buckets: (zone: Zone) => readonly Column[],
  total: (zone: Zone) => Column,
  exemplars?: (zone: Zone) => readonly Float64Array[],
): PeerSampler {
  return (out, name, series) => {
    const columns = buckets(series.zone)
    const seconds = sum(series, total(series.zone)) / 1000
    const kept = exemplars?.(series.zone)
    const bucket = (at: number) => sum(series, columns[at]!)
    out.histogram(name, series.labels, bounds, bucket, seconds, kept && ((at) => newest(series, kept[at]!)))
  }
}

/** Of peers that share one set of labels the last to have one. */
function newest({ peers }: Series, exemplars: Float64Array): Exemplar | undefined {
  let last: Exemplar | undefined
  for (const { index } of peers) {
    const one = readExemplar(exemplars, exemplarSize * index)
    if (one !== undefined && (last === undefined || one.wallAt > last.wallAt)) last = one
  }
  return last
}

const learns = ({ group }: Series) => group.upstream.learning !== undefined

export const peerSamplers: ReadonlyMap<string, PeerSampler> = new Map([
  ['evenkeel_peer_attempts_total', field('selected')],
  ['evenkeel_peer_succeeded_total', field('succeeded')],
  ['evenkeel_peer_attempt_reasons_total', reasons],
  ['evenkeel_peer_responses_total', responses],
  ['evenkeel_peer_grpc_responses_total', grpcResponses],
  ['evenkeel_peer_failures_total', field('failsTotal')],
  ['evenkeel_peer_sent_bytes_total', field('bytesSent')],
  ['evenkeel_peer_received_bytes_total', field('bytesReceived')],
  ['evenkeel_peer_unavailable_total', field('unavailable')],
  ['evenkeel_peer_reuses_total', only('http', field('reuses'))],
  ['evenkeel_peer_connects_total', field('connects')],
  [
    'evenkeel_peer_connect_seconds_total',
    ofPeer((series) => sum(series, series.zone.peers.connectMs) / 1000),
  ],
  ['evenkeel_peer_ramp_ratio', ofPeer(({ first }, now) => throttle(first, now))],
  [
    'evenkeel_peer_probe_seconds',
    ofPeer(({ zone, first }) => zone.peers.probeMs[first.index]! / 1000 || undefined),
  ],
  [
    'evenkeel_peer_probe_age_seconds',
    ofPeer(({ zone, first }) => {
      const at = zone.peers.probeWallAt[first.index]!
      return at > 0 ? Math.max(0, Date.now() - at) / 1000 : undefined
    }),
  ],
  ['evenkeel_peer_probes_total', field('probes')],
  ['evenkeel_peer_probe_failures_total', field('probeFails')],
  ['evenkeel_peer_unhealthy_total', field('unhealthy')],
  ['evenkeel_peer_downtime_seconds_total', ofPeer(({ first }, now) => downtime(first, now) / 1000)],
  ['evenkeel_peer_explored_total', field('explored')],
  ['evenkeel_peer_unmeasured_total', field('unmeasured')],
  [
    'evenkeel_peer_shadow_picks_total',
    ofPeer(({ group, peers, retired }) => {
      const { shadow } = group
      if (shadow === undefined || retired || peers[0]!.options.backup) return undefined
      return peers.reduce((total, peer) => total + shadow.picksOf(peer), 0)
    }),
  ],
  ['evenkeel_peer_in_flight', field('conns')],
  ['evenkeel_peer_max_conns', ofPeer(({ first }) => connsLimit(first) || undefined)],
  ['evenkeel_peer_weight', ofPeer(({ first }) => first.options.weight)],
  ['evenkeel_peer_agent_weight_ratio', ofPeer(({ zone, first }) => zone.peers.weightFactor[first.index])],
  ['evenkeel_peer_share_ratio', ofPeer(({ share }) => share)],
  ['evenkeel_peer_excluded', excluded],
  ['evenkeel_peer_average_seconds', average('avg')],
  ['evenkeel_peer_header_average_seconds', average('headerTime')],
  ['evenkeel_peer_connect_average_seconds', average('connectTime')],
  ['evenkeel_peer_response_average_seconds', only('http', average('responseTime'))],
  ['evenkeel_peer_session_average_seconds', only('stream', average('responseTime'))],
  [
    'evenkeel_peer_success_ratio',
    ofPeer((series) => (learns(series) ? series.zone.peers.ok[series.first.index]! : undefined)),
  ],
  [
    'evenkeel_peer_reported_value',
    ofPeer(({ group, first }, now) => {
      const told = reporting(first, group.upstream, now)
      return told?.counts ? told.value : undefined
    }),
  ],
  [
    'evenkeel_peer_report_age_seconds',
    ofPeer(({ group, first }, now) => {
      const age = reporting(first, group.upstream, now)?.age
      return age === undefined ? undefined : age / 1000
    }),
  ],
  ['evenkeel_peer_reports_ignored_total', ignored],
  [
    'evenkeel_peer_expected_seconds',
    ofPeer(({ retired, group, first }, now) => {
      const ms = retired ? undefined : group.expected(first, now)
      return ms === undefined ? undefined : ms / 1000
    }),
  ],
  [
    'evenkeel_peer_waiting_age_seconds',
    ofPeer((series, now) => (learns(series) ? waitingAge(series.first, now) / 1000 : undefined)),
  ],
  [
    'evenkeel_peer_header_seconds',
    histogram(
      latencyBounds,
      (zone) => zone.headerHistogram,
      (zone) => zone.headerSum,
      (zone) => zone.headerExemplars,
    ),
  ],
  ['evenkeel_peer_response_seconds', only('http', whole(latencyBounds))],
  ['evenkeel_peer_session_seconds', only('stream', whole(sessionBounds))],
  ...Array.from(fleetPeerNumbers, ([name, read]): [string, PeerSampler] => [
    name,
    ofPeer(({ fleet }) => fleet && read(fleet)),
  ]),
])

/** Of what is kept of whole answers, or of whole sessions. */
function whole(bounds: readonly number[]): PeerSampler {
  return histogram(
    bounds,
    (zone) => zone.responseHistogram,
    (zone) => zone.responseSum,
  )
}

/** Every word is told from the start, so that rates see the first. */
function reasons(out: Exposition, name: string, series: Series): void {
  for (const [r, reason] of attemptReasons.entries()) {
    out.sample(name, `${series.labels},reason="${reason}"}`, sum(series, series.zone.reasons[r]!))
  }
}

/** Only where reports are asked for. */
function ignored(out: Exposition, name: string, series: Series): void {
  if (series.group.upstream.learning?.value === undefined) return
  for (const [r, reason] of signalReasons.entries()) {
    out.sample(name, `${series.labels},reason="${reason}"}`, sum(series, series.zone.ignored[r]!))
  }
}

/** Any status could come, so only those seen are told. */
function responses(out: Exposition, name: string, series: Series): void {
  const { statuses } = series.zone
  for (let i = 0; i < statuses.length; i += 1) {
    const count = sum(series, statuses[i]!)
    if (count === 0) continue
    const code = i === statuses.length - 1 ? 'xxx' : String(100 + i)
    out.sample(name, `${series.labels},code="${code}"}`, count)
  }
}

/** The same of gRPC: groups that have no calls of it have no series. */
function grpcResponses(out: Exposition, name: string, series: Series): void {
  for (const [i, code] of grpcStatusNames.entries()) {
    const count = sum(series, series.zone.grpcStatuses[i]!)
    if (count > 0) out.sample(name, `${series.labels},code="${code}"}`, count)
  }
}

/** 1 at the reason that holds, 0 at the others. */
function excluded(out: Exposition, name: string, series: Series, now: number): void {
  const holds = series.retired ? 'draining' : series.group.exclusion(series.first, now)
  for (const reason of exclusionReasons) {
    // `tried` is a matter of one request.
    if (reason === 'tried') continue
    out.sample(name, `${series.labels},reason="${reason}"}`, holds === reason ? 1 : 0)
  }
}
