// Writes what Grafana and Prometheus read: `npm run dashboards`. A test checks that it is current.
import { mkdirSync, writeFileSync } from 'node:fs'
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard'
import { overview } from './overview.ts'

/** All dashboards, by the name of their file. */
export const dashboards: ReadonlyMap<string, () => Dashboard> = new Map([['overview', overview]])

/** Files under dashboards/ and what they should hold. */
export function built(): ReadonlyMap<string, string> {
  const files = new Map<string, string>()
  for (const [name, make] of dashboards) {
    files.set(`grafana/${name}.json`, `${JSON.stringify(make(), undefined, 2)}\n`)
  }
  return files
}

if (import.meta.main) {
  for (const [name, text] of built()) {
    const file = new URL(name, import.meta.url)
    mkdirSync(new URL('.', file), { recursive: true })
    writeFileSync(file, text)
  }
}
