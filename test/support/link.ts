import { setTimeout as sleep } from 'node:timers/promises'
import { Link } from '../../feedback/fleet/link.ts'
import type { FleetOptions } from '../../feedback/fleet/options.ts'
import { script } from '../../feedback/fleet/script.ts'

/** A link with what it said, and when it came and went. */
export class TestLink extends Link {
  readonly lines: readonly string[]
  readonly changes: boolean[] = []

  constructor(options: Partial<FleetOptions> & Pick<FleetOptions, 'urls'>) {
    const lines: string[] = []
    super(
      {
        group: 'shop',
        name: 'test',
        prefix: 'evenkeel',
        interval: 200,
        ttl: 5000,
        timeout: 100,
        sentinel: undefined,
        cluster: false,
        user: undefined,
        password: undefined,
        ca: undefined,
        cert: undefined,
        key: undefined,
        required: false,
        ...options,
      },
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
  async became(up: boolean, within = 5000): Promise<void> {
    const until = performance.now() + within
    while (this.up !== up) {
      if (performance.now() > until) throw new Error(`not ${up ? 'up' : 'down'}: ${this.lines.join('; ')}`)
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
