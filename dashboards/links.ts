import type { Builder } from '@grafana/grafana-foundation-sdk/cog'
import { type DashboardLink, DashboardLinkBuilder } from '@grafana/grafana-foundation-sdk/dashboard'

/** What Grafana fills in: the value of a variable or of a field. */
export function filled(name: string): string {
  return `$\{${name}}`
}

/** Looks for traces of a series' upstream in the source of traces that the reader has chosen. */
export function traceLink(): Builder<DashboardLink> {
  const upstream = filled('__field.labels.upstream')
  const query = `{ resource.service.name = "evenkeel" && span.evenkeel.upstream = "${upstream}" }`
  const pane = {
    datasource: filled('traces'),
    queries: [{ refId: 'A', queryType: 'traceql', query }],
    range: { from: filled('__from'), to: filled('__to') },
  }
  const panes = encodeURIComponent(JSON.stringify({ traces: pane }))
  return new DashboardLinkBuilder(`Traces of ${upstream}`)
    .url(`/explore?schemaVersion=1&panes=${unescaped(panes)}`)
    .targetBlank(true)
}

/** What is to be filled in is found by its braces, so they stay as they are. */
function unescaped(encoded: string): string {
  return encoded.replaceAll(/%24%7B(\w+(?:\.\w+)*)%7D/g, (_, name: string) => filled(name))
}

/**
 * Leads from a row of a table to another dashboard, about what the row is of; what else was chosen stays.
 * @param uid of the dashboard
 * @param label the variable that the row's text is a value of
 */
export function rowLink(uid: string, label: string): { readonly title: string; readonly url: string } {
  const kept = ['datasource', 'traces', 'namespace', 'instance'].map((name) => filled(`${name}:queryparam`))
  const text = filled('__value.text')
  return {
    title: `Open ${text}`,
    url: `/d/${uid}?var-${label}=${text}&${[...kept, filled('__url_time_range')].join('&')}`,
  }
}
