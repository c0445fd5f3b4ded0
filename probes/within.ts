import type { Timers } from './due-queue.ts'

/** Waits for something, but no longer than so many milliseconds. What it rejects with is of no interest. */
export async function within(ms: number, after: Timers['after'], over: Promise<unknown>): Promise<void> {
  let cancel = () => {}
  const late = new Promise<void>((resolve) => {
    cancel = after(ms, resolve)
  })
  await Promise.race([over.catch(() => {}), late])
  cancel()
}
