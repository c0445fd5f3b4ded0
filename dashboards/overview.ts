import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard'
import { board } from './board.ts'
import { denialSeries } from './colours.ts'
import { errorRatio, readiness, requests, requestTime } from './measures.ts'
import { namesRow } from './overview-names.ts'
import { fleetRow, processRow } from './overview-process.ts'
import { lines } from './panels.ts'
import { min, rate, ratio, sum } from './promql.ts'
import { chosen } from './scope.ts'
import { table } from './tables.ts'

const ofGroup = ['upstream'] as const

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
            about: 'Requests a second by group, however they ended; of a group of `stream` sessions.',
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
              'Time of whole requests with all their attempts: half are faster than p50, one in a hundred is slower than p99. Points are single requests with a trace. Sessions of `stream` are not among them: they last as long as their clients want.',
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
            about:
              'Requests a second that found no peer at all (`no_live`), or only full ones (`overflow`), and that a queue did not help.',
            span: 6,
            unit: 'reqps',
            queries: [
              [denied('no_live'), '{{upstream}} no_live'],
              [denied('overflow'), '{{upstream}} overflow'],
              [denied('queue_full'), '{{upstream}} queue_full'],
              [denied('queue_timeout'), '{{upstream}} queue_timeout'],
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
      namesRow,
      processRow,
      fleetRow,
    ],
  })
}
