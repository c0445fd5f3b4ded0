import type { Row } from './board.ts'
import { connectTime } from './measures.ts'
import { lines } from './panels.ts'
import { avg, type Expr, increase, max, mean, quantile, rate, rateInterval, sum } from './promql.ts'
import { chosen } from './scope.ts'

const ofGroup = ['upstream'] as const
const ofPeer = ['upstream', 'peer'] as const
const name = '{{upstream}} {{peer}}'

const grown = (counter: string): Expr => sum(ofGroup, rate(chosen(counter)))

function lengthOf(q: number): Expr {
  return quantile(q, sum([...ofGroup, 'le'], rate(chosen('evenkeel_upstream_session_seconds_bucket'))))
}

function peerLengthOf(q: number): Expr {
  return quantile(q, sum([...ofPeer, 'le'], rate(chosen('evenkeel_peer_session_seconds_bucket'))))
}

/** Sessions over TCP and UDP. */
export const streamRow: Row = {
  title: 'Sessions of stream',
  panels: [
    lines({
      title: 'Length',
      about:
        'How long sessions lasted that have ended. It is up to clients, and says nothing of the peers. Empty without groups of `stream`.',
      span: 8,
      unit: 's',
      queries: [
        [lengthOf(0.5), '{{upstream}} p50'],
        [lengthOf(0.9), '{{upstream}} p90'],
      ],
      min: 0,
    }),
    lines({
      title: 'Length by peer',
      about:
        'Of those that ended in order; dashed the moving average that the status tree has as `last_byte_time`. A peer whose sessions are shorter than the others’ may be ending them.',
      span: 8,
      unit: 's',
      dashed: '/ average$/',
      queries: [
        [peerLengthOf(0.5), `${name} p50`],
        [avg(ofPeer, chosen('evenkeel_peer_session_average_seconds')), `${name} average`],
      ],
      min: 0,
    }),
    lines({
      title: 'Connection and first byte',
      about:
        'Solid: what opening a connection to the peer took. Dashed: the moving average of that, of `stream` alone. The first byte, for which the peer may be waiting for its client, is in *Times*.',
      span: 8,
      unit: 's',
      dashed: '/ average$/',
      queries: [
        [connectTime(ofPeer), name],
        [avg(ofPeer, chosen('evenkeel_peer_connect_average_seconds')), `${name} average`],
      ],
      min: 0,
    }),
  ],
}

const entered = 'evenkeel_upstream_queue_entered_total'

/** Requests that wait for a peer. Empty without `queue`. */
export const queueRow: Row = {
  title: 'Queue',
  panels: [
    lines({
      title: 'Waiting for a peer',
      about: 'Requests in the queue of each group, of all instances and threads. Empty without `queue`.',
      span: 8,
      unit: 'short',
      queries: [[sum(ofGroup, chosen('evenkeel_upstream_queue_waiting')), '{{upstream}}']],
      min: 0,
    }),
    lines({
      title: 'How they left it',
      about:
        'Requests a second that entered, and those that left without a peer: since their client did, or since it took too long. Those that found it full never entered. The latter two got 502.',
      span: 8,
      unit: 'reqps',
      queries: [
        [grown(entered), '{{upstream}} entered'],
        [grown('evenkeel_upstream_queue_dropped_total'), '{{upstream}} client left'],
        [grown('evenkeel_upstream_queue_timedout_total'), '{{upstream}} too long'],
        [grown('evenkeel_upstream_queue_overflows_total'), '{{upstream}} full'],
      ],
      min: 0,
    }),
    lines({
      title: 'Time in it',
      about: 'On average, of those that entered, however their wait ended. It is part of what clients wait.',
      span: 8,
      unit: 's',
      queries: [[mean(grown('evenkeel_upstream_queue_wait_seconds_total'), grown(entered)), '{{upstream}}']],
      min: 0,
    }),
  ],
}

/** Sessions that stay with their peers. Empty without `sticky`. */
export const stickyRow: Row = {
  title: 'Sessions that stay with their peer',
  panels: [
    lines({
      title: 'Picks by what they made of the session',
      about:
        'A second. `new`: it was bound to nobody; `hit`: it went where it is bound; `miss`: its peer could not take it, so that it went elsewhere or, with `sticky_strict`, nowhere. Empty without `sticky`.',
      span: 8,
      unit: 'ops',
      stacked: true,
      colours: new Map([
        ['/new$/', 'blue'],
        ['/hit$/', 'green'],
        ['/miss$/', 'orange'],
      ]),
      queries: [
        [
          sum(['upstream', 'status'], rate(chosen('evenkeel_upstream_sticky_picks_total'))),
          '{{upstream}} {{status}}',
        ],
      ],
      min: 0,
    }),
    lines({
      title: 'Learnt sessions',
      about:
        'In the table of each instance, by the one that has most; dashed is what it has room for. At the limit the session that was left alone longest goes for each new one.',
      span: 8,
      unit: 'short',
      dashed: '/ room$/',
      queries: [
        [max(ofGroup, chosen('evenkeel_upstream_sticky_sessions')), '{{upstream}}'],
        [max(ofGroup, chosen('evenkeel_upstream_sticky_sessions_max')), '{{upstream}} room'],
      ],
      min: 0,
    }),
    lines({
      title: 'What becomes of them',
      about:
        'Sessions a second that were learnt, bound to another peer, and dropped for want of room; and those that instances of a fleet heard of from each other.',
      span: 8,
      unit: 'ops',
      queries: [
        [grown('evenkeel_upstream_sticky_sessions_created_total'), '{{upstream}} learnt'],
        [grown('evenkeel_upstream_sticky_sessions_rebound_total'), '{{upstream}} bound anew'],
        [grown('evenkeel_upstream_sticky_sessions_evicted_total'), '{{upstream}} dropped'],
        [grown('evenkeel_upstream_fleet_sessions_told_total'), '{{upstream}} told'],
        [grown('evenkeel_upstream_fleet_sessions_heard_total'), '{{upstream}} heard'],
      ],
      min: 0,
    }),
  ],
}

/** What is otherwise than the file has it. */
export const changesRow: Row = {
  title: 'Lists and changes',
  panels: [
    lines({
      title: 'Requests go to the backups first',
      about:
        'Instances that do, as `backup_switch` has it. `permanent` without a time stays there until the backups have nobody. Empty without that directive.',
      span: 6,
      unit: 'short',
      queries: [[sum(ofGroup, chosen('evenkeel_upstream_on_backups')), '{{upstream}}']],
      min: 0,
      steps: ['transparent', [1, 'orange']],
    }),
    lines({
      title: 'Switches',
      about: 'How often requests went over to the other list, either way, in the interval of each bar.',
      span: 6,
      unit: 'short',
      bars: true,
      queries: [
        [
          sum(ofGroup, increase(chosen('evenkeel_upstream_backup_switches_total'), rateInterval)),
          '{{upstream}}',
        ],
      ],
      min: 0,
    }),
    lines({
      title: 'Changes that hold',
      about:
        'What was changed by the admin API, by the instance with most of it: each has its own. `/config` lists them, and `DELETE /upstreams/UPSTREAM/changes` takes them back.',
      span: 6,
      unit: 'short',
      queries: [[max(ofGroup, chosen('evenkeel_upstream_changes_in_force')), '{{upstream}}']],
      min: 0,
    }),
    lines({
      title: 'Changes made',
      about:
        'In the interval of each bar, by what was changed; `dropped` are those that a reload made void, since the file says otherwise.',
      span: 6,
      unit: 'short',
      bars: true,
      queries: [
        [
          sum(['upstream', 'change'], increase(chosen('evenkeel_upstream_changes_total'), rateInterval)),
          '{{upstream}} {{change}}',
        ],
      ],
      min: 0,
    }),
  ],
}
