import type { Waited } from '../balance/lanes.ts'
import type { Selection } from '../balance/pick.ts'
import type { Queue } from '../balance/queue.ts'
import type { Exchange } from './exchange.ts'

/**
 * Has a request wait in its group's queue, until a peer is picked for it or there is no more reason to wait. Whoever
 * leaves is taken out at once, unless `proxy_ignore_client_abort` says that it is served all the same.
 * @returns undefined when the queue is full
 */
export async function waitInQueue(
  exchange: Exchange,
  queue: Queue,
  selection: Selection,
): Promise<Waited | undefined> {
  const { call, settings } = exchange
  const waiter = queue.enter(selection)
  if (waiter === undefined) return undefined
  const stay = settings.ignoreClientAbort ? undefined : exchange.onLeave(() => queue.leave(waiter))
  const waited = await waiter.ended
  stay?.()
  call.queueMs = (call.queueMs ?? 0) + waited.ms
  call.group = waited.selection.group.upstream
  return waited
}
