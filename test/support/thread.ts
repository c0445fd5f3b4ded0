import { once } from 'node:events'
import { MessagePort, Worker } from 'node:worker_threads'

/** When each thread ended: it may have before anybody asks. */
const ends = new WeakMap<Worker, Promise<unknown>>()

/**
 * A thread that runs a program text with `data`, and ends by itself.
 * @param body `data` is what was given, `load(path)` imports a module by its path from the root
 */
export function thread(body: string, data: unknown): Worker {
  const root = JSON.stringify(new URL('../../', import.meta.url).href)
  const text = `
    const { parentPort, workerData: data, receiveMessageOnPort } = await import('node:worker_threads')
    const load = (path) => import(new URL(path, ${root}).href)
    ${body}
  `
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(text)}`), {
    workerData: data,
    ...transfer(data),
  })
  ends.set(worker, once(worker, 'exit'))
  return worker
}

/** Waits for threads to end. @throws what a thread threw */
export async function finished(...workers: Worker[]): Promise<void> {
  await Promise.all(workers.map((worker) => ends.get(worker)))
}

/** Ports can only be given away, not copied. */
function transfer(data: unknown): { transferList: MessagePort[] } {
  const values = typeof data === 'object' && data !== null ? Object.values(data) : []
  return { transferList: values.filter((value): value is MessagePort => value instanceof MessagePort) }
}
