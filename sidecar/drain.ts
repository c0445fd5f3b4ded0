/** What a drain needs of the running program. */
export interface Drainable {
  /** From now on `/readyz` says 503, each response is its connection's last, and new connections are still taken. */
  begin(): void
  /** No new connections from now on. */
  close(): void
  /** Closes connections without a request in progress. */
  closeIdle(): void
  /** Requests in progress, tunnels not counted. */
  requests(): number
  tunnels(): number
  /** FIN to both sides of every tunnel. */
  endTunnels(): void
  /** Closes everything that is left. */
  destroy(): void
}

/** Times of a drain, milliseconds. */
export interface DrainTimes {
  /** How long to go on accepting after `/readyz` turned 503: whoever sends requests here has to notice first. */
  readonly delay: number
  /** How long work in progress and tunnels may last, from the beginning of the drain. */
  readonly timeout: number
}

/** How often it is looked whether everything has ended, milliseconds. */
const tick = 10
/**
 * How long a connection without a request has after the listeners closed, milliseconds: its next request may be under
 * way, and gets an answer that says that it is the last.
 */
const grace = 200
/** How long the two sides of a tunnel have for their own FIN, milliseconds. */
const farewell = 500

/**
 * Ends the program in order: first it is said, then the door is closed, then the work in progress ends by itself or
 * is cut when the time is over.
 * @param wait resolves after so many milliseconds
 * @param now monotonic milliseconds
 * @returns whether everything has ended by itself
 */
export async function drain(
  parts: Drainable,
  times: DrainTimes,
  wait: (ms: number) => Promise<void>,
  now: () => number,
): Promise<boolean> {
  const began = now()
  const end = began + times.timeout
  parts.begin()
  await wait(Math.min(times.delay, times.timeout))
  parts.close()
  await wait(Math.min(grace, Math.max(0, end - now())))
  for (;;) {
    // Again and again: a response whose head was sent before the drain began could not say that it is the last.
    parts.closeIdle()
    if (parts.requests() + parts.tunnels() === 0 || now() >= end) break
    await wait(tick)
  }
  const alone = parts.requests() + parts.tunnels() === 0
  parts.endTunnels()
  const last = now() + farewell
  while (parts.tunnels() > 0 && now() < last) await wait(tick)
  parts.destroy()
  return alone
}
