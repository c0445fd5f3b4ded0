import { latencyBucketsMs, type PeerField } from '../../feedback/fields.ts'
import { downtime } from '../../feedback/health.ts'
import { waitingAge } from '../../feedback/learn.ts'
import { attemptReasons, exclusionReasons } from '../../feedback/reasons.ts'
import type { Column, Zone } from '../../feedback/zone.ts'
import type { Exposition, MetricType } from './exposition.ts'
import { type Series, sum } from './series.ts'

/** A metric told of each peer. */
export interface PeerFamily {
  readonly name: string
  readonly type: MetricType
  readonly help: string
  /** Adds the peer's samples: none, where there is nothing to tell. */
  readonly write: (out: Exposition, series: Series, now: number) => void
}

/** One sample a peer. @param read undefined leaves the peer out */
function single(
  name: string,
  type: 'counter' | 'gauge',
  help: string,
  read: (series: Series, now: number) => number | undefined,
): PeerFamily {
  const write = (out: Exposition, series: Series, now: number) => {
    const value = read(series, now)
    if (value !== undefined) out.sample(name, `${series.labels}}`, value)
  }
  return { name, type, help, write }
}

/** A number of the zone as it is. */
function field(name: string, type: 'counter' | 'gauge', of: PeerField, help: string): PeerFamily {
  return single(name, type, help, (series) => sum(series, series.zone.peers[of]))
}

/** A moving average in milliseconds, told in seconds; 0 is no data. */
function average(name: string, of: PeerField, help: string): PeerFamily {
  return single(name, 'gauge', help, ({ zone, first }) => {
    const ms = zone.peers[of][first.index]!
    return ms > 0 ? ms / 1000 : undefined
  })
}

function histogram(
  name: string,
  help: string,
  buckets: (zone: Zone) => readonly Column[],
  total: (zone: Zone) => Column,
): PeerFamily {
  const write = (out: Exposition, series: Series) => {
    const columns = buckets(series.zone)
    const seconds = sum(series, total(series.zone)) / 1000
    out.histogram(name, series.labels, bounds, (at) => sum(series, columns[at]!), seconds)
  }
  return { name, type: 'histogram', help, write }
}

/** Upper bounds of the histograms in seconds. */
const bounds = latencyBucketsMs.map((ms) => ms / 1000)

const learns = ({ group }: Series) => group.upstream.learning !== undefined

/** Every attempt that did not end plainly well. All words are told from the start, so that rates see the first. */
const reasons: PeerFamily = {
  name: 'evenkeel_peer_attempt_reasons_total',
  type: 'counter',
  help: 'Attempts that did not end plainly well, retried ones too, by reason.',
  write(out, series) {
    for (const [r, reason] of attemptReasons.entries()) {
      out.sample(
        'evenkeel_peer_attempt_reasons_total',
        `${series.labels},reason="${reason}"}`,
        sum(series, series.zone.reasons[r]!),
      )
    }
  },
}

/** Statuses that the peer has sent; all could be, so only those seen are told. */
const responses: PeerFamily = {
  name: 'evenkeel_peer_responses_total',
  type: 'counter',
  help: 'Answers of the peer by status, those of retried attempts too; xxx is outside 100 to 599.',
  write(out, series) {
    const { statuses } = series.zone
    for (let i = 0; i < statuses.length; i += 1) {
      const count = sum(series, statuses[i]!)
      if (count === 0) continue
      const code = i === statuses.length - 1 ? 'xxx' : String(100 + i)
      out.sample('evenkeel_peer_responses_total', `${series.labels},code="${code}"}`, count)
    }
  },
}

/** Why the peer gets nothing now: 1 at the reason that holds. */
const excluded: PeerFamily = {
  name: 'evenkeel_peer_excluded',
  type: 'gauge',
  help: 'Whether the peer gets no request for this reason.',
  write(out, series, now) {
    const holds = series.retired ? 'draining' : series.group.exclusion(series.first, now)
    for (const reason of exclusionReasons) {
      // `tried` is a matter of one request.
      if (reason === 'tried') continue
      out.sample('evenkeel_peer_excluded', `${series.labels},reason="${reason}"}`, holds === reason ? 1 : 0)
    }
  },
}

/** The metrics of peers, in the order in which they are told. */
export const peerFamilies: readonly PeerFamily[] = [
  field('evenkeel_peer_attempts_total', 'counter', 'selected', 'Attempts begun, first ones and retries.'),
  field('evenkeel_peer_succeeded_total', 'counter', 'succeeded', 'Attempts that ended plainly well.'),
  reasons,
  responses,
  field('evenkeel_peer_failures_total', 'counter', 'failsTotal', 'Attempts that count against the peer.'),
  field('evenkeel_peer_sent_bytes_total', 'counter', 'bytesSent', 'Bytes sent to the peer.'),
  field('evenkeel_peer_received_bytes_total', 'counter', 'bytesReceived', 'Bytes received from the peer.'),
  field(
    'evenkeel_peer_unavailable_total',
    'counter',
    'unavailable',
    'Times that failures reached max_fails.',
  ),
  single(
    'evenkeel_peer_downtime_seconds_total',
    'counter',
    'Time that the peer was unavailable, the running span included.',
    ({ first }, now) => downtime(first, now) / 1000,
  ),
  field('evenkeel_peer_explored_total', 'counter', 'explored', 'Picks made by exploration or by the floor.'),
  field('evenkeel_peer_unmeasured_total', 'counter', 'unmeasured', 'Picks made while there was no average.'),
  field('evenkeel_peer_in_flight', 'gauge', 'conns', 'Requests in progress at the peer.'),
  single(
    'evenkeel_peer_max_conns',
    'gauge',
    'Most requests that may be in progress at the peer; absent where unlimited.',
    ({ first }) => first.options.max_conns || undefined,
  ),
  single('evenkeel_peer_weight', 'gauge', 'Configured weight.', ({ first }) => first.options.weight),
  single(
    'evenkeel_peer_share_ratio',
    'gauge',
    'Chance that the next request goes to the peer.',
    ({ share }) => share,
  ),
  excluded,
  average('evenkeel_peer_average_seconds', 'avg', 'Moving average that the method goes by.'),
  average('evenkeel_peer_header_average_seconds', 'headerTime', 'Moving average of times to the header.'),
  average(
    'evenkeel_peer_response_average_seconds',
    'responseTime',
    'Moving average of times to the last byte of complete answers.',
  ),
  single(
    'evenkeel_peer_success_ratio',
    'gauge',
    'Moving average of success, 1, and failure, 0, that the method goes by.',
    (series) => (learns(series) ? series.zone.peers.ok[series.first.index]! : undefined),
  ),
  single(
    'evenkeel_peer_expected_seconds',
    'gauge',
    'Time that the method expects an answer to take now.',
    ({ retired, group, first }, now) => {
      const ms = retired ? undefined : group.expected(first, now)
      return ms === undefined ? undefined : ms / 1000
    },
  ),
  single(
    'evenkeel_peer_waiting_age_seconds',
    'gauge',
    'Time that attempts without an answer yet have waited, added up.',
    (series, now) => (learns(series) ? waitingAge(series.first, now) / 1000 : undefined),
  ),
  histogram(
    'evenkeel_peer_header_seconds',
    'Time from the start of an attempt to the header of its answer.',
    (zone) => zone.headerHistogram,
    (zone) => zone.headerSum,
  ),
  histogram(
    'evenkeel_peer_response_seconds',
    'Time from the start of an attempt to the last byte of its answer.',
    (zone) => zone.responseHistogram,
    (zone) => zone.responseSum,
  ),
]
