import { alertExpr } from '../../dashboards/alert.ts'
import { alerts } from '../../dashboards/alerts.ts'
import { dashboards } from '../../dashboards/build.ts'
import { recordingRules } from '../../dashboards/recording.ts'

/** A query of a panel, as Grafana would send it once its variables are filled in. */
export interface PanelQuery {
  readonly dashboard: string
  readonly panel: string
  readonly expr: string
  readonly legend: string
  /** Asked for one moment, as tables do. */
  readonly instant: boolean
  readonly exemplar: boolean
}

/** The queries of all panels of all dashboards. */
export function panelQueries(): PanelQuery[] {
  const found: PanelQuery[] = []
  for (const [dashboard, make] of dashboards) {
    for (const panel of make().panels ?? []) {
      if (!('targets' in panel)) continue
      // All queries are Prometheus'.
      const targets = (panel.targets ?? []) as unknown as readonly {
        expr: string
        legendFormat?: string
        instant?: boolean
        exemplar?: boolean
      }[]
      for (const { expr, legendFormat = '', instant = false, exemplar = false } of targets) {
        found.push({ dashboard, panel: panel.title ?? '', expr, legend: legendFormat, instant, exemplar })
      }
    }
  }
  return found
}

/** Where the values of variables come from, and what marks the graphs: each with the name that says where it is. */
export function otherQueries(): [where: string, expr: string][] {
  const found: [string, string][] = []
  for (const [dashboard, make] of dashboards) {
    const { templating, annotations } = make()
    for (const { name, query } of templating.list ?? []) {
      const text = typeof query === 'object' ? String(query['query']) : ''
      const [, expr] = /^label_values\((.*), \w+\)$/.exec(text) ?? []
      if (expr !== undefined) found.push([`${dashboard}: variable ${name}`, expr])
    }
    for (const { name, expr } of annotations.list ?? []) {
      if (expr !== undefined) found.push([`${dashboard}: mark ${name}`, expr])
    }
  }
  return found
}

/** Every expression that there is, with where it stands. */
export function allExpressions(): [where: string, expr: string][] {
  return [
    ...panelQueries().map(({ dashboard, panel, expr }): [string, string] => [`${dashboard}: ${panel}`, expr]),
    ...otherQueries(),
    ...recordingRules.map(({ record, expr }): [string, string] => [record, expr.text]),
    ...alerts.map((alert): [string, string] => [alert.name, alertExpr(alert).text]),
  ]
}

/** What a reader sees who chose all of everything. */
const everything: Readonly<Record<string, string>> = {
  namespace: '.*',
  instance: '.*',
  upstream: '.*',
  peer: '.*',
  track: '.*',
  window: '15s',
  __rate_interval: '5s',
  __range: '20s',
}

/** Fills in the variables of a dashboard. @param chosen in the place of all */
export function filledIn(expr: string, chosen: Readonly<Record<string, string>> = {}): string {
  const values = { ...everything, ...chosen }
  return expr.replaceAll(/\$(\w+)/g, (_, name: string) => {
    const value = values[name]
    if (value === undefined) throw new Error(`no value for the variable ${name}`)
    return value
  })
}
