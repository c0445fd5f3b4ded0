import type { Settings } from './model.ts'

/** `set`, `if`, `rewrite`, `return` and `break` in the order written. */
export type RewriteStep =
  | { readonly set: { readonly variable: string; readonly value: string } }
  | { readonly rewrite: Rewrite }
  | { readonly return: Return }
  | { readonly break: true }
  | IfBlock

export interface Rewrite {
  readonly regex: string
  /** May have variables and captures. */
  readonly replacement: string
  readonly flag?: 'last' | 'break' | 'redirect' | 'permanent'
}

export interface Return {
  /** 0 to 999. */
  readonly code: number
  /** Body, or the URL for 301, 302, 303, 307 and 308. May have variables. */
  readonly text?: string
}

/** Settings that stand inside of an `if`; all others are the surrounding level's. */
export interface IfBlock extends Pick<Settings, 'add_header' | 'error_page' | 'access_log'> {
  readonly if: Condition
  readonly rewrites?: readonly Exclude<RewriteStep, IfBlock>[]
  readonly proxy_pass?: string
  readonly grpc_pass?: string
}

export const conditionOperators = ['=', '!=', '~', '~*', '!~', '!~*'] as const

export interface Condition {
  /** With its `$`. */
  readonly variable: string
  /** Absent: true when the variable is neither empty nor `0`. */
  readonly operator?: (typeof conditionOperators)[number]
  /** Text or regular expression to compare with; stands together with `operator`. */
  readonly value?: string
}
