import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard'
import { board, type Row } from './board.ts'
import {
  actualShare,
  attempts,
  connectTime,
  failureRatio,
  headerTime,
  inFlight,
  intendedShare,
  probeFailureRatio,
  probeTime,
  ramp,
  relativeTime,
  requestTime,
  reuseRatio,
  stateOf,
  timeShare,
  unmeasured,
  waiting,
} from './measures.ts'
import { lines, note, stateMappings } from './panels.ts'
import { max, quantile, rate, sum } from './promql.ts'
import { chosen } from './scope.ts'
import { connections, health, method, queueing, retries, warmth } from './suspicions.ts'
import { type Column, table } from './tables.ts'
import { guide } from './why-slow-guide.ts'

const ofGroup = ['upstream'] as const
const ofPeer = ['upstream', 'peer'] as const
const name = '{{upstream}} {{peer}}'

const evidence: readonly Column[] = [
  { title: 'State', expr: stateOf(ofPeer), unit: 'short', mappings: stateMappings },
  { title: 'Attempts', expr: attempts(ofPeer), unit: 'ops' },
  { title: 'Header', expr: headerTime(ofPeer), unit: 's' },
  {
    title: '× group',
    expr: relativeTime(),
    unit: 'short',
    decimals: 2,
    steps: ['green', [1.5, 'yellow'], [3, 'red']],
  },
  { title: 'In flight', expr: inFlight, unit: 'short' },
  { title: 'Waiting', expr: waiting, unit: 's', steps: ['green', [1, 'yellow'], [10, 'red']] },
  {
    title: 'Probes failed',
    expr: probeFailureRatio(ofPeer),
    unit: 'percentunit',
    steps: ['green', [0.01, 'yellow'], [0.5, 'red']],
  },
  { title: 'Probe', expr: probeTime, unit: 's' },
  {
    title: 'Reused',
    expr: reuseRatio(ofPeer),
    unit: 'percentunit',
    steps: ['red', [0.5, 'yellow'], [0.9, 'green']],
  },
  {
    title: 'Connect',
    expr: connectTime(ofPeer),
    unit: 's',
    steps: ['green', [0.05, 'yellow'], [0.5, 'red']],
  },
  {
    title: 'Failures',
    expr: failureRatio(ofPeer),
    unit: 'percentunit',
    steps: ['green', [0.01, 'yellow'], [0.1, 'red']],
  },
  { title: 'Ramp', expr: ramp, unit: 'percentunit', steps: ['yellow', [1, 'green']] },
  {
    title: 'Unmeasured',
    expr: unmeasured,
    unit: 'percentunit',
    steps: ['green', [0.05, 'yellow'], [0.5, 'orange']],
  },
  { title: 'Intended', expr: intendedShare(), unit: 'percentunit' },
  { title: 'Actual', expr: actualShare(), unit: 'percentunit' },
  { title: 'Of the time', expr: timeShare(), unit: 'percentunit' },
]

const matrix: Row = {
  title: 'The evidence, peer by peer',
  panels: [
    table({
      title: 'Evidence',
      about:
        'A row a peer, a column a suspicion. One red row is a sick peer. One red column in all rows is something that they share: a cold pool of connections, a deploy, a network. No red, but unequal times and equal shares: the method.',
      span: 16,
      height: 14,
      rows: ofPeer,
      sort: 'Header',
      columns: evidence,
    }),
    note('How to read it', guide, 8, 14),
  ],
}

const slow: Row = {
  title: 'Is it slow, and where?',
  panels: [
    lines({
      title: 'Whole requests',
      about: 'What clients wait for. Points are single requests with a trace: open one that is slow.',
      span: 8,
      unit: 's',
      exemplars: true,
      queries: [
        [requestTime(0.5, ofGroup), '{{upstream}} p50'],
        [requestTime(0.99, ofGroup), '{{upstream}} p99'],
      ],
      min: 0,
    }),
    lines({
      title: 'Peers, to the header',
      about:
        'p99 of single attempts. Where this is low and whole requests are slow, look at retries, at bodies and at the last row.',
      span: 8,
      unit: 's',
      exemplars: true,
      queries: [
        [quantile(0.99, sum([...ofPeer, 'le'], rate(chosen('evenkeel_peer_header_seconds_bucket')))), name],
      ],
      min: 0,
    }),
    lines({
      title: 'The balancer itself',
      about:
        'How late the event loop of the main thread is (p99), and cores in use. A thread that uses a whole core makes everything slow.',
      span: 8,
      unit: 's',
      queries: [
        [max(['instance'], chosen('nodejs_eventloop_lag_p99_seconds')), '{{instance}} lag'],
        [sum(['instance'], rate(chosen('process_cpu_seconds_total'))), '{{instance}} cores'],
      ],
      min: 0,
    }),
  ],
}

export function whySlow(): Dashboard {
  return board({
    uid: 'evenkeel-why-slow',
    title: 'evenkeel / Why slow',
    about:
      'Queueing, probe health, connection reuse, retries, warm-up and the method’s split side by side: a wrong method, or a sick peer?',
    choices: ['upstream', 'peer', 'track'],
    rows: [slow, matrix, queueing, health, connections, retries, warmth, method],
  })
}
