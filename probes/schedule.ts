import { networkHere } from '../feedback/fleet/peer-id.ts'
import { hash } from './slots.ts'

/** When a chunk of a probe is due. */
export interface Schedule {
  /** Names it in this process. */
  readonly key: string
  /** Names it among all instances. */
  readonly id: string
  /** Whole milliseconds, 1 or more. */
  readonly every: number
  /** Whether its peers are reached from this network alone: instances elsewhere have a schedule of their own. */
  readonly local: boolean
}

/** Peers that only one network reaches have a queue of their own there. */
export function queueName(local: boolean): string {
  return local ? `probes-${hash(networkHere()).toString(16)}` : 'probes'
}
