import type { MessagePort } from 'node:worker_threads'
import type { RecentBatch } from '../feedback/feed.ts'
import type { SharedTally } from '../feedback/tally.ts'
import type { NameServers } from './build/name-servers.ts'
import type { Plan } from './build/plans.ts'
import type { SharedMemory } from './build/shared-memory.ts'
import type { Model } from './config/model.ts'
import type { ErrorLogSpec } from './telemetry/error-log.ts'
import type { SharedTls } from './tls/store.ts'

/** A configuration as the thread that has read it hands it to those that serve; plain data. */
export interface Setup {
  readonly model: Model
  /** Folder that relative paths start from. */
  readonly prefix: string
  readonly plans: readonly Plan[]
  readonly memory: SharedMemory
  readonly errorLogs: readonly ErrorLogSpec[]
  /** Ports that were taken for addresses with port 0, by the listener's key. */
  readonly ports: ReadonlyMap<string, number>
  readonly tls: SharedTls
  readonly nameServers: NameServers
  readonly generation: number
  /** Wall clock milliseconds. */
  readonly loadedAt: number
}

/** What a thread is born with. */
export interface WorkerData {
  readonly thread: number
  readonly threads: number
  readonly clock: number
  /** Wall clock milliseconds at which the program began. */
  readonly startedAt: number
  readonly tally: SharedTally
  /** By which threads take turns at a pipe; see pipe-turns.ts. */
  readonly turns: SharedArrayBuffer
  /** Where it hears of zones that have moved. */
  readonly moves: MessagePort
  readonly setup: Setup
  /** Whether it obeys `fault`: for tests of what the others do when a thread dies. */
  readonly faults: boolean
}

/** What a thread is told. */
export type Order =
  | { readonly kind: 'apply'; readonly setup: Setup }
  /** Parts of a drain, see drain.ts. */
  | { readonly kind: 'begin' | 'close' | 'closeIdle' | 'endTunnels' | 'destroy' }
  /** Opens its log files anew. */
  | { readonly kind: 'reopen' }
  /** Whether it is to tell of its attempts as they end. */
  | { readonly kind: 'watch'; readonly on: boolean }
  /** Writes what its logs hold, and ends. */
  | { readonly kind: 'leave' }
  | { readonly kind: 'fault' }

/** What a thread answers to its first setup and to every `apply`. */
export type Report = { readonly kind: 'applied' } | { readonly kind: 'failed'; readonly error: string }

/** What a thread says of its own accord. */
export interface News {
  readonly kind: 'attempts'
  readonly batch: RecentBatch
}
