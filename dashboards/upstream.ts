import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard'
import { board, type Row } from './board.ts'
import { endingSeries, statusSeries } from './colours.ts'
import {
  actualShare,
  attempts,
  errorRatio,
  failureRatio,
  headerTime,
  inFlight,
  intendedShare,
  requests,
  requestTime,
  stateOf,
} from './measures.ts'
import { lines, stateMappings } from './panels.ts'
import { between, max, mean, rate, sum } from './promql.ts'
import { chosen } from './scope.ts'
import { shadowRow } from './shadow.ts'
import { table } from './tables.ts'
import { grpcRow } from './upstream-grpc.ts'
import { feedbackRow, fleetRow, healthRow, limit, loadRow, timesRow } from './upstream-more.ts'
import { changesRow, queueRow, stickyRow, streamRow } from './upstream-ways.ts'

const ofGroup = ['upstream'] as const
const ofPeer = ['upstream', 'peer'] as const
const name = '{{upstream}} {{peer}}'

const clients: Row = {
  title: 'The group as clients see it',
  panels: [
    lines({
      title: 'Rate',
      about:
        'Requests a second by the status that clients got; 499 is a client that left first. Of `stream` it is sessions that have ended: 200, or 502 where there was nobody or, over UDP, no answer.',
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
      about:
        'Time of whole requests with all their attempts. Points are single requests with a trace. Of `stream` see *Sessions of stream*.',
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
        { title: 'Weight', expr: max(ofPeer, chosen('evenkeel_peer_weight')), unit: 'short' },
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

export function upstream(): Dashboard {
  return board({
    uid: 'evenkeel-upstream',
    title: 'evenkeel / Upstream',
    about: 'What each peer of a group gets, how it does, and whether that is what the method means.',
    choices: ['upstream', 'peer', 'track'],
    rows: [
      ...[
        clients,
        now,
        split,
        endings,
        grpcRow,
        timesRow,
        loadRow,
        healthRow,
        streamRow,
        queueRow,
        stickyRow,
      ],
      ...[changesRow, feedbackRow, fleetRow, shadowRow],
    ],
  })
}
