import {
  TableCellBackgroundDisplayMode,
  TableCellDisplayMode,
  TableSortByFieldStateBuilder,
} from '@grafana/grafana-foundation-sdk/common'
import {
  type DynamicConfigValue,
  ThresholdsMode,
  type ValueMapping,
} from '@grafana/grafana-foundation-sdk/dashboard'
import { PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus'
import { PanelBuilder as TableBuilder } from '@grafana/grafana-foundation-sdk/table'
import { rowLink } from './links.ts'
import { framed, named, type Said, type Steps, target } from './panels.ts'
import type { Expr, Label } from './promql.ts'

/** A column of numbers. */
export interface Column {
  readonly title: string
  readonly expr: Expr
  readonly unit: string
  readonly decimals?: number
  /** The cell has the colour of its value. */
  readonly steps?: Steps
  readonly mappings?: readonly ValueMapping[]
}

export interface TableOptions extends Said {
  /** What a row is of: the labels that the series of all columns have. */
  readonly rows: readonly Label[]
  readonly columns: readonly Column[]
  /** Title of the column by which rows are sorted, greatest first. */
  readonly sort?: string
  /** A click on the first label leads to this dashboard, about that row. */
  readonly leadsTo?: string
}

/** What is known of each, side by side, now. */
export function table(options: TableOptions): TableBuilder {
  const { rows, columns, sort, leadsTo } = options
  const titles = new Map<string, string>()
  const panel = framed(new TableBuilder(), options)
  for (const [i, { title, expr }] of columns.entries()) {
    if (expr.labels.size !== rows.length || rows.some((label) => !expr.labels.has(label))) {
      throw new Error(`column "${title}" is not one value a row: ${expr.text}`)
    }
    const query = target(i).expr(expr.text).instant().format(PromQueryFormat.Table)
    panel.withTarget(query)
    titles.set(columns.length > 1 ? `Value #${String.fromCharCode(65 + i)}` : 'Value', title)
  }
  panel
    .withTransformation({ id: 'merge', options: {} })
    .withTransformation({
      id: 'organize',
      options: {
        excludeByName: { Time: true },
        indexByName: Object.fromEntries([...rows, ...titles.keys()].map((name, i) => [name, i])),
        renameByName: Object.fromEntries(titles),
      },
    })
    .filterable(true)
  for (const column of columns) {
    panel.withOverride({ matcher: named(column.title), properties: properties(column) })
  }
  if (sort !== undefined) panel.sortBy([new TableSortByFieldStateBuilder().displayName(sort).desc(true)])
  const [first] = rows
  if (leadsTo !== undefined && first !== undefined) {
    panel.withOverride({
      matcher: named(first),
      properties: [{ id: 'links', value: [rowLink(leadsTo, first)] }],
    })
  }
  return panel
}

function properties({ unit, decimals, steps, mappings }: Column): DynamicConfigValue[] {
  const found: DynamicConfigValue[] = [{ id: 'unit', value: unit }]
  if (decimals !== undefined) found.push({ id: 'decimals', value: decimals })
  if (mappings !== undefined) found.push({ id: 'mappings', value: mappings })
  if (steps !== undefined || mappings !== undefined) {
    const type = TableCellDisplayMode.ColorBackground
    found.push({ id: 'custom.cellOptions', value: { type, mode: TableCellBackgroundDisplayMode.Basic } })
  }
  if (steps !== undefined) {
    const [first, ...more] = steps
    const list = [{ value: null, color: first }, ...more.map(([value, color]) => ({ value, color }))]
    found.push({ id: 'thresholds', value: { mode: ThresholdsMode.Absolute, steps: list } })
    found.push({ id: 'color', value: { mode: 'thresholds' } })
  }
  return found
}

/** How often each word of a label was counted for each row; the words are the columns. */
export interface MatrixOptions extends Said {
  readonly expr: Expr
  readonly row: Label
  readonly column: Label
  readonly unit: string
}

export function matrix(options: MatrixOptions): TableBuilder {
  const { expr, row, column, unit } = options
  for (const label of [row, column]) {
    if (!expr.labels.has(label)) throw new Error(`no label ${label} in ${expr.text}`)
  }
  return framed(new TableBuilder(), options)
    .unit(unit)
    .decimals(0)
    .withTarget(target(0).expr(expr.text).instant().format(PromQueryFormat.Table))
    .withTransformation({
      id: 'groupingToMatrix',
      options: { rowField: row, columnField: column, valueField: 'Value', emptyValue: 'zero' },
    })
}
