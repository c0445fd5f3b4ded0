import { Counter, collectDefaultMetrics, Registry } from 'prom-client'
import { type Exposition, labelsText } from './exposition.ts'

let registry: Registry | undefined

/** Begins with the first scrape: who never asks is not to pay for a monitor of the event loop. */
function watchProcess(): Registry {
  if (registry !== undefined) return registry
  registry = new Registry()
  collectDefaultMetrics({ register: registry })
  // The library counts from now on; the counters are the process's.
  const { user, system } = process.cpuUsage()
  for (const [name, micros] of [
    ['process_cpu_user_seconds_total', user],
    ['process_cpu_system_seconds_total', system],
    ['process_cpu_seconds_total', user + system],
  ] as const) {
    const metric = registry.getSingleMetric(name)
    if (metric instanceof Counter) metric.inc(micros / 1e6)
  }
  return registry
}

/** What the event loop's monitor says before it has seen anything, in seconds; what it says of nothing is NaN. */
const unseen = 1e9

/**
 * Tells of the process itself: memory, CPU time, the event loop's lag, garbage collection. One registry serves all
 * admin addresses, since its observers are the process's.
 */
export async function processMetrics(to: Exposition): Promise<void> {
  for (const metric of await watchProcess().getMetricsAsJSON()) {
    // Sums of gauges under names of counters: the gauges themselves are told.
    if (/^nodejs_active_\w+_total$/.test(metric.name)) continue
    // The declared type is an enum of numbers; the value is the word.
    const type = String(metric.type) as 'counter' | 'gauge' | 'histogram' | 'summary'
    const name = type === 'counter' && !metric.name.endsWith('_total') ? `${metric.name}_total` : metric.name
    to.family(name, type, metric.help)
    for (const value of metric.values) {
      if (!(value.value < unseen) && type === 'gauge' && name.includes('eventloop_lag')) continue
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
