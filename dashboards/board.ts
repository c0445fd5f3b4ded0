import type { Builder } from '@grafana/grafana-foundation-sdk/cog'
import {
  AnnotationQueryBuilder,
  type Dashboard,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  type Panel,
  QueryVariableBuilder,
  RowBuilder,
  type VariableModel,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard'
import { prometheus } from './panels.ts'
import { between, type Expr, increase, type Label, scaled, series, sum, where } from './promql.ts'
import { type Choice, chosen } from './scope.ts'

/** A panel, in place. */
export interface Placed extends Builder<Panel> {
  id(number: number): this
}

/** Panels under a title, from left to right; each line of them fills the 24 columns. */
export interface Row {
  readonly title: string
  readonly panels: readonly Placed[]
}

export interface BoardOptions {
  /** Never changes: links and bookmarks hang on it. */
  readonly uid: string
  readonly title: string
  /** What question it answers. */
  readonly about: string
  /** What can be chosen beside data source, namespace and instance. */
  readonly choices: readonly ('upstream' | 'peer' | 'track')[]
  /** Variables of its own. */
  readonly more?: readonly Builder<VariableModel>[]
  readonly rows: readonly Row[]
}

/** Ties the dashboards together: the links between them are found by it. */
const tag = 'evenkeel'

/** A dashboard with what all of them have: variables, links to the others, and marks where a configuration was loaded. */
export function board({ uid, title, about, choices, more = [], rows }: BoardOptions): Dashboard {
  const builder = new DashboardBuilder(title)
    .uid(uid)
    .description(about)
    .tags([tag])
    .version(1)
    .editable()
    .refresh('10s')
    .time({ from: 'now-30m', to: 'now' })
    .timezone('browser')
    .tooltip(DashboardCursorSync.Crosshair)
    .link(links())
    .annotation(reloads())
    .annotation(ejections())
    .variables([
      source('datasource', 'Data source', 'prometheus', 'Where the metrics are.'),
      source('traces', 'Traces', 'tempo', 'Where the traces are; may be left empty.'),
      values('namespace', series('evenkeel_ready'), 'Label that the scrape gives; All where it gives none.'),
      values('instance', chosen('evenkeel_ready', {}, ['instance']), 'One process each.'),
      ...choices.map((name) => variables[name]),
      ...more,
    ])
  let id = 0
  for (const { title: name, panels } of rows) {
    builder.withRow(new RowBuilder(name).id(++id))
    let columns = 0
    for (const panel of panels) {
      const { gridPos } = panel.id(++id).build()
      columns = (columns % 24) + (gridPos?.w ?? 0)
      if (columns > 24) throw new Error(`${title}, ${name}: a line of panels is wider than 24 columns`)
      builder.withPanel(panel)
    }
    if (columns !== 24) throw new Error(`${title}, ${name}: a line of panels ends at column ${columns}`)
  }
  const made = builder.build()
  checkVariables(made)
  return made
}

/** A variable that the dashboard does not have would be sent to Prometheus as it stands, and find nothing. */
function checkVariables({ title, ...rest }: Dashboard): void {
  const { list = [] } = rest.templating
  const own = new Set(list.map(({ name }) => name))
  for (const [, plain, braced] of JSON.stringify(rest).matchAll(/\$(?:([a-z_]\w*)|\{(\w+)[^}]*\})/gi)) {
    const name = plain ?? braced ?? ''
    if (!own.has(name) && !name.startsWith('__')) throw new Error(`${title}: there is no variable ${name}`)
  }
}

const variables = {
  upstream: values(
    'upstream',
    chosen('evenkeel_upstream_requests_total', {}, ['upstream']),
    'Groups of peers.',
  ),
  peer: values(
    'peer',
    chosen('evenkeel_peer_attempts_total', {}, ['peer', 'track']),
    'Addresses of servers.',
  ),
  track: values('track', chosen('evenkeel_peer_attempts_total', {}, ['peer', 'track']), 'As `track=` says.'),
} as const

function source(name: string, label: string, type: string, about: string): Builder<VariableModel> {
  return new DatasourceVariableBuilder(name).label(label).description(about).type(type)
}

/** All values of a label of the series: several may be chosen, and All is chosen at first. */
function values(name: Choice, of: Expr, about: string): Builder<VariableModel> {
  return (
    new QueryVariableBuilder(name)
      .label(name[0]!.toUpperCase() + name.slice(1))
      .description(about)
      .datasource(prometheus)
      .query({ query: valuesQuery(name, of), refId: 'StandardVariableQuery' })
      .refresh(VariableRefresh.OnTimeRangeChanged)
      .sort(VariableSort.NaturalAsc)
      .multi(true)
      .includeAll(true)
      // Also where the label is missing.
      .allValue('.*')
      .current({ selected: true, text: ['All'], value: ['$__all'] })
  )
}

function valuesQuery(label: Label, of: Expr): string {
  if (!of.labels.has(label)) throw new Error(`no label ${label} in ${of.text}`)
  return `label_values(${of.text}, ${label})`
}

function links(): DashboardLinkBuilder {
  return new DashboardLinkBuilder('evenkeel')
    .type(DashboardLinkType.Dashboards)
    .tags([tag])
    .includeVars(true)
    .keepTime(true)
}

interface Mark {
  readonly name: string
  readonly colour: string
  readonly expr: Expr
  readonly title: string
  readonly text: string
  /** The value is the moment, in milliseconds. */
  readonly valueIsTime?: boolean
}

function mark({ name, colour, expr, title, text, valueIsTime = false }: Mark) {
  const query = new AnnotationQueryBuilder()
    .name(name)
    .datasource(prometheus)
    .enable(true)
    .iconColor(colour)
    .expr(expr.text)
  return {
    // Grafana's Prometheus source knows more than the kit's type does.
    build: () => ({
      ...query.build(),
      titleFormat: title,
      textFormat: text,
      useValueForTime: valueIsTime,
      step: '10s',
    }),
  }
}

/** The moments at which configurations were loaded are values of a gauge, in seconds. */
function reloads() {
  return mark({
    name: 'Configuration loaded',
    colour: 'blue',
    expr: scaled(chosen('evenkeel_config_loaded_timestamp_seconds'), '*', 1000),
    title: 'Configuration loaded',
    text: '{{instance}}',
    valueIsTime: true,
  })
}

/** The minutes in which peers were set aside, by failures of requests or by probes. */
function ejections() {
  const by = ['upstream', 'peer'] as const
  const grown = (name: string) => sum(by, increase(chosen(name, {}, ['peer', 'track']), '1m'))
  const times = between(grown('evenkeel_peer_unavailable_total'), '+', grown('evenkeel_peer_unhealthy_total'))
  return mark({
    name: 'Peer set aside',
    colour: 'orange',
    expr: where(times, '> 0'),
    title: 'Set aside',
    text: '{{upstream}} {{peer}}',
  })
}
