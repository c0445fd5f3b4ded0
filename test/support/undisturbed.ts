import { readFileSync } from 'node:fs'
import { children } from './sidecar.ts'

/** How often it is looked, and how much of that time a process may be kept waiting for a processor, milliseconds. */
const everyMs = 50
const mostMs = 40

/** Sees when this process, or a program that it has started, gets no processor though it could work. */
export class Watcher {
  /** When that was, monotonic milliseconds: from a look to the next. */
  readonly disturbed: { readonly from: number; readonly to: number }[] = []
  /** The longest wait so far, milliseconds. */
  worst = 0
  #at = performance.now()
  #waited = new Map<number, number>()
  readonly #timer: NodeJS.Timeout

  constructor() {
    this.#timer = setInterval(() => this.#look(), everyMs).unref()
  }

  #look(): void {
    const now = performance.now()
    let wait = now - this.#at - everyMs
    const waited = new Map<number, number>()
    for (const { pid } of children) {
      if (pid === undefined) continue
      const ms = waitedMs(pid)
      waited.set(pid, ms)
      wait = Math.max(wait, ms - (this.#waited.get(pid) ?? ms))
    }
    if (wait >= mostMs) this.disturbed.push({ from: this.#at, to: now })
    this.worst = Math.max(this.worst, wait)
    this.#at = now
    this.#waited = waited
  }

  /** Whether that was so at any time between two moments. */
  overlaps(from: number, to: number): boolean {
    return this.disturbed.some((one) => one.from < to && one.to > from)
  }

  /** How long that was in all, milliseconds. */
  get lost(): number {
    return this.disturbed.reduce((sum, { from, to }) => sum + to - from, 0)
  }

  stop(): void {
    this.#look()
    clearInterval(this.#timer)
  }
}

/** How long the main thread of a process could have run and did not, ever; 0 where the system does not say. */
function waitedMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}

/**
 * Does what judges by times. Where it fails and the machine has kept it, or a program that it has started, waiting for a
 * processor meanwhile, that says nothing, and it is done again, three times in all. A failure on a machine that had time
 * is a failure.
 */
export async function undisturbed(go: () => Promise<void>): Promise<void> {
  for (let left = 2; ; left--) {
    const watcher = new Watcher()
    try {
      return await go()
    } catch (error) {
      if (left === 0 || watcher.disturbed.length === 0) throw error
      console.log(`again, after a wait of ${Math.round(watcher.worst)} ms for a processor: ${error}`)
    } finally {
      watcher.stop()
    }
  }
}

/**
 * The work of a test of how soon, or how often, something happens. Its `test` stays in the test's own file, which is
 * what a failure names.
 */
export const timed = (go: () => Promise<void>) => () => undisturbed(go)
