import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { pipeline } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { Link } from '../../feedback/fleet/link.ts'
import type { FleetOptions } from '../../feedback/fleet/options.ts'
import { script } from '../../feedback/fleet/script.ts'
import { fleetOptions } from './fleet-options.ts'

/** A link with what it said, and when it came and went. */
export class TestLink extends Link {
  readonly lines: readonly string[]
  readonly changes: boolean[] = []

  constructor(options: Partial<FleetOptions> & Pick<FleetOptions, 'urls'>) {
    const lines: string[] = []
    super(
      fleetOptions(
        { url: '' },
        { group: 'shop', name: 'test', interval: 200, ttl: 5000, timeout: 100, ...options },
      ),
      {
        now: () => performance.now(),
        wall: () => Date.now(),
        random: Math.random,
        say: (level, text) => lines.push(`${level} ${text}`),
      },
    )
    this.lines = lines
    this.listen((up) => this.changes.push(up))
  }

  /** Resolves once it is up, or down. */
  async became(up: boolean, within = 10_000): Promise<void> {
    const until = performance.now() + within
    while (this.up !== up) {
      if (performance.now() > until) throw new Error(`not ${up ? 'up' : 'down'}: ${this.lines.join('; ')}`)
      await sleep(5)
    }
  }

  /** Resolves once it has said something that contains the text. */
  async said(text: string, within = 10_000): Promise<void> {
    const until = performance.now() + within
    while (!this.lines.some((line) => line.includes(text))) {
      if (performance.now() > until) throw new Error(`not said: ${text}, but ${this.lines.join('; ')}`)
      await sleep(5)
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}

/** Gives back what it is given, and counts how often it ran. */
export const echo = script('echo', "return { redis.call('INCR', KEYS[1]), ARGV[1], { 1, 'two' }, false }")

/** Writes so much. */
export const fill = script('fill', "return redis.call('SET', KEYS[1], string.rep('x', tonumber(ARGV[1])))")

/** What the link says when it is lost, before and after the reason. */
export const alone = "; balancing on this instance's view only"

/** Passes connections on to a server, except those that `drop` names by their number, which it ends at once. */
export async function proxyTo(port: number, drop: (count: number) => boolean): Promise<Proxy> {
  let count = 0
  const server = createServer((near) => {
    near.on('error', () => {})
    if (drop(count++)) return near.destroy()
    const far = connect(port, '127.0.0.1')
    far.on('error', () => {})
    pipeline(near, far, () => {})
    pipeline(far, near, () => {})
    return undefined
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  // A TCP server's address is never a string.
  const address = server.address() as AddressInfo
  return {
    url: `redis://127.0.0.1:${address.port}`,
    get count() {
      return count
    },
    [Symbol.dispose]: () => server.close(),
  }
}

export interface Proxy extends Disposable {
  readonly url: string
  /** Connections so far. */
  readonly count: number
}
