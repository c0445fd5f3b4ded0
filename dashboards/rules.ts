import { stringify } from 'yaml'
import { alertExpr, anchor, runbooks } from './alert.ts'
import { alerts } from './alerts.ts'
import { recordingRules } from './recording.ts'

const made = 'Made by `npm run dashboards`; a test checks that it is current.'

function yaml(comment: string, content: unknown): string {
  return `# ${comment}\n# ${made}\n${stringify(content, { lineWidth: 0 })}`
}

/** What Prometheus computes ahead. Rules of a group are evaluated in this order, so later ones may use earlier ones. */
export function recordingYaml(): string {
  const rules = recordingRules.map(({ record, expr }) => ({ record, expr: expr.text }))
  return yaml('Recording rules of evenkeel.', { groups: [{ name: 'evenkeel', rules }] })
}

/** What Prometheus watches. They need the recording rules. */
export function alertsYaml(): string {
  const rules = alerts.map((alert) => ({
    alert: alert.name,
    expr: alertExpr(alert).text,
    for: alert.for,
    labels: { severity: alert.severity },
    annotations: {
      summary: alert.summary,
      description: alert.description,
      runbook: `${runbooks}#${anchor(alert)}`,
    },
  }))
  return yaml('Alerts of evenkeel, on its recording rules.', { groups: [{ name: 'evenkeel-alerts', rules }] })
}
