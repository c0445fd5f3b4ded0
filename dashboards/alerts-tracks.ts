import type { Alert } from './alert.ts'
import { against, apply, between, type Expr, recorded, scaled, sum, where } from './promql.ts'
import { trackErrors, trackRate, trackTime, trackVariance } from './recording.ts'

const group = ['namespace', 'upstream'] as const
const track = [...group, 'track'] as const

const stable = { track: 'stable' }
const onTrial = { track: { not: 'stable' } }
/** What is recorded of the tracks on trial, and of the one that they are compared with. */
const trial = (of: Expr) => recorded(of.text, track, onTrial)
const base = (of: Expr) => sum(group, recorded(of.text, track, stable))
/** A hundred attempts in ten minutes on either side. */
const enough = [
  [track, where(trial(trackRate), '> 0.17')],
  [group, where(base(trackRate), '> 0.17')],
] as const

const moreErrors = against(trial(trackErrors), '-', base(trackErrors))
/** By which the difference may be off, 95 times in 100. */
const chance = scaled(apply('sqrt', against(trial(trackVariance), '+', base(trackVariance))), '*', 1.96)

/** Of a track against `stable`. */
export const trackAlerts: readonly Alert[] = [
  {
    name: 'EvenkeelCanaryErrors',
    value: moreErrors,
    when: '> 0.01',
    and: [[track, where(between(moreErrors, '-', chance), '> 0')], ...enough],
    for: '5m',
    severity: 'warning',
    summary: 'Track {{ $labels.track }} of {{ $labels.upstream }} fails more often than stable',
    description:
      'Of its attempts of the last 10 minutes {{ $value | humanizePercentage }} more have failed than of those of stable, which is more than chance explains.',
  },
  {
    name: 'EvenkeelCanarySlower',
    value: against(trial(trackTime), '/', where(base(trackTime), '> 0')),
    when: '> 1.25',
    and: enough,
    for: '15m',
    severity: 'warning',
    summary: 'Track {{ $labels.track }} of {{ $labels.upstream }} is slower than stable',
    description: 'Its p90 of the last 10 minutes is {{ $value | humanize }} times that of stable.',
  },
]
