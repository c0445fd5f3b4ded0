import { also, type Expr, type Label, where } from './promql.ts'

type Comparison = Parameters<typeof where>[1]

/** When somebody should look, and what to tell them. */
export interface Alert {
  /** Also the heading in docs/runbooks.md. */
  readonly name: string
  /** What is compared: there, whatever it says, wherever the alert could ever be raised. */
  readonly value: Expr
  /** What must hold of it: a comparison with a number or, for one with other series, the whole expression. */
  readonly when: Comparison | Expr
  /** What must hold as well, each with the labels by which it belongs to the value. */
  readonly and?: readonly (readonly [on: readonly Label[], Expr])[]
  /** How long it must hold. */
  readonly for: string
  /** `critical`: clients notice; `warning`: they will, or something is not as it was meant. */
  readonly severity: 'critical' | 'warning'
  readonly summary: string
  readonly description: string
}

/** The page that says of each alert what it means, how to check and what to do. */
export const runbooks = 'docs/runbooks.md'

/** Where in the page an alert's section is. */
export function anchor({ name }: Pick<Alert, 'name'>): string {
  return name.toLowerCase()
}

export function alertExpr({ value, when, and = [] }: Alert): Expr {
  const held = typeof when === 'string' ? where(value, when) : when
  return and.reduce((sofar, [on, condition]) => also(sofar, on, condition), held)
}
