// Writes what Grafana and Prometheus read: `npm run dashboards`. A test checks that it is current.
import { mkdirSync, writeFileSync } from 'node:fs'
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard'
import { attemptsBoard } from './attempts.ts'
import { canary } from './canary.ts'
import { overview } from './overview.ts'
import { probesBoard } from './probes.ts'
import { prometheusRuleYaml } from './prometheus-rule.ts'
import { alertsYaml, recordingYaml } from './rules.ts'
import { upstream } from './upstream.ts'
import { whySlow } from './why-slow.ts'

/** All dashboards, by the name of their file. */
export const dashboards: ReadonlyMap<string, () => Dashboard> = new Map([
  ['overview', overview],
  ['upstream', upstream],
  ['attempts', attemptsBoard],
  ['probes', probesBoard],
  ['canary', canary],
  ['why-slow', whySlow],
])

/** Files under dashboards/ and what they should hold. */
export function built(): ReadonlyMap<string, string> {
  const files = new Map<string, string>()
  for (const [name, make] of dashboards) {
    files.set(`grafana/${name}.json`, `${JSON.stringify(make(), undefined, 2)}\n`)
  }
  files.set('rules/recording.yaml', recordingYaml())
  files.set('rules/alerts.yaml', alertsYaml())
  files.set('kubernetes/prometheus-rule.yaml', prometheusRuleYaml())
  return files
}

if (import.meta.main) {
  for (const [name, text] of built()) {
    const file = new URL(name, import.meta.url)
    mkdirSync(new URL('.', file), { recursive: true })
    writeFileSync(file, text)
  }
}
