import { type Expr, type Label, labelsOf, type Matchers, series } from './promql.ts'

/** What a reader can choose on a dashboard, beside the data source. */
const choices = ['namespace', 'instance', 'upstream', 'peer', 'track'] as const
export type Choice = (typeof choices)[number]

/**
 * The series of a metric that the reader has chosen.
 * @param whole labels of which all values are wanted, whatever was chosen: where a peer is compared with its whole group
 */
export function chosen(name: string, matchers: Matchers = {}, whole: readonly Choice[] = []): Expr {
  const labels = labelsOf(name)
  const own = choices.filter((choice) => labels.includes(choice) && !whole.includes(choice))
  const scope: Partial<Record<Label, string>> = Object.fromEntries(
    own.map((choice) => [choice, `$${choice}`]),
  )
  return series(name, { ...scope, ...matchers })
}
