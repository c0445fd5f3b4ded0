import type { Alert } from './alert.ts'
import { between, increase, max, min, rate, series, sum, where } from './promql.ts'

const group = ['namespace', 'upstream'] as const
const instance = ['namespace', 'instance'] as const

const members = series('evenkeel_upstream_fleet_members')

/** Of single instances, and of the fleet. */
export const processAlerts: readonly Alert[] = [
  {
    name: 'EvenkeelNotScraped',
    value: min([...instance, 'job'], series('up', { job: 'evenkeel' })),
    when: '== 0',
    for: '5m',
    severity: 'critical',
    summary: '{{ $labels.instance }} does not answer Prometheus',
    description:
      'The process is gone, hangs, or its admin server cannot be reached. Other alerts know nothing of it.',
  },
  {
    name: 'EvenkeelNotReady',
    value: min(instance, series('evenkeel_ready')),
    when: '== 0',
    for: '10m',
    severity: 'warning',
    summary: '{{ $labels.instance }} is not ready',
    description:
      '/readyz says 503: it drains, has not opened its listeners, or its fleet is required and silent.',
  },
  {
    name: 'EvenkeelReloadFailed',
    value: min(instance, series('evenkeel_config_last_reload_successful')),
    when: '== 0',
    for: '5m',
    severity: 'warning',
    summary: '{{ $labels.instance }} runs an old configuration',
    description:
      'The last reload failed, and the configuration before it goes on. A restart would not come up.',
  },
  {
    name: 'EvenkeelThreadsReplaced',
    value: sum(instance, increase(series('evenkeel_threads_replaced_total'), '15m')),
    when: '> 0',
    for: '0m',
    severity: 'warning',
    summary: 'A thread of {{ $labels.instance }} has died',
    description: 'It was replaced. The requests that it was serving are lost, and the log says why it died.',
  },
  {
    name: 'EvenkeelConnectionsDropped',
    value: sum(instance, rate(series('evenkeel_connections_dropped_total'), '5m')),
    when: '> 0',
    for: '5m',
    severity: 'warning',
    summary: '{{ $labels.instance }} turns clients away',
    description:
      '{{ $value | humanize }} client connections a second are closed as they come: there are no descriptors left for them.',
  },
  {
    name: 'EvenkeelDatagramsDropped',
    value: sum(instance, rate(series('evenkeel_datagrams_dropped_total'), '5m')),
    when: '> 1',
    for: '10m',
    severity: 'warning',
    summary: '{{ $labels.instance }} drops datagrams',
    description:
      '{{ $value | humanize }} UDP datagrams a second are not passed on: sockets do not take them as fast as they come, or there is no room for more sessions.',
  },
  {
    name: 'EvenkeelLoopLag',
    value: max(instance, series('nodejs_eventloop_lag_p99_seconds')),
    when: '> 0.1',
    for: '10m',
    severity: 'warning',
    summary: '{{ $labels.instance }} has no processor time',
    description: 'Its main thread is late by {{ $value | humanizeDuration }} one time in a hundred.',
  },
  {
    name: 'EvenkeelNameLost',
    value: min([...instance, 'resolver', 'name'], series('evenkeel_resolver_name_addresses')),
    when: '== 0',
    for: '2m',
    severity: 'critical',
    summary: '{{ $labels.name }} has no addresses',
    description:
      'Instance {{ $labels.instance }} knows no address of it, so the line of its group has no peers. Where there are no others, clients get 502.',
  },
  {
    name: 'EvenkeelNameNotFound',
    value: max([...instance, 'resolver', 'name'], series('evenkeel_resolver_name_failing')),
    when: '== 1',
    and: [[[...instance, 'resolver', 'name'], where(series('evenkeel_resolver_name_addresses'), '> 0')]],
    for: '10m',
    severity: 'warning',
    summary: '{{ $labels.name }} is not resolved any more',
    description:
      'Instance {{ $labels.instance }} goes by the last addresses that it heard. It does not see it when they change.',
  },
  {
    name: 'EvenkeelFleetLost',
    value: min(instance, series('evenkeel_fleet_up')),
    when: '== 0',
    for: '2m',
    severity: 'warning',
    summary: '{{ $labels.instance }} has lost its fleet',
    description: 'Redis does not answer it. It balances by what it sees itself; requests are served.',
  },
  {
    name: 'EvenkeelFleetSplit',
    value: between(max(group, members), '-', min(group, members)),
    when: '> 0',
    for: '5m',
    severity: 'warning',
    summary: 'Instances do not see the same fleet of {{ $labels.upstream }}',
    description:
      'Some count {{ $value }} members more than others: they use different servers, or are cut off from each other.',
  },
  {
    name: 'EvenkeelFleetReset',
    value: max(
      group,
      sum([...group, 'instance'], increase(series('evenkeel_upstream_fleet_resets_total'), '1h')),
    ),
    when: '> 1',
    for: '0m',
    severity: 'warning',
    summary: 'The shared state of {{ $labels.upstream }} keeps getting lost',
    description:
      'It was begun anew {{ $value | humanize }} times in the last hour: Redis evicts, restarts without its data, or is flushed.',
  },
]
