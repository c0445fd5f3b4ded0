import type { Cluster, Redis } from 'ioredis'
import type { Upstream } from '../upstream.ts'
import type { GroupKeys } from './keys.ts'
import type { Script } from './script.ts'

/**
 * Where instances leave notes for each other about probes: records in the state of a group whose field begins with
 * `r`. Whoever writes one enters it in `changed` under the same name, with the version that the script counted; every
 * exchange then brings it to all.
 */
export interface Board {
  /** This instance's id among all. */
  readonly id: string
  /** Whether Redis answers. */
  readonly up: boolean
  /** For how long an unused key is kept, milliseconds: ARGV[1] of every script. */
  readonly keep: number
  /** Names the app, and what every key begins with. */
  readonly group: string
  readonly prefix: string
  /** Tells of each change of `up`. @returns stops that */
  onChange(hear: (up: boolean) => void): () => void
  /** Hands over records that others, or this instance, have written since the last exchange. @returns stops that */
  onRecords(hear: (upstream: Upstream, records: ReadonlyMap<string, Buffer>) => void): () => void
  /** @returns undefined where the group is not shared */
  keys(upstream: Upstream): GroupKeys | undefined
  /** Runs a script. Rejects at once while Redis does not answer, and after the fleet's time-out at the latest. */
  run(script: Script, keys: readonly string[], args: readonly (string | number | Buffer)[]): Promise<unknown>
  /** A further connection of the same kind, not yet open, to be closed by whoever asked for it. */
  connect(): Redis | Cluster
}
