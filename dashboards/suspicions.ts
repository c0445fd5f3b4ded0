/* What may make a group slow: a row of evidence each. */

import type { Row } from './board.ts'
import { denialSeries } from './colours.ts'
import {
  actualShare,
  connectTime,
  failureRatio,
  headerTime,
  inFlight,
  pickedTime,
  probeFailureRatio,
  probeTime,
  ramp,
  reuseRatio,
  shadowTime,
  stateOf,
  timeShare,
  unmeasured,
  waiting,
} from './measures.ts'
import { lines, stateMappings, states } from './panels.ts'
import { avg, max, mean, min, rate, ratio, sum } from './promql.ts'
import { chosen } from './scope.ts'

const ofGroup = ['upstream'] as const
const ofPeer = ['upstream', 'peer'] as const
const everyPeer = ['peer', 'track'] as const
const name = '{{upstream}} {{peer}}'

/** The mean over peers, as if each had been asked equally often. */
const meanOfPeers = avg(ofGroup, headerTime(ofPeer, everyPeer))

/** Somebody is full. */
export const queueing: Row = {
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

/** Somebody is sick, or the probe is blind. */
export const health: Row = {
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
        [probeTime, name],
        [headerTime(ofPeer), `${name} clients`],
      ],
      min: 0,
    }),
  ],
}

/** Connections are opened again and again. */
export const connections: Row = {
  title: 'Connection reuse: is time lost on opening?',
  panels: [
    lines({
      title: 'Reused connections',
      about:
        'Part of the attempts on a kept connection. Low: `keepalive` is too small or 0, or the peer closes early.',
      span: 8,
      unit: 'percentunit',
      queries: [[reuseRatio(ofPeer), name]],
      min: 0,
      max: 1,
      steps: ['orange', [0.5, 'transparent']],
    }),
    lines({
      title: 'Connections opened',
      about: 'A second, by peer.',
      span: 8,
      unit: 'ops',
      queries: [[sum(ofPeer, rate(chosen('evenkeel_peer_connects_total'))), name]],
      min: 0,
    }),
    lines({
      title: 'Kept idle',
      about:
        'Idle connections to peers of the group, of all threads. Always at its limit with many opened: raise `keepalive`.',
      span: 8,
      unit: 'short',
      queries: [[sum(ofGroup, chosen('evenkeel_upstream_idle_connections')), '{{upstream}}']],
      min: 0,
    }),
  ],
}

/** Failures cost time before they are retried. */
export const retries: Row = {
  title: 'Retries: is time lost on failures?',
  panels: [
    lines({
      title: 'Retries by requests',
      about: 'Each retry waits for a failure first, and from the second on for a back-off.',
      span: 8,
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
      span: 8,
      unit: 'percentunit',
      queries: [[failureRatio(ofPeer), name]],
      min: 0,
    }),
    lines({
      title: 'Waiting for the back-off, and refused for the budget',
      about: 'Retries that wait now, and requests a second that could not be retried any more.',
      span: 8,
      unit: 'short',
      queries: [
        [sum(ofGroup, chosen('evenkeel_upstream_retries_waiting')), '{{upstream}} waiting'],
        [
          sum(ofGroup, rate(chosen('evenkeel_upstream_denials_total', { reason: 'budget' }))),
          '{{upstream}} refused',
        ],
      ],
      min: 0,
    }),
  ],
}

/** Somebody is new. */
export const warmth: Row = {
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

/** The method shares the work badly. */
export const method: Row = {
  title: 'The method’s split: does it make the best of the peers?',
  panels: [
    lines({
      title: 'What the split makes of their times',
      about:
        'Solid: average time of the attempts as they were shared. Dashed: the mean over peers, each asked equally often. Solid well below dashed: the method favours the fast. The same, though peers differ: it does not know of it. Above: it favours the slow.',
      span: 6,
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
      span: 6,
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
      span: 6,
      unit: 'percentunit',
      dashed: '/ time$/',
      queries: [
        [actualShare(), name],
        [timeShare(), `${name} time`],
      ],
      min: 0,
    }),
    lines({
      title: 'Time to expect, and under the shadow',
      about:
        'With `shadow METHOD;` in the group: average time of the peers that were picked, and dashed of those that the other method would have picked. Well below: it is worth a switch. More in the Upstream dashboard.',
      span: 6,
      unit: 's',
      dashed: '/ shadow$/',
      queries: [
        [pickedTime, '{{upstream}}'],
        [shadowTime, '{{upstream}} shadow'],
      ],
      min: 0,
    }),
  ],
}
