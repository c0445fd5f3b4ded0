import { CustomVariableBuilder, type Dashboard } from '@grafana/grafana-foundation-sdk/dashboard'
import { board, type Row } from './board.ts'
import { endingSeries, trackSeries } from './colours.ts'
import {
  baseline,
  errorDifference,
  errorsSeen,
  latencyRatio,
  seen,
  splitShare,
  timeOver,
  trackShare,
} from './comparison.ts'
import { errorRatio, readiness, requests, requestTime, stateOf } from './measures.ts'
import { lines, note, stateMappings, states } from './panels.ts'
import { avg, min, rate, ratio, sum } from './promql.ts'
import { chosen } from './scope.ts'
import { table } from './tables.ts'

const ofTrack = ['upstream', 'track'] as const
const name = '{{upstream}} {{track}}'

const clients: Row = {
  title: 'Requests by track',
  panels: [
    lines({
      title: 'Rate',
      about: 'Requests a second that ended in each track.',
      span: 8,
      unit: 'reqps',
      colours: trackSeries,
      queries: [[requests(ofTrack), name]],
      min: 0,
    }),
    lines({
      title: 'Errors',
      about:
        'Part of the requests that ended with 5xx. A gap means no requests, which is neither good nor bad.',
      span: 8,
      unit: 'percentunit',
      colours: trackSeries,
      queries: [[errorRatio(ofTrack), name]],
      min: 0,
      steps: ['transparent', [0.01, 'red']],
    }),
    lines({
      title: 'Duration',
      about: 'Time of whole requests. Dashed is p99. Points are single requests with a trace.',
      span: 8,
      unit: 's',
      colours: trackSeries,
      dashed: '/ p99$/',
      exemplars: true,
      queries: [
        [requestTime(0.5, ofTrack), `${name} p50`],
        [requestTime(0.99, ofTrack), `${name} p99`],
      ],
      min: 0,
    }),
  ],
}

const compared: Row = {
  title: 'Against the other track, over the window that is chosen above',
  panels: [
    table({
      title: 'Tracks',
      about: `One row a track, by its attempts: a request that fails in one may end in another. Below 100 samples nothing is said by the other columns. Differences are from \`${baseline}\` in the panels below.`,
      span: 24,
      height: 6,
      rows: ofTrack,
      columns: [
        {
          title: 'Samples',
          expr: seen(),
          unit: 'short',
          decimals: 0,
          steps: ['orange', [100, 'green']],
        },
        { title: 'Errors', expr: errorsSeen(), unit: 'short', decimals: 0 },
        {
          title: 'Error ratio',
          expr: ratio(errorsSeen(), seen()),
          unit: 'percentunit',
          steps: ['green', [0.001, 'yellow'], [0.01, 'red']],
        },
        { title: 'p50', expr: timeOver(0.5), unit: 's' },
        { title: 'p90', expr: timeOver(0.9), unit: 's' },
        { title: 'p99', expr: timeOver(0.99), unit: 's' },
        { title: 'Split', expr: splitShare(), unit: 'percentunit' },
        { title: 'Actual', expr: trackShare(), unit: 'percentunit' },
        {
          title: 'Ready peers',
          expr: min(ofTrack, sum(['namespace', 'instance', 'upstream', 'track'], readiness())),
          unit: 'short',
          steps: ['red', [1, 'green']],
        },
      ],
    }),
    lines({
      title: 'More errors than stable',
      about: `Part of the attempts that failed, those that a retry made good too, less that of \`${baseline}\`, and the bounds between which the difference lies 95 times in 100. While the band includes 0 nothing is proved; above 0 the track is worse. Few samples make it wide.`,
      span: 8,
      unit: 'percentunit',
      dashed: '/ (from|to)$/',
      queries: [
        [errorDifference('is'), `${name} difference`],
        [errorDifference('from'), `${name} from`],
        [errorDifference('to'), `${name} to`],
      ],
      steps: ['transparent', [0.01, 'red']],
    }),
    lines({
      title: 'Slower than stable',
      about: `Quantiles of the time to the last byte, by those of \`${baseline}\`: 1 is as fast, 1.1 is 10 % slower. They are read out of buckets, so look at the verdict for what is sure.`,
      span: 8,
      unit: 'short',
      queries: [
        [latencyRatio(0.5), `${name} p50`],
        [latencyRatio(0.9), `${name} p90`],
        [latencyRatio(0.99), `${name} p99`],
      ],
      steps: ['transparent', [1.1, 'red']],
    }),
    lines({
      title: 'Samples',
      about:
        'Attempts of each track in the window. The line is what the verdict wants as a rule: 100 on either side.',
      span: 8,
      unit: 'short',
      colours: trackSeries,
      queries: [[seen(), name]],
      min: 0,
      steps: ['orange', [100, 'transparent']],
    }),
  ],
}

const split: Row = {
  title: 'The split',
  panels: [
    lines({
      title: 'Sent and had',
      about:
        'Dashed: part of the requests that the split sent to each track. Solid: part that ended there. They part where retries leave a track, or nobody in it is ready.',
      span: 8,
      unit: 'percentunit',
      colours: trackSeries,
      dashed: '/ split$/',
      queries: [
        [trackShare(), name],
        [splitShare(), `${name} split`],
      ],
      min: 0,
      max: 1,
    }),
    lines({
      title: 'Went to stable instead',
      about: 'Requests a second that the split sent to a track in which nobody was ready.',
      span: 8,
      unit: 'reqps',
      colours: trackSeries,
      queries: [[sum(ofTrack, rate(chosen('evenkeel_upstream_split_fallbacks_total'))), name]],
      min: 0,
    }),
    lines({
      title: 'Saved by a retry',
      about:
        'Part of the requests that got a good answer after an attempt had failed. Their clients saw nothing; the track is not well.',
      span: 8,
      unit: 'percentunit',
      colours: trackSeries,
      queries: [
        [ratio(sum(ofTrack, rate(chosen('evenkeel_upstream_rescued_total'))), requests(ofTrack)), name],
      ],
      min: 0,
    }),
  ],
}

const peers: Row = {
  title: 'Peers of the tracks',
  panels: [
    states({
      title: 'State',
      about: 'The worst that any instance sees.',
      span: 8,
      mappings: stateMappings,
      queries: [[stateOf(['upstream', 'track', 'peer']), '{{track}} {{peer}}']],
    }),
    lines({
      title: 'Not plainly well, by track and reason',
      about: 'Attempts a second, retried ones too.',
      span: 8,
      unit: 'ops',
      stacked: true,
      colours: new Map([...endingSeries].map(([reason, colour]) => [`/ ${reason}$/`, colour])),
      queries: [
        [
          sum(['track', 'reason'], rate(chosen('evenkeel_peer_attempt_reasons_total'))),
          '{{track}} {{reason}}',
        ],
      ],
      min: 0,
    }),
    lines({
      title: 'Average to the header',
      about: 'Moving average of each peer.',
      span: 8,
      unit: 's',
      queries: [
        [
          avg(['upstream', 'track', 'peer'], chosen('evenkeel_peer_header_average_seconds')),
          '{{track}} {{peer}}',
        ],
      ],
      min: 0,
    }),
  ],
}

const verdict = `These graphs hint; the **verdict** is computed by the sidecar from samples of single attempts (Mann–Whitney U with the
Hodges–Lehmann shift, and a confidence interval of the error difference):

\`\`\`sh
curl '127.0.0.1:9900/canary/UPSTREAM?baseline=stable&canary=canary&window=10m'
\`\`\`

It says \`pass\`, \`fail\` or \`inconclusive\`, and on what grounds. No traffic is \`inconclusive\`, never a failure. Compare tracks of
equal age and load: a canary of one peer that has just started is slower than old ones for that alone.`

export function canary(): Dashboard {
  return board({
    uid: 'evenkeel-canary',
    title: 'evenkeel / Canary',
    about: 'Is the new track worse than the old one, and have enough requests been seen to say so?',
    choices: ['upstream', 'peer', 'track'],
    more: [
      new CustomVariableBuilder('window')
        .label('Window')
        .description('How far back tracks are compared.')
        .values('5m,10m,30m,1h')
        .current({ selected: true, text: '10m', value: '10m' }),
    ],
    rows: [
      { title: 'Verdict', panels: [note('How to get it', verdict, 24, 6)] },
      clients,
      compared,
      split,
      peers,
    ],
  })
}
