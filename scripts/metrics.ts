// Writes what is made from the table of metrics: docs/metrics.md.
import { writeFileSync } from 'node:fs'
import { latencyBucketsMs } from '../feedback/fields.ts'
import { metricsTable } from '../feedback/metrics-table.ts'
import { attemptReasons, denialReasons, exclusionReasons, signalReasons } from '../feedback/reasons.ts'

/** The page as it should be. */
export function metricsPage(): string {
  const rows = metricsTable.map(({ name, type, help, labels }) => {
    const said = labels.map((label) => `\`${label}\``).join(' ')
    return `| \`${name}\` | ${type} | ${said} | ${help.replaceAll('|', '\\|')} |`
  })
  return `# Metrics

Made from \`feedback/metrics-table.ts\` by \`npm run docs\`; a test checks that it is current.

\`/metrics\` on the admin server serves these, in Prometheus' text format or, where it is asked for, in OpenMetrics. Times are in seconds. Buckets of
the histograms end at ${latencyBucketsMs.map((ms) => ms / 1000).join(', ')} s. No label is ever controlled by a client. The series of a peer go when
its last request ends after the configuration has dropped it. Metrics of the process itself (memory, CPU time, event loop, garbage collection) come
under prom-client's names.

| Metric | Type | Labels | Meaning |
|---|---|---|---|
${rows.join('\n')}

\`reason\` is one of a closed list, the same in logs, metrics and the admin API.

- Of an attempt: ${list(attemptReasons)}.
- Of no attempt, or no further one: ${list(denialReasons)}.
- Of an answer that brought no value to take (\`feedback\`): ${list(signalReasons)}.
- Of a peer that gets no requests: ${list(exclusionReasons.filter((reason) => reason !== 'tried'))}.
`
}

function list(words: readonly string[]): string {
  return words.map((word) => `\`${word}\``).join(' ')
}

if (import.meta.main) writeFileSync(new URL('../docs/metrics.md', import.meta.url), metricsPage())
