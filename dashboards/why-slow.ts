import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard'
import { board, type Row } from './board.ts'
import { denialSeries } from './colours.ts'
import {
  actualShare,
  attempts,
  connectTime,
  failureRatio,
  headerTime,
  intendedShare,
  probeFailureRatio,
  relativeTime,
  requestTime,
  reuseRatio,
  stateOf,
  timeShare,
} from './measures.ts'
import { lines, note, stateMappings, states } from './panels.ts'
import { avg, max, mean, min, quantile, rate, ratio, sum } from './promql.ts'
import { chosen } from './scope.ts'
import { type Column, table } from './tables.ts'
import { guide } from './why-slow-guide.ts'

const ofGroup = ['upstream'] as const
const ofPeer = ['upstream', 'peer'] as const
const everyPeer = ['peer', 'track'] as const
const name = '{{upstream}} {{peer}}'

const inFlight = sum(ofPeer, chosen('evenkeel_peer_in_flight'))
const waiting = sum(ofPeer, chosen('evenkeel_peer_waiting_age_seconds'))
const unmeasured = ratio(sum(ofPeer, rate(chosen('evenkeel_peer_unmeasured_total'))), attempts(ofPeer))
const ramp = min(ofPeer, chosen('evenkeel_peer_ramp_ratio'))
const probeTook = avg(ofPeer, chosen('evenkeel_peer_probe_seconds'))

/** The mean over peers, as if each had been asked equally often. */
const meanOfPeers = avg(ofGroup, headerTime(ofPeer, everyPeer))

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
  { title: 'Probe', expr: probeTook, unit: 's' },
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

const queueing: Row = {
  title: 'Queueing: is somebody full?',
  panels: [
    lines({
      title: 'In flight',
      about:
        'Requests in progress. A peer that climbs while its share does not is slower than its work comes in.',
      span: 6,
      unit: 'short',
      queries: [[inFlight, name]],
      min: 0,
    }),
    lines({
      title: 'Waiting',
      about:
        'Time that attempts without an answer have waited, added up. A straight climb is a peer that is stuck.',
      span: 6,
      unit: 's',
      queries: [[waiting, name]],
      min: 0,
    }),
    lines({
      title: 'Turned away',
      about: '`overflow`: all peers were at `max_conns`. `queue_…`: waited for a place, in vain.',
      span: 6,
      unit: 'reqps',
      stacked: true,
      colours: denialSeries,
      queries: [
        [
          sum(
            ['reason'],
            rate(chosen('evenkeel_upstream_denials_total', { reason: /overflow|queue_.*|no_live/ })),
          ),
          '{{reason}}',
        ],
      ],
      min: 0,
    }),
    lines({
      title: 'Time to connect',
      about:
        'Average of connections opened. On a local network it is well below 1 ms; more means that the accept queue is full (`upstream_probe type=backlog` watches it) or that packets are lost.',
      span: 6,
      unit: 's',
      queries: [[connectTime(ofPeer), name]],
      min: 0,
    }),
  ],
}

const health: Row = {
  title: 'Probe health: is a peer sick, or the probe blind?',
  panels: [
    states({
      title: 'State',
      about: 'Peers that are out leave their work to the others.',
      span: 8,
      mappings: stateMappings,
      queries: [[stateOf(ofPeer), name]],
    }),
    lines({
      title: 'Probes that did not pass',
      about: 'Part of all probes of the peer.',
      span: 8,
      unit: 'percentunit',
      queries: [[probeFailureRatio(ofPeer), name]],
      min: 0,
      max: 1,
    }),
    lines({
      title: 'Probe and clients',
      about:
        'Dashed: average of clients’ attempts. Probes that stay fast while clients wait do not ask for what clients need.',
      span: 8,
      unit: 's',
      dashed: '/ clients$/',
      queries: [
        [probeTook, name],
        [headerTime(ofPeer), `${name} clients`],
      ],
      min: 0,
    }),
  ],
}

const connections: Row = {
  title: 'Connection reuse and retries: is time lost on the way?',
  panels: [
    lines({
      title: 'Reused connections',
      about:
        'Part of the attempts on a kept connection. Low: `keepalive` is too small or 0, or the peer closes early.',
      span: 6,
      unit: 'percentunit',
      queries: [[reuseRatio(ofPeer), name]],
      min: 0,
      max: 1,
      steps: ['orange', [0.5, 'transparent']],
    }),
    lines({
      title: 'Connections opened',
      about: 'A second, by peer.',
      span: 6,
      unit: 'ops',
      queries: [[sum(ofPeer, rate(chosen('evenkeel_peer_connects_total'))), name]],
      min: 0,
    }),
    lines({
      title: 'Retries by requests',
      about:
        'Each retry waits for a failure first. Retries that wait for their back-off are in the Attempts dashboard.',
      span: 6,
      unit: 'percentunit',
      queries: [
        [
          ratio(
            sum(ofGroup, rate(chosen('evenkeel_upstream_retries_total'))),
            sum(ofGroup, rate(chosen('evenkeel_upstream_requests_total'))),
          ),
          '{{upstream}}',
        ],
      ],
      min: 0,
      steps: ['transparent', [0.2, 'orange']],
    }),
    lines({
      title: 'Failures by peer',
      about:
        'Part of the attempts. A peer that times out costs every request that comes to it the whole time-out.',
      span: 6,
      unit: 'percentunit',
      queries: [[failureRatio(ofPeer), name]],
      min: 0,
    }),
  ],
}

const warmth: Row = {
  title: 'Warm-up: is somebody new?',
  panels: [
    lines({
      title: 'Ramp',
      about: 'Part of its weight that `slow_start` leaves the peer; 100 % when it is over.',
      span: 8,
      unit: 'percentunit',
      queries: [[ramp, name]],
      min: 0,
      max: 1,
    }),
    lines({
      title: 'Picked without an average',
      about:
        'Part of the attempts. High after a start or a new peer, and for methods that measure nothing it is 0.',
      span: 8,
      unit: 'percentunit',
      queries: [[unmeasured, name]],
      min: 0,
    }),
    lines({
      title: 'Looked at',
      about:
        'Attempts a second made to see whether a peer is still slow. A slow tail of this size is the price of knowing.',
      span: 8,
      unit: 'ops',
      queries: [[sum(ofPeer, rate(chosen('evenkeel_peer_explored_total'))), name]],
      min: 0,
    }),
  ],
}

const method: Row = {
  title: 'The method’s split: does it make the best of the peers?',
  panels: [
    lines({
      title: 'What the split makes of their times',
      about:
        'Solid: average time of the attempts as they were shared. Dashed: the mean over peers, each asked equally often. Solid well below dashed: the method favours the fast. The same, though peers differ: it does not know of it. Above: it favours the slow.',
      span: 8,
      unit: 's',
      dashed: '/ equal$/',
      queries: [
        [headerTime(ofGroup, everyPeer), '{{upstream}}'],
        [meanOfPeers, '{{upstream}} equal'],
      ],
      min: 0,
    }),
    lines({
      title: 'How unequal the peers are',
      about:
        'Time to the header of the slowest peer, by that of the fastest. Near 1 no method can help, and the cause is shared by all. At 2 and more with equal shares, try `least_time` as a `shadow` first.',
      span: 8,
      unit: 'short',
      queries: [
        [
          mean(max(ofGroup, headerTime(ofPeer, everyPeer)), min(ofGroup, headerTime(ofPeer, everyPeer))),
          '{{upstream}}',
        ],
      ],
      min: 1,
      steps: ['transparent', [2, 'orange']],
    }),
    lines({
      title: 'Share of attempts and of time',
      about:
        'Solid: share of the attempts. Dashed: share of the time that answers took. A peer whose time is far above its share is the slow one; a method that knows gives it less.',
      span: 8,
      unit: 'percentunit',
      dashed: '/ time$/',
      queries: [
        [actualShare(), name],
        [timeShare(), `${name} time`],
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
    rows: [slow, matrix, queueing, health, connections, warmth, method],
  })
}
