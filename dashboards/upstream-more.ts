import type { Row } from './board.ts'
import { ignoredSeries } from './colours.ts'
import { inFlight, stateOf } from './measures.ts'
import { lines, stateMappings, states } from './panels.ts'
import { avg, type Expr, increase, max, mean, quantile, rate, sum } from './promql.ts'
import { chosen } from './scope.ts'

const ofPeer = ['upstream', 'peer'] as const
const name = '{{upstream}} {{peer}}'

/** The most requests that may be in progress at each peer. */
export const limit = sum(ofPeer, chosen('evenkeel_peer_max_conns'))

function timeOf(q: number, buckets: string): Expr {
  return quantile(q, sum([...ofPeer, 'le'], rate(chosen(buckets))))
}

/** How long answers take. */
export const timesRow: Row = {
  title: 'Times',
  panels: [
    lines({
      title: 'What the method goes by',
      about:
        'The moving average of each peer that the method has, and dashed the time in which it expects an answer now, work in progress included. Methods without averages have neither.',
      span: 12,
      unit: 's',
      dashed: '/ expected$/',
      queries: [
        [avg(ofPeer, chosen('evenkeel_peer_average_seconds')), name],
        [avg(ofPeer, chosen('evenkeel_peer_expected_seconds')), `${name} expected`],
      ],
      min: 0,
    }),
    lines({
      title: 'Moving averages',
      about:
        'For people and the status tree: to the header (of `stream` to the first byte), and to the last byte of complete answers.',
      span: 12,
      unit: 's',
      queries: [
        [avg(ofPeer, chosen('evenkeel_peer_header_average_seconds')), `${name} header`],
        [avg(ofPeer, chosen('evenkeel_peer_response_average_seconds')), `${name} last byte`],
      ],
      min: 0,
    }),
    lines({
      title: 'Time to the header',
      about:
        'From the start of an attempt to the header of its answer, or to the first byte of a session of `stream`. Points are single attempts with a trace.',
      span: 12,
      unit: 's',
      exemplars: true,
      queries: [
        [timeOf(0.5, 'evenkeel_peer_header_seconds_bucket'), `${name} p50`],
        [timeOf(0.99, 'evenkeel_peer_header_seconds_bucket'), `${name} p99`],
      ],
      min: 0,
    }),
    lines({
      title: 'Time to the last byte',
      about: 'Of the whole answer, as far as it came. Lengths of sessions are in *Sessions of stream*.',
      span: 12,
      unit: 's',
      queries: [
        [timeOf(0.5, 'evenkeel_peer_response_seconds_bucket'), `${name} p50`],
        [timeOf(0.99, 'evenkeel_peer_response_seconds_bucket'), `${name} p99`],
      ],
      min: 0,
    }),
  ],
}

/** How much each has to do. */
export const loadRow: Row = {
  title: 'Load',
  panels: [
    lines({
      title: 'In flight',
      about:
        'Requests, or sessions, in progress at each peer, and dashed the most that `max_conns` lets there be.',
      span: 8,
      unit: 'short',
      dashed: '/ limit$/',
      queries: [
        [inFlight, name],
        [limit, `${name} limit`],
      ],
      min: 0,
    }),
    lines({
      title: 'Waiting',
      about:
        'Time that attempts without an answer yet have waited, added up. A peer that is stuck climbs by as many seconds a second as it holds requests.',
      span: 8,
      unit: 's',
      queries: [[sum(ofPeer, chosen('evenkeel_peer_waiting_age_seconds')), name]],
      min: 0,
    }),
    lines({
      title: 'Bytes',
      about: 'From and to each peer, a second, heads included.',
      span: 8,
      unit: 'Bps',
      queries: [
        [sum(ofPeer, rate(chosen('evenkeel_peer_received_bytes_total'))), `${name} received`],
        [sum(ofPeer, rate(chosen('evenkeel_peer_sent_bytes_total'))), `${name} sent`],
      ],
      min: 0,
    }),
  ],
}

/** Who is out, and since when. */
export const healthRow: Row = {
  title: 'State',
  panels: [
    states({
      title: 'State of each peer',
      about:
        'The worst that any instance sees. `unavailable`: set aside by max_fails; `unhealthy`: by probes; `checking`: probes have yet to pass; `busy`: at its limit; `draining`: it has left the configuration.',
      span: 12,
      mappings: stateMappings,
      queries: [[stateOf(ofPeer), name]],
    }),
    lines({
      title: 'Set aside',
      about:
        'How often each peer was set aside, in the interval of each bar: by failures of requests, and by probes.',
      span: 6,
      unit: 'short',
      bars: true,
      queries: [
        [
          sum(ofPeer, increase(chosen('evenkeel_peer_unavailable_total'), '$__rate_interval')),
          `${name} failures`,
        ],
        [
          sum(ofPeer, increase(chosen('evenkeel_peer_unhealthy_total'), '$__rate_interval')),
          `${name} probes`,
        ],
      ],
      min: 0,
    }),
    lines({
      title: 'Time out of service',
      about: 'Part of the time that each peer was unavailable, by the instance that saw most of it.',
      span: 6,
      unit: 'percentunit',
      queries: [[max(ofPeer, rate(chosen('evenkeel_peer_downtime_seconds_total'))), name]],
      min: 0,
      max: 1,
    }),
  ],
}

/** Reports, and success as the method sees it. */
export const feedbackRow: Row = {
  title: 'What peers say of themselves, and how they do',
  panels: [
    lines({
      title: 'Reported value',
      about:
        'Moving average of what each peer reports (`feedback`). Gone while it does not count: no report, or one too old.',
      span: 6,
      unit: 'short',
      queries: [[avg(ofPeer, chosen('evenkeel_peer_reported_value')), name]],
    }),
    lines({
      title: 'Age of the report',
      about:
        'Time since the last value that was taken. Past `expire` it counts as none, and the peer gets the mean share.',
      span: 6,
      unit: 's',
      queries: [[max(ofPeer, chosen('evenkeel_peer_report_age_seconds')), name]],
      min: 0,
    }),
    lines({
      title: 'Reports not taken',
      about: 'Answers a second that were to bring a value and brought none that could be taken, by reason.',
      span: 6,
      unit: 'ops',
      stacked: true,
      colours: ignoredSeries,
      queries: [[sum(['reason'], rate(chosen('evenkeel_peer_reports_ignored_total'))), '{{reason}}']],
      min: 0,
    }),
    lines({
      title: 'Rate of success that the method goes by',
      about: 'Moving average of 1 for success and 0 for failure. A peer below 1 has lost share for it.',
      span: 6,
      unit: 'percentunit',
      queries: [[avg(ofPeer, chosen('evenkeel_peer_success_ratio')), name]],
      min: 0,
      max: 1,
    }),
  ],
}

/** What all instances see of a peer; each of them tells the same, so the greatest is what the last one heard. */
export const fleetRow: Row = {
  title: 'What the fleet says of the peers',
  panels: [
    lines({
      title: 'In flight from all instances',
      about: 'Requests in progress at each peer from all instances. Empty without a fleet.',
      span: 8,
      unit: 'short',
      queries: [[max(ofPeer, chosen('evenkeel_peer_fleet_in_flight')), name]],
      min: 0,
    }),
    lines({
      title: 'Average over the instances',
      about: 'What instances have as averages, weighted by what each has seen. A newcomer starts with it.',
      span: 8,
      unit: 's',
      queries: [[avg(ofPeer, chosen('evenkeel_peer_fleet_average_seconds')), name]],
      min: 0,
    }),
    lines({
      title: 'Failures over the instances',
      about: 'Part of the answers that all instances had since the shared state began.',
      span: 8,
      unit: 'percentunit',
      queries: [
        [
          mean(
            max(ofPeer, chosen('evenkeel_peer_fleet_failures')),
            max(ofPeer, chosen('evenkeel_peer_fleet_answers')),
          ),
          name,
        ],
      ],
      min: 0,
    }),
    lines({
      title: 'Stuck elsewhere',
      about:
        'Attempts of other instances that have waited ten times as long as the peer usually takes, and the time that they have waited, added up.',
      span: 12,
      unit: 'short',
      queries: [
        [max(ofPeer, chosen('evenkeel_peer_fleet_stuck')), name],
        [max(ofPeer, chosen('evenkeel_peer_fleet_stuck_age_seconds')), `${name} seconds`],
      ],
      min: 0,
    }),
    lines({
      title: 'Leases',
      about:
        'Requests in progress that the instances may have of a `max_conns` of the fleet, all leases together. Empty where no limit is the fleet’s.',
      span: 12,
      unit: 'short',
      queries: [[sum(ofPeer, chosen('evenkeel_peer_fleet_lease')), name]],
      min: 0,
    }),
  ],
}
