import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

/** How a demo peer behaves; times in milliseconds. */
export interface Temper {
  readonly name: string
  /** Mean time to an answer; the times are exponential, as those of independent work are. */
  readonly mean: number
  /** Share of the requests answered 503 at once, 0 to 1. */
  readonly failing: number
}

/** One of each kind that balancing has to cope with, in turn. */
export const tempers: readonly Temper[] = [
  { name: 'fast', mean: 8, failing: 0 },
  { name: 'slow', mean: 60, failing: 0 },
  { name: 'flaky', mean: 15, failing: 0.1 },
]

/** A small HTTP server to try a configuration on. */
export interface DemoPeer {
  readonly temper: Temper
  readonly port: number
  close(): Promise<void>
}

/**
 * Starts a peer. `/health` answers at once and always, `/events` is an endless stream with an event a second, and
 * everything else says who answered and how long that took.
 * @param random uniform in [0, 1)
 * @throws what listening throws
 */
export async function startDemoPeer(
  host: string,
  port: number,
  temper: Temper,
  random: () => number = Math.random,
): Promise<DemoPeer> {
  const server = createServer((request, response) => {
    // Also when the answer comes too late for a client that went away: then nobody reads it.
    response.on('error', () => {})
    void answer(request, response, temper, random)
  })
  await listen(server, host, port)
  // A listening TCP server has such an address.
  const { port: taken } = server.address() as AddressInfo
  return {
    temper,
    port: taken,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  temper: Temper,
  random: () => number,
): Promise<void> {
  request.resume()
  response.setHeader('X-Peer', temper.name)
  response.setHeader('Content-Type', 'text/plain')
  const path = request.url?.split('?')[0]
  if (path === '/health') response.end('well\n')
  else if (path === '/events') tick(response)
  else if (random() < temper.failing) {
    response.statusCode = 503
    response.end(`${temper.name} failed\n`)
  } else {
    const began = performance.now()
    await wait(-Math.log(1 - random()) * temper.mean)
    response.end(`${temper.name} answered after ${Math.round(performance.now() - began)} ms\n`)
  }
}

function tick(response: ServerResponse): void {
  response.setHeader('Content-Type', 'text/event-stream')
  response.setHeader('Cache-Control', 'no-store')
  const say = () => response.write(`data: ${new Date().toISOString()}\n\n`)
  say()
  const timer = setInterval(say, 1000)
  response.on('close', () => clearInterval(timer))
}
