import { groupMetrics } from './metrics-of-groups.ts'
import { peerMetrics } from './metrics-of-peers.ts'
import { programMetrics } from './metrics-of-program.ts'

/** A label of a metric. None is ever controlled by a client. */
export const metricLabels = [
  'upstream',
  'peer',
  'track',
  'reason',
  'code',
  'status',
  'change',
  'resolver',
  'zone',
  'name',
  'type',
] as const
export type MetricLabel = (typeof metricLabels)[number]

/** One metric of `/metrics`, as the page, the docs and the dashboards know it. */
export interface Metric {
  /** With `_total` where it is a counter. */
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly MetricLabel[]
  /** Where its number comes from, in the words of `fields.ts`; for the docs. */
  readonly from: string
}

/** Every metric of our own. Those of the process itself (memory, event loop) come from prom-client beside them. */
export const metricsTable: readonly Metric[] = [...programMetrics, ...groupMetrics, ...peerMetrics]
