import type { QueueOptions, Upstream } from '../../feedback/upstream.ts'
import { Alarm } from '../balance/alarm.ts'
import { Queue } from '../balance/queue.ts'
import { timeMs } from '../config/units.ts'
import type { UpstreamBlock } from '../config/upstream-model.ts'
import type { LiveGroup } from './groups.ts'

/** Angie's default, milliseconds. */
const usualTimeout = 60_000

/** @returns undefined where requests are not to wait */
export function queueOptions({ queue }: UpstreamBlock): QueueOptions | undefined {
  if (queue === undefined) return undefined
  const { number, timeout } = queue
  return { number, timeout: timeout === undefined ? usualTimeout : (timeMs(timeout) ?? usualTimeout) }
}

/**
 * The queue that a group is to have. One that it has lives on across reloads, with all that wait in it.
 * @param old what the group of that name has now
 */
export function queueOf({ queue: options }: Upstream, old: Queue | undefined): Queue | undefined {
  if (options === undefined) return undefined
  if (old === undefined) return new Queue(options, (call) => new Alarm(call))
  old.configure(options)
  return old
}

/** The queues of the groups that are in force in this thread, over reloads. */
export class Queues {
  /** With the lower-case name of their group. */
  #queues: (readonly [string, Queue])[] = []

  /**
   * From now on these groups are in force: whoever waits does so for a peer of the group as it is now, and in vain where
   * it is no more. A group whose queue is no more lets those go on waiting that do.
   */
  use(groups: ReadonlyMap<string, LiveGroup>): void {
    const next = new Map<Queue, string>()
    for (const [name, { queue }] of groups) if (queue !== undefined) next.set(queue, name)
    for (const [name, queue] of this.#queues) {
      if (!groups.has(name)) queue.close()
      else if (queue.size > 0) next.set(queue, name)
    }
    this.#queues = []
    for (const [queue, name] of next) {
      queue.follow(groups.get(name)!.balancing)
      this.#queues.push([name, queue])
    }
  }
}
