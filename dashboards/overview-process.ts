import type { Row } from './board.ts'
import { lines, stat, yesNo } from './panels.ts'
import { increase, max, min, orNothing, rate, rateInterval, sum } from './promql.ts'
import { chosen } from './scope.ts'

const ofGroup = ['upstream'] as const
const ofProcess = ['instance'] as const

/** What runs, on which configuration, and how it is off itself. */
export const processRow: Row = {
  title: 'Configuration and process',
  panels: [
    stat({
      title: 'Instances',
      about: 'Processes whose last scrape succeeded and that take requests (`/readyz`).',
      span: 4,
      height: 4,
      unit: 'short',
      steps: ['red', [1, 'green']],
      queries: [[orNothing(sum([], chosen('evenkeel_ready'))), 'ready']],
    }),
    stat({
      title: 'Last reload',
      about:
        'Whether the last reload succeeded everywhere. After a failed one the old configuration goes on.',
      span: 4,
      height: 4,
      unit: 'short',
      steps: ['red', [1, 'green']],
      mappings: yesNo('succeeded', 'failed'),
      queries: [[min([], chosen('evenkeel_config_last_reload_successful')), 'worst']],
    }),
    stat({
      title: 'Configurations loaded',
      about:
        'The highest generation of any instance: 1 is the one that it started with. Blue marks in the graphs show when.',
      span: 4,
      height: 4,
      unit: 'short',
      steps: ['blue'],
      queries: [[max([], chosen('evenkeel_config_generation')), 'generation']],
    }),
    stat({
      title: 'Threads that serve',
      about: 'Of all instances together.',
      span: 4,
      height: 4,
      unit: 'short',
      steps: ['red', [1, 'green']],
      queries: [[sum([], chosen('evenkeel_threads')), 'threads']],
    }),
    stat({
      title: 'Threads replaced',
      about: 'Threads that died and were replaced, over the time shown. What they were serving was lost.',
      span: 4,
      height: 4,
      unit: 'short',
      decimals: 0,
      steps: ['green', [1, 'red']],
      queries: [[sum([], increase(chosen('evenkeel_threads_replaced_total'), '$__range')), 'replaced']],
    }),
    stat({
      title: 'Connections turned away',
      about:
        'Client connections that were closed as they came, for want of descriptors, over the time shown.',
      span: 4,
      height: 4,
      unit: 'short',
      decimals: 0,
      steps: ['green', [1, 'red']],
      queries: [[sum([], increase(chosen('evenkeel_connections_dropped_total'), '$__range')), 'dropped']],
    }),
    lines({
      title: 'Client connections',
      about: 'Open now: those with a request in progress, and those between requests.',
      span: 8,
      unit: 'short',
      stacked: true,
      queries: [
        [sum([], chosen('evenkeel_connections_active')), 'active'],
        [sum([], chosen('evenkeel_connections_idle')), 'idle'],
      ],
      min: 0,
    }),
    lines({
      title: 'New connections',
      about:
        'Client connections a second that were accepted, those closed as they came, and UDP datagrams that were not passed on.',
      span: 8,
      unit: 'ops',
      queries: [
        [sum([], rate(chosen('evenkeel_connections_accepted_total'))), 'accepted'],
        [sum([], rate(chosen('evenkeel_connections_dropped_total'))), 'turned away'],
        [sum([], rate(chosen('evenkeel_datagrams_dropped_total'))), 'datagrams dropped'],
      ],
      min: 0,
    }),
    lines({
      title: 'TLS handshakes',
      about:
        'Of clients, a second: those that succeeded, those of them that took up an earlier session and cost little, and those that failed or took too long. Counted where a server has a `status_zone`.',
      span: 8,
      unit: 'ops',
      queries: [
        [sum([], rate(chosen('evenkeel_tls_handshakes_total'))), 'succeeded'],
        [sum([], rate(chosen('evenkeel_tls_handshakes_reused_total'))), 'reused'],
        [sum([], rate(chosen('evenkeel_tls_handshakes_failed_total'))), 'failed'],
        [sum([], rate(chosen('evenkeel_tls_handshakes_timedout_total'))), 'timed out'],
      ],
      min: 0,
    }),
    lines({
      title: 'Event loop lag',
      about:
        'How late the main thread was for what was due, one time in a hundred. With several threads it serves no clients, but probes, the fleet and the admin server.',
      span: 8,
      unit: 's',
      queries: [[max(ofProcess, chosen('nodejs_eventloop_lag_p99_seconds')), '{{instance}}']],
      min: 0,
      steps: ['transparent', [0.1, 'orange']],
    }),
    lines({
      title: 'Processor',
      about: 'Cores in use by all threads. A thread can use one.',
      span: 8,
      unit: 'short',
      queries: [[sum(ofProcess, rate(chosen('process_cpu_seconds_total'))), '{{instance}}']],
      min: 0,
    }),
    lines({
      title: 'Memory',
      about:
        'Resident memory of the process, all threads included, and what is alive on the heap of the main thread.',
      span: 8,
      unit: 'bytes',
      queries: [
        [max(ofProcess, chosen('process_resident_memory_bytes')), '{{instance}} resident'],
        [max(ofProcess, chosen('nodejs_heap_size_used_bytes')), '{{instance}} heap'],
      ],
      min: 0,
    }),
  ],
}

/** Whether instances hear each other. */
export const fleetRow: Row = {
  title: 'Fleet',
  panels: [
    lines({
      title: 'Redis answers',
      about:
        '1 where it does. At 0 the instance balances by what it sees itself; no client notices. Empty without a fleet.',
      span: 8,
      unit: 'short',
      queries: [[min(ofProcess, chosen('evenkeel_fleet_up')), '{{instance}}']],
      min: 0,
      max: 1,
    }),
    lines({
      title: 'Instances that share a group',
      about:
        'As each of them counts. Lines that differ for more than some seconds mean that some do not hear the others.',
      span: 8,
      unit: 'short',
      queries: [
        [
          sum(['upstream', 'instance'], chosen('evenkeel_upstream_fleet_members')),
          '{{upstream}} by {{instance}}',
        ],
      ],
      min: 0,
    }),
    lines({
      title: 'Age of what is known',
      about: 'Time since the last exchange of each group that succeeded; as a rule below the interval.',
      span: 8,
      unit: 's',
      queries: [[max(ofGroup, chosen('evenkeel_upstream_fleet_age_seconds')), '{{upstream}}']],
      min: 0,
      steps: ['transparent', [5, 'orange']],
    }),
    lines({
      title: 'Exchanges',
      about:
        'A second: each instance tells and hears of each group once an interval. Failed ones are those that Redis did not answer in time.',
      span: 8,
      unit: 'ops',
      queries: [
        [sum(ofProcess, rate(chosen('evenkeel_fleet_exchanges_total'))), '{{instance}}'],
        [sum(ofProcess, rate(chosen('evenkeel_fleet_exchange_failures_total'))), '{{instance}} failed'],
      ],
      min: 0,
    }),
    lines({
      title: 'Round trip',
      about: 'Time that the last exchange took. No request waits for it.',
      span: 8,
      unit: 's',
      queries: [[max(ofProcess, chosen('evenkeel_fleet_round_trip_seconds')), '{{instance}}']],
      min: 0,
    }),
    lines({
      title: 'Losses',
      about:
        'Times that Redis was lost, and that the shared state had gone and was begun anew, in the interval of each bar.',
      span: 8,
      unit: 'short',
      bars: true,
      queries: [
        [sum([], increase(chosen('evenkeel_fleet_losses_total'), rateInterval)), 'Redis lost'],
        [sum([], increase(chosen('evenkeel_upstream_fleet_resets_total'), rateInterval)), 'state begun anew'],
      ],
      min: 0,
    }),
  ],
}
