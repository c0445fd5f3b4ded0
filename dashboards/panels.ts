import type { Builder, Dataquery } from '@grafana/grafana-foundation-sdk/cog'
import {
  BigValueColorMode,
  BigValueGraphMode,
  GraphDrawStyle,
  GraphThresholdsStyleConfigBuilder,
  GraphThresholdsStyleMode,
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  SortOrder,
  StackingConfigBuilder,
  StackingMode,
  TooltipDisplayMode,
  VisibilityMode,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common'
import {
  type DataSourceRef,
  type DynamicConfigValue,
  FieldColorBuilder,
  FieldColorModeId,
  MappingType,
  type MatcherConfig,
  type Panel,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type ValueMapping,
} from '@grafana/grafana-foundation-sdk/dashboard'
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus'
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat'
import { PanelBuilder as StatesBuilder } from '@grafana/grafana-foundation-sdk/statetimeline'
import { PanelBuilder as TextBuilder, TextMode } from '@grafana/grafana-foundation-sdk/text'
import { PanelBuilder as LinesBuilder } from '@grafana/grafana-foundation-sdk/timeseries'
import { peerStates, readyState, type SeriesColours } from './colours.ts'
import { filled, traceLink } from './links.ts'
import { type Expr, legendOf } from './promql.ts'

/** Whatever Prometheus the reader has chosen. */
export const prometheus: DataSourceRef = { type: 'prometheus', uid: filled('datasource') }

/** Limits from which on a value has a colour; the first colour is that of anything below them. */
export type Steps = readonly [string, ...(readonly [number, string])[]]

/** A query, and what its series are called: `{{upstream}}`. */
export type Query = readonly [expr: Expr, legend: string]

/** What all panels say of themselves. */
export interface Said {
  readonly title: string
  /** How to read it. */
  readonly about: string
  /** Of 24 columns. */
  readonly span: number
  /** In rows of the grid. */
  readonly height?: number
}

export interface LinesOptions extends Said {
  readonly unit: string
  readonly queries: readonly Query[]
  readonly stacked?: boolean
  readonly bars?: boolean
  readonly colours?: SeriesColours
  /** Series whose names match are drawn with dashes: what is meant, beside what is. */
  readonly dashed?: string
  readonly min?: number
  readonly max?: number
  readonly steps?: Steps
  /** Points that lead to traces, where Prometheus keeps them; and a link that looks for traces of the series. */
  readonly exemplars?: boolean
}

/** Numbers over time. */
export function lines(options: LinesOptions): LinesBuilder {
  const { stacked = false, bars = false, colours, dashed, steps, exemplars = false } = options
  const panel = framed(new LinesBuilder(), options)
    .unit(options.unit)
    .targets(targets(options.queries, exemplars))
    .drawStyle(bars ? GraphDrawStyle.Bars : GraphDrawStyle.Line)
    .fillOpacity(stacked || bars ? 60 : 5)
    .lineWidth(1)
    .showPoints(VisibilityMode.Auto)
    .legend(
      new VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.Table)
        .placement(LegendPlacement.Bottom)
        .showLegend(true)
        .calcs(['mean', 'max']),
    )
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending))
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.PaletteClassicByName))
  if (options.min !== undefined) panel.min(options.min)
  if (options.max !== undefined) panel.max(options.max)
  // A bar counts what happened within it, and the next one what did after.
  if (bars) panel.interval('1m')
  if (stacked) panel.stacking(new StackingConfigBuilder().mode(StackingMode.Normal).group('A'))
  if (steps !== undefined) {
    panel.thresholds(thresholds(steps))
    panel.thresholdsStyle(new GraphThresholdsStyleConfigBuilder().mode(GraphThresholdsStyleMode.Dashed))
  }
  for (const [name, colour] of colours ?? []) {
    panel.withOverride({ matcher: named(name), properties: [fixed(colour)] })
  }
  if (dashed !== undefined) {
    panel.withOverride({
      matcher: named(dashed),
      properties: [
        { id: 'custom.lineStyle', value: { fill: 'dash', dash: [8, 8] } },
        { id: 'custom.fillOpacity', value: 0 },
      ],
    })
  }
  if (exemplars) panel.dataLinks([traceLink()])
  return panel
}

export interface StatOptions extends Said {
  readonly unit: string
  readonly queries: readonly Query[]
  readonly steps: Steps
  readonly decimals?: number
  readonly mappings?: readonly ValueMapping[]
}

/** One number now. */
export function stat(options: StatOptions): StatBuilder {
  const panel = framed(new StatBuilder(), options)
    .unit(options.unit)
    .targets(targets(options.queries, false))
    .thresholds(thresholds(options.steps))
    .colorMode(BigValueColorMode.Value)
    .graphMode(BigValueGraphMode.Area)
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']))
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.Thresholds))
  if (options.decimals !== undefined) panel.decimals(options.decimals)
  if (options.mappings !== undefined) panel.mappings([...options.mappings])
  return panel
}

export interface StatesOptions extends Said {
  readonly queries: readonly Query[]
  readonly mappings: readonly ValueMapping[]
}

/** What each was, over time. */
export function states(options: StatesOptions): StatesBuilder {
  return framed(new StatesBuilder(), options)
    .targets(targets(options.queries, false))
    .mappings([...options.mappings])
    .mergeValues(true)
    .showValue(VisibilityMode.Never)
    .rowHeight(0.8)
    .fillOpacity(80)
    .legend(
      new VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .showLegend(true)
        .calcs([]),
    )
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.Thresholds))
}

/** Words for readers. @param text Markdown */
export function note(title: string, text: string, span: number, height: number): TextBuilder {
  return new TextBuilder().title(title).span(span).height(height).mode(TextMode.Markdown).content(text)
}

/** The states of a peer by the numbers that `stateOf` gives. */
export const stateMappings: readonly ValueMapping[] = [
  mapped([readyState, ...Object.values(peerStates)].map(({ value, text, colour }) => [value, text, colour])),
]

/** 1 is well, 0 is not. */
export function yesNo(yes: string, no: string): readonly ValueMapping[] {
  return [
    mapped([
      [1, yes, 'green'],
      [0, no, 'red'],
    ]),
  ]
}

function mapped(values: readonly (readonly [value: number, text: string, colour: string])[]): ValueMapping {
  return {
    type: MappingType.ValueToText,
    options: Object.fromEntries(
      values.map(([value, text, color], index) => [String(value), { text, color, index }]),
    ),
  }
}

/** What every kind of panel of the kit can be told. */
interface Framed extends Builder<Panel> {
  title(title: string): this
  description(text: string): this
  datasource(ref: DataSourceRef): this
  span(columns: number): this
  height(rows: number): this
}

/** Title, reading help, place and source. */
export function framed<P extends Framed>(panel: P, { title, about, span, height = 8 }: Said): P {
  return panel.title(title).description(about).datasource(prometheus).span(span).height(height)
}

function targets(queries: readonly Query[], exemplars: boolean): Builder<Dataquery>[] {
  return queries.map(([expr, legend], i) =>
    target(i)
      .expr(expr.text)
      .range()
      .exemplar(exemplars)
      .format(PromQueryFormat.TimeSeries)
      .legendFormat(legendOf(legend, expr)),
  )
}

/** A query with the letter that is its name in the panel. */
export function target(index: number): DataqueryBuilder {
  if (index > 25) throw new Error('a panel has at most 26 queries')
  return new DataqueryBuilder().refId(String.fromCharCode(65 + index)).datasource(prometheus)
}

function thresholds([first, ...more]: Steps): ThresholdsConfigBuilder {
  return new ThresholdsConfigBuilder()
    .mode(ThresholdsMode.Absolute)
    .steps([{ value: null, color: first }, ...more.map(([value, color]) => ({ value, color }))])
}

/** Fields by their name, or by a regular expression between slashes. */
export function named(name: string): MatcherConfig {
  return name.startsWith('/') ? { id: 'byRegexp', options: name } : { id: 'byName', options: name }
}

export function fixed(colour: string): DynamicConfigValue {
  return { id: 'color', value: { mode: 'fixed', fixedColor: colour } }
}
