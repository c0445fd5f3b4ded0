/** The kinds of failure that `proxy_next_upstream` may list. */
export const retryKinds = [
  'error',
  'timeout',
  'invalid_header',
  'http_500',
  'http_502',
  'http_503',
  'http_504',
  'http_403',
  'http_404',
  'http_429',
] as const

export type RetryKind = (typeof retryKinds)[number]

/** What a location says of the group's retry budget. The counters are the group's, the limits each location's. */
export interface RetryBudget {
  /** Share of the group's requests within the window that may be retries, 0 to 1. */
  readonly ratio: number
  /** Retries a second that are allowed on top of that. */
  readonly min: number
  /** How far to look back, milliseconds. */
  readonly window: number
}

/** What `proxy_next_upstream` and its kin say, in numbers. */
export interface RetryPolicy {
  /** Kinds of failure (`retryKinds`) that may go on to another peer; empty for `off`. */
  readonly on: ReadonlySet<string>
  readonly nonIdempotent: boolean
  /** Most attempts; 0 is unlimited. */
  readonly tries: number
  /** No further attempt once this many milliseconds have passed since the first began; 0 is unlimited. */
  readonly timeout: number
  /** Undefined when `off`. */
  readonly budget: RetryBudget | undefined
  /** Undefined when `off`; milliseconds. */
  readonly backoff: { readonly base: number; readonly max: number } | undefined
}
