import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard'
import { board, type Row } from './board.ts'
import { endingSeries, ignoredSeries, statusSeries } from './colours.ts'
import {
  actualShare,
  attempts,
  errorRatio,
  failureRatio,
  headerTime,
  intendedShare,
  requests,
  requestTime,
  stateOf,
} from './measures.ts'
import { lines, stateMappings, states } from './panels.ts'
import { avg, between, increase, max, mean, quantile, rate, sum } from './promql.ts'
import { chosen } from './scope.ts'
import { table } from './tables.ts'
import { fleetRow, shadowRow } from './upstream-more.ts'

const ofGroup = ['upstream'] as const
const ofPeer = ['upstream', 'peer'] as const
const name = '{{upstream}} {{peer}}'

const inFlight = sum(ofPeer, chosen('evenkeel_peer_in_flight'))
const limit = sum(ofPeer, chosen('evenkeel_peer_max_conns'))

const clients: Row = {
  title: 'The group as clients see it',
  panels: [
    lines({
      title: 'Rate',
      about: 'Requests a second by the status that clients got; 499 is a client that left first.',
      span: 8,
      unit: 'reqps',
      stacked: true,
      colours: statusSeries,
      queries: [[requests(['code']), '{{code}}']],
      min: 0,
    }),
    lines({
      title: 'Errors',
      about: 'Part of the requests that a client saw end with 5xx. A gap means no requests.',
      span: 8,
      unit: 'percentunit',
      queries: [[errorRatio(ofGroup), '{{upstream}}']],
      min: 0,
      steps: ['transparent', [0.01, 'red']],
    }),
    lines({
      title: 'Duration',
      about: 'Time of whole requests with all their attempts. Points are single requests with a trace.',
      span: 8,
      unit: 's',
      exemplars: true,
      queries: [
        [requestTime(0.5, ofGroup), '{{upstream}} p50'],
        [requestTime(0.9, ofGroup), '{{upstream}} p90'],
        [requestTime(0.99, ofGroup), '{{upstream}} p99'],
      ],
      min: 0,
    }),
  ],
}

const now: Row = {
  title: 'Peers now',
  panels: [
    table({
      title: 'Peers',
      about:
        'One row a peer. Intended is the share that the method would give it next; actual is the share of attempts that it had. `curl ADMIN/explain/UPSTREAM?format=text` says why.',
      span: 24,
      height: 8,
      rows: ofPeer,
      sort: 'Attempts',
      columns: [
        { title: 'State', expr: stateOf(ofPeer), unit: 'short', mappings: stateMappings },
        { title: 'Attempts', expr: attempts(ofPeer), unit: 'ops' },
        { title: 'Intended', expr: intendedShare(), unit: 'percentunit' },
        { title: 'Actual', expr: actualShare(), unit: 'percentunit' },
        {
          title: 'Failures',
          expr: failureRatio(ofPeer),
          unit: 'percentunit',
          steps: ['green', [0.01, 'yellow'], [0.1, 'red']],
        },
        { title: 'Header', expr: headerTime(ofPeer), unit: 's' },
        { title: 'In flight', expr: inFlight, unit: 'short' },
        {
          title: 'Of its limit',
          expr: mean(inFlight, limit),
          unit: 'percentunit',
          steps: ['green', [0.8, 'yellow'], [1, 'red']],
        },
      ],
    }),
  ],
}

const split: Row = {
  title: 'Who gets how much',
  panels: [
    lines({
      title: 'Share of each peer',
      about:
        'Solid: the share of attempts that the peer had. Dashed: the share that the method would give it now. They part where peers fail and others take over, with sticky or hashed requests, and for a moment after a change.',
      span: 12,
      unit: 'percentunit',
      dashed: '/ intended$/',
      queries: [
        [actualShare(), name],
        [intendedShare(), `${name} intended`],
      ],
      min: 0,
    }),
    lines({
      title: 'More or less than intended',
      about: 'Actual less intended share. Above 0 the peer gets more than the method means it to have.',
      span: 12,
      unit: 'percentunit',
      queries: [[between(actualShare(), '-', intendedShare()), name]],
      steps: ['transparent', [0.2, 'orange']],
    }),
  ],
}

const endings: Row = {
  title: 'How attempts ended, retried ones too',
  panels: [
    lines({
      title: 'Answers by status',
      about: 'What peers answered, a second. A 503 that was retried is here, and not among what clients saw.',
      span: 8,
      unit: 'ops',
      stacked: true,
      colours: statusSeries,
      queries: [[sum(['code'], rate(chosen('evenkeel_peer_responses_total'))), '{{code}}']],
      min: 0,
    }),
    lines({
      title: 'Not plainly well, by reason',
      about: 'Attempts a second. The words are those of the access log; see docs/metrics.md.',
      span: 8,
      unit: 'ops',
      stacked: true,
      colours: endingSeries,
      queries: [[sum(['reason'], rate(chosen('evenkeel_peer_attempt_reasons_total'))), '{{reason}}']],
      min: 0,
    }),
    lines({
      title: 'Failures by peer',
      about: 'Part of the attempts that counts against the peer. A client that left counts neither way.',
      span: 8,
      unit: 'percentunit',
      queries: [[failureRatio(ofPeer), name]],
      min: 0,
      steps: ['transparent', [0.1, 'red']],
    }),
  ],
}

const times: Row = {
  title: 'Times and load',
  panels: [
    lines({
      title: 'What the method goes by',
      about:
        'The moving average of each peer that the method has, and dashed the time in which it expects an answer now, work in progress included. Methods without averages have neither.',
      span: 8,
      unit: 's',
      dashed: '/ expected$/',
      queries: [
        [avg(ofPeer, chosen('evenkeel_peer_average_seconds')), name],
        [avg(ofPeer, chosen('evenkeel_peer_expected_seconds')), `${name} expected`],
      ],
      min: 0,
    }),
    lines({
      title: 'Time to the header',
      about:
        'From the start of an attempt to the header of its answer. Points are single attempts with a trace.',
      span: 8,
      unit: 's',
      exemplars: true,
      queries: [
        [
          quantile(0.5, sum([...ofPeer, 'le'], rate(chosen('evenkeel_peer_header_seconds_bucket')))),
          `${name} p50`,
        ],
        [
          quantile(0.99, sum([...ofPeer, 'le'], rate(chosen('evenkeel_peer_header_seconds_bucket')))),
          `${name} p99`,
        ],
      ],
      min: 0,
    }),
    lines({
      title: 'Moving averages',
      about: 'For people and the status tree: to the header, and to the last byte of complete answers.',
      span: 8,
      unit: 's',
      queries: [
        [avg(ofPeer, chosen('evenkeel_peer_header_average_seconds')), `${name} header`],
        [avg(ofPeer, chosen('evenkeel_peer_response_average_seconds')), `${name} last byte`],
      ],
      min: 0,
    }),
    lines({
      title: 'In flight',
      about: 'Requests in progress at each peer, and dashed the most that `max_conns` lets there be.',
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

const health: Row = {
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

const feedback: Row = {
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

export function upstream(): Dashboard {
  return board({
    uid: 'evenkeel-upstream',
    title: 'evenkeel / Upstream',
    about: 'What each peer of a group gets, how it does, and whether that is what the method means.',
    choices: ['upstream', 'peer', 'track'],
    rows: [clients, now, split, endings, times, health, feedback, fleetRow, ...shadowRow],
  })
}
