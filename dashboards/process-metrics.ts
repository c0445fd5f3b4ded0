/** A series that is not of the table: of the process, or of Prometheus itself. */
export interface ForeignMetric {
  readonly type: 'counter' | 'gauge'
  /** What it says where that is easily misread. */
  readonly note: string
}

/**
 * Metrics that dashboards and alerts use beside those of the table. The first ones come from prom-client, on the same
 * page; a test looks for each of them there. The last is Prometheus' own word on a scrape.
 */
export const foreignMetrics: ReadonlyMap<string, ForeignMetric> = new Map(
  Object.entries({
    nodejs_eventloop_lag_p99_seconds: { type: 'gauge', note: 'of the main thread, since the last scrape' },
    nodejs_heap_size_used_bytes: { type: 'gauge', note: 'of the main thread' },
    process_resident_memory_bytes: { type: 'gauge', note: 'of all threads' },
    process_cpu_seconds_total: { type: 'counter', note: 'of all threads' },
    up: { type: 'gauge', note: '1 where the last scrape succeeded' },
  } as const satisfies Record<string, ForeignMetric>),
)
