import { monotonic } from '../../feedback/clock.ts'
import type { FleetEnv } from '../../feedback/fleet/fleet.ts'
import type { FleetOptions } from '../../feedback/fleet/options.ts'

/** Shares through this server, often, and gives up soon. */
export function fleetOptions(
  server: { readonly url: string },
  more: Partial<FleetOptions> = {},
): FleetOptions {
  return {
    urls: [server.url],
    group: 'app',
    name: 'one',
    prefix: 'evenkeel',
    interval: 50,
    ttl: 1000,
    timeout: 1000,
    sentinel: undefined,
    cluster: false,
    user: undefined,
    password: undefined,
    ca: undefined,
    cert: undefined,
    key: undefined,
    required: false,
    ...more,
  }
}

/** The real clocks and dice. */
export function fleetEnv(say: (text: string) => void = () => {}): FleetEnv {
  return {
    now: monotonic,
    wall: Date.now,
    random: Math.random,
    after(ms, run) {
      const timer = setTimeout(run, ms)
      return () => clearTimeout(timer)
    },
    say: (level, text) => say(`[${level}] ${text}`),
  }
}
