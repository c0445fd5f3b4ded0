import type { LinesEnv } from './link-lines.ts'

/** It is said that the shared state was lost at most so often, milliseconds. */
const lossEvery = 60_000

/** What people are told of what is shared, beside what link-lines.ts tells of the connection. */
export class FleetLines {
  readonly #group: string
  readonly #servers: string
  readonly #env: LinesEnv
  #saidLossAt = Number.NEGATIVE_INFINITY

  /**
   * @param group names the app
   * @param servers what the servers are called
   */
  constructor(group: string, servers: string, env: LinesEnv) {
    this.#group = group
    this.#servers = servers
    this.#env = env
  }

  /** Of all groups together: they are lost together. @param now monotonic milliseconds */
  lost(now: number): void {
    if (now - this.#saidLossAt < lossEvery) return
    this.#saidLossAt = now
    this.#env.say('warn', `fleet: what was shared is gone from ${this.#servers}; beginning anew`)
  }

  /** Of one group, by its name. */
  alone(upstream: string): void {
    this.#env.say(
      'warn',
      `fleet: no other instance of group "${this.#group}" has a peer of upstream "${upstream}" that this one has; ` +
        'where several apps use one Redis, each needs a group of its own',
    )
  }
}
