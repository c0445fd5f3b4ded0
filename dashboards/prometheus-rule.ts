import { parse, stringify } from 'yaml'
import { alertsYaml, recordingYaml } from './rules.ts'

/** The recording rules and the alerts as one object of the Prometheus operator. */
export function prometheusRuleYaml(): string {
  const groups = [recordingYaml(), alertsYaml()].flatMap((text) => {
    // What has just been made has groups.
    const { groups } = parse(text) as { groups: readonly unknown[] }
    return groups
  })
  const labels = { release: 'prometheus' }
  const rule = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'evenkeel', namespace: 'shop', labels },
    spec: { groups },
  }
  const comment = [
    'For the Prometheus operator: ../rules/recording.yaml and ../rules/alerts.yaml as one object.',
    'Made by `npm run dashboards`; a test checks that it is current.',
  ]
  return `${comment.map((line) => `# ${line}\n`).join('')}${stringify(rule, { lineWidth: 0 })}`
}
