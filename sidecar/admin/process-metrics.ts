import { collectDefaultMetrics, Registry } from 'prom-client'
import { type Exposition, labelsText } from './exposition.ts'

let registry: Registry | undefined

/**
 * Tells of the process itself: memory, CPU time, the event loop's lag, garbage collection. One registry serves all
 * admin addresses, since its observers are the process's.
 */
export async function processMetrics(to: Exposition): Promise<void> {
  if (registry === undefined) {
    registry = new Registry()
    collectDefaultMetrics({ register: registry })
  }
  for (const metric of await registry.getMetricsAsJSON()) {
    // The declared type is an enum of numbers; the value is the word.
    const type = String(metric.type) as 'counter' | 'gauge' | 'histogram' | 'summary'
    const name = type === 'counter' && !metric.name.endsWith('_total') ? `${metric.name}_total` : metric.name
    to.family(name, type, metric.help)
    for (const value of metric.values) {
      const labels = Object.fromEntries(
        Object.entries(value.labels).map(([label, text]) => [
          label,
          label === 'le' && typeof text === 'number' ? to.bound(text) : (text ?? ''),
        ]),
      )
      // Samples of a histogram carry their own names.
      const own = 'metricName' in value && typeof value.metricName === 'string' ? value.metricName : name
      to.sample(own, labelsText(labels), value.value)
    }
  }
}
