import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { threadId } from 'node:worker_threads'

/*
 * Loaded into the program under test (`--import`, `--expose-gc`), in each of its threads: collects garbage now and then
 * and writes down what is left, which is what is in use. Between two collections a heap says little.
 */

/** What a thread writes down, bytes. */
export interface ThreadMemory {
  readonly thread: number
  readonly heap: number
  readonly external: number
  readonly handles: number
  /** 99th percentile of how late the event loop was since the last time, the collection left out; milliseconds. */
  readonly delayMs: number
}

const folder = process.env['SOAK_HEAP_FOLDER']
const everyMs = Number(process.env['SOAK_HEAP_EVERY'] ?? 5000)
const collect = globalThis.gc

if (folder !== undefined && collect !== undefined) {
  const resolution = 10
  const delay = monitorEventLoopDelay({ resolution })
  delay.enable()
  setInterval(() => {
    const delayMs = Math.max(0, delay.percentile(99) / 1e6 - resolution)
    collect()
    const { heapUsed, external } = process.memoryUsage()
    const handles = process.getActiveResourcesInfo().length
    const memory: ThreadMemory = { thread: threadId, heap: heapUsed, external, handles, delayMs }
    writeFileSync(`${folder}/memory-${threadId}.json`, JSON.stringify(memory))
    delay.reset()
  }, everyMs).unref()
}
