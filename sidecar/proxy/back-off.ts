import type { Exchange } from './exchange.ts'

/**
 * Waits before a second and later retry, with full jitter, so that a short outage is not hammered.
 * @param retries of the request, this one among them
 * @returns false when the client left meanwhile
 */
export function backOff(exchange: Exchange, retries: number): Promise<boolean> {
  const { retry, ignoreClientAbort } = exchange.settings
  const { backoff } = retry
  if (exchange.gone && !ignoreClientAbort) return Promise.resolve(false)
  if (!backoff || retries < 2) return Promise.resolve(true)
  const most = Math.min(backoff.max, backoff.base * 2 ** (retries - 2))
  return new Promise((resolve) => {
    const end = (stayed: boolean) => {
      clearTimeout(timer)
      stay()
      resolve(stayed)
    }
    const timer = setTimeout(() => end(true), Math.random() * most)
    const stay = ignoreClientAbort ? () => {} : exchange.onLeave(() => end(false))
  })
}
