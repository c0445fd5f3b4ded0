import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard'
import { board, type Row } from './board.ts'
import { denialSeries, endingSeries, statusSeries } from './colours.ts'
import { attempts, errorRatio, failureRatio, requests, requestTime } from './measures.ts'
import { lines, stat } from './panels.ts'
import { between, clampMin, increase, mean, quantile, rate, ratio, sum, where } from './promql.ts'
import { chosen } from './scope.ts'
import { matrix, table } from './tables.ts'

const ofGroup = ['upstream'] as const
const ofPeer = ['upstream', 'peer'] as const
const name = '{{upstream}} {{peer}}'

const rateOf = (metric: string, by: readonly ('upstream' | 'peer' | 'reason')[]) =>
  sum(by, rate(chosen(metric)))
const hidden = sum([], rate(chosen('evenkeel_upstream_hidden_failures_total')))
const failures = sum([], rate(chosen('evenkeel_peer_failures_total')))
const grown = (metric: string, by: readonly ('upstream' | 'peer' | 'reason')[]) =>
  sum(by, increase(chosen(metric), '$__range'))

const clients: Row = {
  title: 'What clients saw, and what it took',
  panels: [
    lines({
      title: 'Requests',
      about: 'Requests a second by the status that clients got.',
      span: 8,
      unit: 'reqps',
      stacked: true,
      colours: statusSeries,
      queries: [[requests(['code']), '{{code}}']],
      min: 0,
    }),
    lines({
      title: 'Errors and failures',
      about:
        'Solid: part of the requests that ended in an error for the client. Dashed: part of the attempts that failed. Dashed far above solid: retries cover up for a peer.',
      span: 8,
      unit: 'percentunit',
      dashed: '/ attempts$/',
      queries: [
        [errorRatio(ofGroup), '{{upstream}} requests'],
        [failureRatio(ofGroup), '{{upstream}} attempts'],
      ],
      min: 0,
    }),
    lines({
      title: 'Duration',
      about:
        'p99 of whole requests, and dashed of single attempts to the header. What lies between is retries, their back-off and the body.',
      span: 8,
      unit: 's',
      dashed: '/ attempts$/',
      exemplars: true,
      queries: [
        [requestTime(0.99, ofGroup), '{{upstream}} requests'],
        [
          quantile(0.99, sum([...ofGroup, 'le'], rate(chosen('evenkeel_peer_header_seconds_bucket')))),
          '{{upstream}} attempts',
        ],
      ],
      min: 0,
    }),
  ],
}

const unseen: Row = {
  title: 'Failures that a retry has hidden',
  panels: [
    stat({
      title: 'Requests saved by a retry',
      about:
        'Part of the requests that got a good answer after an attempt had failed. Every one of them was slower for it.',
      span: 4,
      height: 4,
      unit: 'percentunit',
      steps: ['green', [0.01, 'yellow'], [0.1, 'orange']],
      queries: [
        [
          ratio(
            sum([], rate(chosen('evenkeel_upstream_rescued_total'))),
            sum([], rate(chosen('evenkeel_upstream_requests_total'))),
          ),
          'saved',
        ],
      ],
    }),
    stat({
      title: 'Attempts a request',
      about: '1 where nothing is retried.',
      span: 4,
      height: 4,
      unit: 'short',
      decimals: 3,
      steps: ['green', [1.05, 'yellow'], [1.2, 'orange']],
      queries: [
        [
          mean(
            sum([], rate(chosen('evenkeel_upstream_attempts_total'))),
            sum([], rate(chosen('evenkeel_upstream_requests_total'))),
          ),
          'attempts',
        ],
      ],
    }),
    lines({
      title: 'Failed attempts',
      about:
        'Hidden: the client got a good answer all the same. Seen: the request ended in an error, or was cut short. Hidden ones are what a peer’s trouble looks like before clients notice.',
      span: 16,
      unit: 'ops',
      stacked: true,
      colours: new Map([
        ['hidden', 'orange'],
        ['seen', 'red'],
      ]),
      queries: [
        [hidden, 'hidden'],
        [clampMin(between(failures, '-', hidden), 0), 'seen'],
      ],
      min: 0,
    }),
  ],
}

const views: Row = {
  title: 'Attempt by attempt',
  panels: [
    lines({
      title: 'First tries and retries',
      about:
        'Attempts a second. The second colour is the load that failures add; the budget keeps it to 20 % and 10 a second.',
      span: 8,
      unit: 'ops',
      stacked: true,
      colours: new Map([
        ['first tries', 'green'],
        ['retries', 'orange'],
      ]),
      queries: [
        [
          clampMin(
            between(
              sum([], rate(chosen('evenkeel_upstream_attempts_total'))),
              '-',
              sum([], rate(chosen('evenkeel_upstream_retries_total'))),
            ),
            0,
          ),
          'first tries',
        ],
        [sum([], rate(chosen('evenkeel_upstream_retries_total'))), 'retries'],
      ],
      min: 0,
    }),
    lines({
      title: 'How they ended',
      about:
        'Every attempt by its ending, a second: `succeeded`, or the reason why not. Reds never had an answer, oranges waited too long, purples answered with an error, greys are nobody’s fault.',
      span: 16,
      unit: 'ops',
      stacked: true,
      colours: endingSeries,
      queries: [
        [sum([], rate(chosen('evenkeel_peer_succeeded_total'))), 'succeeded'],
        [rateOf('evenkeel_peer_attempt_reasons_total', ['reason']), '{{reason}}'],
      ],
      min: 0,
    }),
    matrix({
      title: 'Who ended how',
      about: 'Attempts over the time shown that did not end plainly well: a row a peer, a column a reason.',
      span: 12,
      height: 9,
      unit: 'short',
      row: 'peer',
      column: 'reason',
      expr: where(grown('evenkeel_peer_attempt_reasons_total', ['peer', 'reason']), '> 0'),
    }),
    table({
      title: 'Attempts by peer',
      about:
        'Over the time shown. Failures count against the peer; other ends, such as a client that left, do not.',
      span: 12,
      height: 9,
      rows: ofPeer,
      sort: 'Failures',
      columns: [
        {
          title: 'Attempts',
          expr: grown('evenkeel_peer_attempts_total', ofPeer),
          unit: 'short',
          decimals: 0,
        },
        {
          title: 'Succeeded',
          expr: grown('evenkeel_peer_succeeded_total', ofPeer),
          unit: 'short',
          decimals: 0,
        },
        {
          title: 'Failures',
          expr: grown('evenkeel_peer_failures_total', ofPeer),
          unit: 'short',
          decimals: 0,
        },
        {
          title: 'Failed',
          expr: ratio(
            grown('evenkeel_peer_failures_total', ofPeer),
            grown('evenkeel_peer_attempts_total', ofPeer),
          ),
          unit: 'percentunit',
          steps: ['green', [0.01, 'yellow'], [0.1, 'red']],
        },
      ],
    }),
  ],
}

const limits: Row = {
  title: 'Where attempts come from, and why there were no more',
  panels: [
    lines({
      title: 'Attempts by peer',
      about: 'First ones and retries, a second.',
      span: 8,
      unit: 'ops',
      queries: [[attempts(ofPeer), name]],
      min: 0,
    }),
    lines({
      title: 'No attempt, or no further one',
      about: 'Requests a second by what stood in the way.',
      span: 8,
      unit: 'reqps',
      stacked: true,
      colours: denialSeries,
      queries: [[rateOf('evenkeel_upstream_denials_total', ['reason']), '{{reason}}']],
      min: 0,
    }),
    lines({
      title: 'Retries that wait',
      about: 'For their back-off, now. They count against the budget.',
      span: 8,
      unit: 'short',
      queries: [[sum(ofGroup, chosen('evenkeel_upstream_retries_waiting')), '{{upstream}}']],
      min: 0,
    }),
  ],
}

export function attemptsBoard(): Dashboard {
  return board({
    uid: 'evenkeel-attempts',
    title: 'evenkeel / Attempts',
    about:
      'What requests were made of: first tries, retries, how each ended, and what clients did not see of it.',
    choices: ['upstream', 'peer', 'track'],
    rows: [clients, unseen, views, limits],
  })
}
