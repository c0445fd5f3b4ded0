import type { Exchange } from './exchange.ts'

/**
 * Waits with a request for what a name comes to. Whoever leaves waits no more, unless `proxy_ignore_client_abort` says
 * that it is served all the same.
 * @returns undefined when the client is gone
 */
export async function lookedUp<T>(exchange: Exchange, pending: Promise<T>): Promise<T | undefined> {
  if (exchange.settings.ignoreClientAbort) return pending
  const { promise: gone, resolve } = Promise.withResolvers<undefined>()
  const stay = exchange.onLeave(() => resolve(undefined))
  const found = await Promise.race([pending, gone])
  stay()
  return exchange.gone ? undefined : found
}
