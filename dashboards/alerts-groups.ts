import type { Alert } from './alert.ts'
import { against, apply, between, max, overTime, rate, ratio, scaled, series, sum, where } from './promql.ts'
import {
  denialRatio,
  groupErrors,
  groupRate,
  groupTime,
  intendedShare,
  livePeers,
  peerFailures,
  peerRate,
  peerShare,
} from './recording.ts'

const group = ['namespace', 'upstream'] as const
const peer = [...group, 'peer'] as const

/** 14.4 and 6 times one error in a thousand, which is what a month is allowed: the former uses it up in two days. */
const fast = 0.0144
const slow = 0.006

/** At least ten errors in the window: a ratio of less is chance. */
const tenErrors = (window: '1h' | '6h') =>
  where(between(groupErrors[window], '*', groupRate[window]), `> ${window === '1h' ? 0.0028 : 0.00046}`)
const busy = where(groupRate['5m'], '> 1')

/** Of groups as their clients see them. */
export const groupAlerts: readonly Alert[] = [
  {
    name: 'EvenkeelNoLivePeers',
    value: livePeers,
    when: '== 0',
    for: '1m',
    severity: 'critical',
    summary: 'Nobody is left to ask in {{ $labels.upstream }}',
    description:
      'Instance {{ $labels.instance }} may pick no peer of {{ $labels.upstream }}. Its clients get 502 at once.',
  },
  {
    name: 'EvenkeelErrorsFast',
    value: groupErrors['5m'],
    when: `> ${fast}`,
    and: [
      [group, where(groupErrors['1h'], `> ${fast}`)],
      [group, tenErrors('1h')],
    ],
    for: '2m',
    severity: 'critical',
    summary: 'Many requests to {{ $labels.upstream }} fail',
    description:
      '{{ $value | humanizePercentage }} of the requests of the last 5 minutes ended in an error for the client, and more than 1.44 % of those of the last hour: at this rate a month of one error in a thousand is used up in two days.',
  },
  {
    name: 'EvenkeelErrorsSlow',
    value: groupErrors['30m'],
    when: `> ${slow}`,
    and: [
      [group, where(groupErrors['6h'], `> ${slow}`)],
      [group, tenErrors('6h')],
    ],
    for: '15m',
    severity: 'warning',
    summary: 'Requests to {{ $labels.upstream }} keep failing',
    description:
      '{{ $value | humanizePercentage }} of the requests of the last 30 minutes ended in an error for the client, and more than 0.6 % of those of the last 6 hours.',
  },
  {
    name: 'EvenkeelSlowerThanUsual',
    value: groupTime.p90,
    when: against(groupTime.p90, '>', scaled(overTime('avg', groupTime.p90, '1d'), '*', 2)),
    and: [
      // Twice next to nothing is nothing.
      [group, where(groupTime.p90, '> 0.02')],
      [group, busy],
    ],
    for: '10m',
    severity: 'warning',
    summary: 'Requests to {{ $labels.upstream }} are slower than usual',
    description:
      'One request in ten takes longer than {{ $value | humanizeDuration }}: more than twice the average of the last day.',
  },
  {
    name: 'EvenkeelRetryBudgetSpent',
    value: denialRatio('budget'),
    when: '> 0.01',
    for: '5m',
    severity: 'warning',
    summary: 'The retry budget of {{ $labels.upstream }} is spent',
    description:
      '{{ $value | humanizePercentage }} of the requests could not be retried, since retries already make up what they may. Their clients see the failure.',
  },
  {
    name: 'EvenkeelOverflow',
    value: denialRatio('overflow'),
    when: '> 0.01',
    for: '5m',
    severity: 'warning',
    summary: 'All peers of {{ $labels.upstream }} are full',
    description: '{{ $value | humanizePercentage }} of the requests found every peer at its max_conns.',
  },
  {
    name: 'EvenkeelQueueFails',
    value: ratio(
      between(
        sum(group, rate(series('evenkeel_upstream_queue_overflows_total'), '5m')),
        '+',
        sum(group, rate(series('evenkeel_upstream_queue_timedout_total'), '5m')),
      ),
      sum(group, rate(series('evenkeel_upstream_requests_total'), '5m')),
    ),
    when: '> 0.01',
    for: '5m',
    severity: 'warning',
    summary: 'The queue of {{ $labels.upstream }} is full, or too slow',
    description:
      '{{ $value | humanizePercentage }} of the requests found the queue full or waited in it in vain, and got 502.',
  },
  {
    name: 'EvenkeelSessionsDropped',
    value: sum(group, rate(series('evenkeel_upstream_sticky_sessions_evicted_total'), '15m')),
    when: '> 0',
    for: '5m',
    severity: 'warning',
    summary: 'The table of sessions of {{ $labels.upstream }} is too small',
    description:
      '{{ $value | humanize }} sessions a second are dropped for new ones, and will be bound anew, to whichever peer, when they come back.',
  },
  {
    name: 'EvenkeelOnBackups',
    value: max(group, series('evenkeel_upstream_on_backups')),
    when: '== 1',
    for: '15m',
    severity: 'warning',
    summary: 'The backups of {{ $labels.upstream }} have the work',
    description: 'An instance has sent its requests to the backups first for a quarter of an hour.',
  },
  {
    name: 'EvenkeelChangedByHand',
    value: max(group, series('evenkeel_upstream_changes_in_force')),
    when: '> 0',
    for: '6h',
    severity: 'warning',
    summary: '{{ $labels.upstream }} is not as its file says',
    description:
      '{{ $value }} changes by the admin API have held for hours. They are gone when the process ends, and other instances do not have them.',
  },
  {
    name: 'EvenkeelReportsIgnored',
    value: ratio(
      sum(group, rate(series('evenkeel_peer_reports_ignored_total'), '5m')),
      sum(group, rate(series('evenkeel_peer_attempts_total'), '5m')),
    ),
    when: '> 0.5',
    and: [[group, busy]],
    for: '15m',
    severity: 'warning',
    summary: 'Peers of {{ $labels.upstream }} do not report',
    description:
      '{{ $value | humanizePercentage }} of the answers brought no value that `feedback` could take, so it shares by what it sees, or evenly.',
  },
]

/** Of single peers. */
export const peerAlerts: readonly Alert[] = [
  {
    name: 'EvenkeelPeerOut',
    value: max(
      peer,
      sum(
        [...peer, 'instance', 'track'],
        overTime(
          'avg',
          series('evenkeel_peer_excluded', { reason: /unavailable|unhealthy|checking/ }),
          '15m',
        ),
      ),
    ),
    when: '> 0.5',
    for: '5m',
    severity: 'warning',
    summary: 'Peer {{ $labels.peer }} of {{ $labels.upstream }} is out',
    description:
      'It was set aside for {{ $value | humanizePercentage }} of the last 15 minutes, by max_fails or by probes. The others carry its work.',
  },
  {
    name: 'EvenkeelHiddenFailures',
    value: peerFailures,
    when: '> 0.1',
    and: [
      [group, where(groupErrors['5m'], '< 0.01')],
      [peer, where(peerRate, '> 0.1')],
    ],
    for: '10m',
    severity: 'warning',
    summary: 'Retries cover up for {{ $labels.peer }} of {{ $labels.upstream }}',
    description:
      '{{ $value | humanizePercentage }} of the attempts at this peer fail, while clients see next to no errors: others answer in its place. When they cannot any more, clients will see it.',
  },
  {
    name: 'EvenkeelShareOff',
    value: apply('abs', between(peerShare, '-', intendedShare)),
    when: '> 0.2',
    and: [[group, busy]],
    for: '15m',
    severity: 'warning',
    summary: 'Peer {{ $labels.peer }} of {{ $labels.upstream }} gets another share than intended',
    description:
      'Its share of the attempts is {{ $value | humanizePercentage }} away from what the method means it to have.',
  },
]
