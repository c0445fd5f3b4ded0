import type { Drops } from '../balance/drops.ts'
import type { Tunnels } from './upgrade.ts'

/** What became of a request that was to be passed to a group. */
export type Forwarded =
  /** The client has its answer, or is gone. */
  | { readonly kind: 'done' }
  /** There is none: answer with this status. */
  | {
      readonly kind: 'refused'
      readonly status: number
      /** For the error log, where it is the configuration that has no answer. */
      readonly error?: string | undefined
    }
  /** The peer's answer is one that `error_page` replaces. */
  | { readonly kind: 'intercepted'; readonly status: number }

/** What forwarding needs besides the exchange. */
export interface ForwardEnv {
  readonly tunnels: Tunnels
  readonly drops: Drops
}

export const done: Forwarded = { kind: 'done' }
