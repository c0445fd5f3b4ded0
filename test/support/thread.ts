import { once } from 'node:events'
import { MessagePort, Worker } from 'node:worker_threads'

/**
 * A thread that runs a module of the repository's with `data`, and ends by itself.
 * @param body program text; `data` is what was given, `load(path)` imports a module by its path from the root
 */
export function thread(body: string, data: unknown): Worker {
  const root = JSON.stringify(new URL('../../', import.meta.url).href)
  const text = `
    const { parentPort, workerData: data, receiveMessageOnPort } = await import('node:worker_threads')
    const load = (path) => import(new URL(path, ${root}).href)
    ${body}
  `
  return new Worker(new URL(`data:text/javascript,${encodeURIComponent(text)}`), {
    workerData: data,
    ...transfer(data),
  })
}

/** Waits for threads to end. @throws what a thread threw */
export async function finished(...workers: Worker[]): Promise<void> {
  await Promise.all(workers.map((worker) => once(worker, 'exit')))
}

/** Ports can only be given away, not copied. */
function transfer(data: unknown): { transferList: MessagePort[] } {
  const values = typeof data === 'object' && data !== null ? Object.values(data) : []
  return { transferList: values.filter((value): value is MessagePort => value instanceof MessagePort) }
}
