import { isDeepStrictEqual } from 'node:util'
import { monotonic } from '../feedback/clock.ts'
import type { Fleet } from '../feedback/fleet/fleet.ts'
import type { FleetOptions } from '../feedback/fleet/options.ts'
import type { Upstream } from '../feedback/upstream.ts'
import { errorLog } from './telemetry/error-log.ts'

/** How long a start waits for the leases of limits that are the fleet's, milliseconds. */
const firstLeasesMs = 500

/** The fleet that the program shares with, over reloads. What it takes is loaded where one is configured. */
export class Sharing {
  #fleet: Fleet | undefined
  #make: ((options: FleetOptions, before: Fleet | undefined) => Fleet) | undefined

  get fleet(): Fleet | undefined {
    return this.#fleet
  }

  /** To be done before `use` of these. */
  async prepare(options: FleetOptions | undefined): Promise<void> {
    if (options === undefined || this.#make !== undefined) return
    const module = await import('../feedback/fleet/fleet.ts')
    this.#make = (options, before) => new module.Fleet(options, env, before)
  }

  /**
   * Shares these groups from now on.
   * @param options undefined: with nobody
   */
  use(options: FleetOptions | undefined, upstreams: readonly Upstream[]): void {
    const before = this.#fleet
    const stays = options !== undefined && before !== undefined && alike(before.options, options)
    if (before !== undefined && !stays) void before.stop(options !== undefined)
    if (options === undefined) {
      this.#fleet = undefined
      if (before !== undefined) env.say('notice', 'fleet: shared no more')
      return
    }
    if (stays) before.require(options.required)
    else this.#fleet = this.#make!(options, before)
    this.#fleet!.use(upstreams)
    if (!stays) this.#fleet!.start()
  }

  /** Waits a little for what the others leave of common limits, where there are any. */
  async settle(upstreams: readonly Upstream[]): Promise<void> {
    const common = upstreams.some(({ fleet, peers, backups }) =>
      [...peers, ...backups].some(({ options }) => fleet && options.max_conns_scope === 'fleet'),
    )
    if (common) await this.#fleet?.heard(firstLeasesMs)
  }

  /** Takes leave. Ends soon, whatever Redis does; never rejects. */
  async stop(): Promise<void> {
    await this.#fleet?.stop()
  }
}

/** Whether a fleet of the one can go on as one of the other. */
function alike(one: FleetOptions, other: FleetOptions): boolean {
  return isDeepStrictEqual({ ...one, required: other.required }, other)
}

const env = {
  now: monotonic,
  wall: () => Date.now(),
  random: Math.random,
  after(ms: number, run: () => void) {
    const timer = setTimeout(run, ms).unref()
    return () => clearTimeout(timer)
  },
  say(level: 'notice' | 'warn' | 'error', text: string) {
    errorLog.log(level, text)
  },
}
