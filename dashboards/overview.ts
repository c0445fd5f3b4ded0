import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard'
import { board } from './board.ts'
import { denialSeries } from './colours.ts'
import { errorRatio, readiness, requests, requestTime } from './measures.ts'
import { lines, stat, yesNo } from './panels.ts'
import { increase, max, min, orNothing, rate, ratio, sum } from './promql.ts'
import { chosen } from './scope.ts'
import { table } from './tables.ts'

const ofGroup = ['upstream'] as const
const ofProcess = ['instance'] as const

/** Peers of a group that may be picked, by the instance that sees fewest of them. */
const readyPeers = min(ofGroup, sum(['namespace', 'instance', 'upstream'], readiness(['peer'])))
const retries = sum(ofGroup, rate(chosen('evenkeel_upstream_retries_total')))
const asked = sum(ofGroup, rate(chosen('evenkeel_upstream_requests_total')))
const denied = (reason: string) => sum(ofGroup, rate(chosen('evenkeel_upstream_denials_total', { reason })))
const rescued = sum(ofGroup, rate(chosen('evenkeel_upstream_rescued_total')))

export function overview(): Dashboard {
  return board({
    uid: 'evenkeel-overview',
    title: 'evenkeel / Overview',
    about:
      'Do requests succeed, how fast, and is anything about to give way? From here on to a group or a question.',
    choices: ['upstream', 'track'],
    rows: [
      {
        title: 'Requests as clients see them',
        panels: [
          lines({
            title: 'Rate',
            about: 'Requests a second by group, however they ended.',
            span: 8,
            unit: 'reqps',
            queries: [[requests(ofGroup), '{{upstream}}']],
            min: 0,
          }),
          lines({
            title: 'Errors',
            about:
              'Part of the requests that a client saw end with 5xx. A client that left (499) is no error. A gap means no requests.',
            span: 8,
            unit: 'percentunit',
            queries: [[errorRatio(ofGroup), '{{upstream}}']],
            min: 0,
            steps: ['transparent', [0.01, 'red']],
          }),
          lines({
            title: 'Duration',
            about:
              'Time of whole requests with all their attempts: half are faster than p50, one in a hundred is slower than p99. Points are single requests with a trace.',
            span: 8,
            unit: 's',
            queries: [
              [requestTime(0.5, ofGroup), '{{upstream}} p50'],
              [requestTime(0.99, ofGroup), '{{upstream}} p99'],
            ],
            min: 0,
            exemplars: true,
          }),
          table({
            title: 'Groups',
            about: 'One row a group, now. A click on a name leads to its peers.',
            span: 24,
            height: 7,
            rows: ofGroup,
            sort: 'Requests',
            leadsTo: 'evenkeel-upstream',
            columns: [
              { title: 'Requests', expr: requests(ofGroup), unit: 'reqps' },
              {
                title: 'Errors',
                expr: errorRatio(ofGroup),
                unit: 'percentunit',
                steps: ['green', [0.001, 'yellow'], [0.01, 'red']],
              },
              { title: 'p50', expr: requestTime(0.5, ofGroup), unit: 's' },
              { title: 'p99', expr: requestTime(0.99, ofGroup), unit: 's' },
              {
                title: 'Ready peers',
                expr: readyPeers,
                unit: 'short',
                steps: ['red', [1, 'yellow'], [2, 'green']],
              },
              {
                title: 'Retries',
                expr: ratio(retries, asked),
                unit: 'percentunit',
                steps: ['green', [0.05, 'yellow'], [0.2, 'red']],
              },
              {
                title: 'Saved by a retry',
                expr: ratio(rescued, asked),
                unit: 'percentunit',
                steps: ['green', [0.01, 'yellow'], [0.1, 'orange']],
              },
            ],
          }),
        ],
      },
      {
        title: 'Is there somebody to ask?',
        panels: [
          lines({
            title: 'Peers that are ready',
            about:
              'Peers of each group that may be picked, as the instance sees it that sees fewest. At 0 clients get 502 at once.',
            span: 6,
            unit: 'short',
            queries: [[readyPeers, '{{upstream}}']],
            min: 0,
            steps: ['red', [1, 'transparent']],
          }),
          lines({
            title: 'Nobody to ask',
            about: 'Requests a second that found no peer at all (`no_live`), or only full ones (`overflow`).',
            span: 6,
            unit: 'reqps',
            queries: [
              [denied('no_live'), '{{upstream}} no_live'],
              [denied('overflow'), '{{upstream}} overflow'],
            ],
            min: 0,
          }),
          lines({
            title: 'Retries by requests',
            about:
              'Attempts after the first one, by requests. The budget lets 20 % of the last 10 s through, and 10 a second more; where it is spent, failures reach clients.',
            span: 6,
            unit: 'percentunit',
            queries: [
              [ratio(retries, asked), '{{upstream}}'],
              [ratio(denied('budget'), asked), '{{upstream}} refused for the budget'],
            ],
            min: 0,
            steps: ['transparent', [0.2, 'orange']],
          }),
          lines({
            title: 'No attempt, or no further one',
            about:
              'Why requests got none, a second. `tries` and `not_replayable` are limits of the request; `budget`, `overflow` and `no_live` of the group.',
            span: 6,
            unit: 'reqps',
            stacked: true,
            colours: denialSeries,
            queries: [[sum(['reason'], rate(chosen('evenkeel_upstream_denials_total'))), '{{reason}}']],
            min: 0,
          }),
        ],
      },
      {
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
            about:
              'Threads that died and were replaced, over the time shown. What they were serving was lost.',
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
            queries: [
              [sum([], increase(chosen('evenkeel_connections_dropped_total'), '$__range')), 'dropped'],
            ],
          }),
          lines({
            title: 'Client connections',
            about: 'Open now: those with a request in progress, and those between requests.',
            span: 6,
            unit: 'short',
            stacked: true,
            queries: [
              [sum([], chosen('evenkeel_connections_active')), 'active'],
              [sum([], chosen('evenkeel_connections_idle')), 'idle'],
            ],
            min: 0,
          }),
          lines({
            title: 'Event loop lag',
            about:
              'How late the main thread was for what was due, one time in a hundred. With several threads it serves no clients, but probes, the fleet and the admin server.',
            span: 6,
            unit: 's',
            queries: [[max(ofProcess, chosen('nodejs_eventloop_lag_p99_seconds')), '{{instance}}']],
            min: 0,
            steps: ['transparent', [0.1, 'orange']],
          }),
          lines({
            title: 'Processor',
            about: 'Cores in use by all threads. A thread can use one.',
            span: 6,
            unit: 'short',
            queries: [[sum(ofProcess, rate(chosen('process_cpu_seconds_total'))), '{{instance}}']],
            min: 0,
          }),
          lines({
            title: 'Memory',
            about:
              'Resident memory of the process, all threads included, and what is alive on the heap of the main thread.',
            span: 6,
            unit: 'bytes',
            queries: [
              [max(ofProcess, chosen('process_resident_memory_bytes')), '{{instance}} resident'],
              [max(ofProcess, chosen('nodejs_heap_size_used_bytes')), '{{instance}} heap'],
            ],
            min: 0,
          }),
        ],
      },
      {
        title: 'Fleet',
        panels: [
          lines({
            title: 'Redis answers',
            about:
              '1 where it does. At 0 the instance balances by what it sees itself; no client notices. Empty without a fleet.',
            span: 6,
            unit: 'short',
            queries: [[min(ofProcess, chosen('evenkeel_fleet_up')), '{{instance}}']],
            min: 0,
            max: 1,
          }),
          lines({
            title: 'Instances that share a group',
            about:
              'As each of them counts. Lines that differ for more than some seconds mean that some do not hear the others.',
            span: 6,
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
            span: 6,
            unit: 's',
            queries: [[max(ofGroup, chosen('evenkeel_upstream_fleet_age_seconds')), '{{upstream}}']],
            min: 0,
            steps: ['transparent', [5, 'orange']],
          }),
          lines({
            title: 'Trouble with the fleet',
            about:
              'Exchanges that failed, times that Redis was lost, and times that the shared state had gone and was begun anew, a second.',
            span: 6,
            unit: 'ops',
            queries: [
              [sum([], rate(chosen('evenkeel_fleet_exchange_failures_total'))), 'failed exchanges'],
              [sum([], rate(chosen('evenkeel_fleet_losses_total'))), 'Redis lost'],
              [sum([], rate(chosen('evenkeel_upstream_fleet_resets_total'))), 'state begun anew'],
            ],
            min: 0,
          }),
        ],
      },
    ],
  })
}
