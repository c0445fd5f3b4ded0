import type { ResolverCounts } from '../../feedback/resolver-counts.ts'
import type { FollowedName, FoundAddress, ResolverSpec } from '../membership.ts'
import { Follower, type FollowerEnv, type NameFacts } from './follower.ts'
import type { Found } from './found.ts'
import type { LookupEnv } from './lookup.ts'
import { Resolver } from './resolver.ts'

/** A resolver at work, for people. */
export interface ResolverFacts {
  /** `status_zone`; undefined: it is not in the status tree. */
  readonly zone: string | undefined
  /** Whom it asks now, `127.0.0.1:53`. */
  readonly servers: readonly string[]
  readonly counts: ResolverCounts
  /** The names that are looked up by it. */
  readonly names: readonly NameFacts[]
}

export interface FollowersEnv extends FollowerEnv, LookupEnv {}

/** How long a start or a reload waits for names that it does not know yet, milliseconds. */
const firstAnswersMs = 5000
/** And how long it does so without a word, milliseconds. */
const silentMs = 1000

/** All names that are followed, over reloads: groups that have the same one share it. */
export class Followers {
  readonly #env: FollowersEnv
  readonly #changed: () => void
  readonly #resolvers = new Map<string, Resolver>()
  readonly #followers = new Map<string, Follower>()

  /** @param changed told when a name has other addresses than before */
  constructor(env: FollowersEnv, changed: () => void) {
    this.#env = env
    this.#changed = changed
  }

  /**
   * Follows these as well from now on.
   * @returns resolves when each has been looked up once, or after so long
   */
  async expect(names: readonly FollowedName[], withinMs = firstAnswersMs): Promise<void> {
    const news: Promise<void>[] = []
    const unheard = new Set<string>()
    for (const name of names) {
      const key = keyOf(name)
      if (this.#followers.has(key)) continue
      const resolver = this.#resolver(name.resolver)
      const { host, service } = name
      const follower = new Follower(resolver, { host: host.toLowerCase(), service }, this.#env, this.#changed)
      this.#followers.set(key, follower)
      unheard.add(host)
      news.push(follower.first.then(() => void unheard.delete(host)))
    }
    if (news.length === 0) return
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const cancel = this.#env.after(withinMs, resolve)
    const patient = this.#env.after(silentMs, () =>
      this.#env.say('notice', `waiting for the addresses of ${[...unheard].join(', ')}`),
    )
    // What waits for answers does not keep a process alive, and it has nothing else to do before it serves.
    const alive = setInterval(() => {}, 1000)
    await Promise.race([Promise.all(news), late])
    clearInterval(alive)
    cancel()
    patient()
  }

  /** Forgets all names but these, and resolvers that nobody asks any more. */
  keep(names: readonly FollowedName[]): void {
    const keys = new Set(names.map(keyOf))
    for (const [key, follower] of this.#followers) {
      if (keys.has(key)) continue
      follower.stop()
      this.#followers.delete(key)
    }
    const specs = new Set(names.map(({ resolver }) => specKey(resolver)))
    for (const key of this.#resolvers.keys()) if (!specs.has(key)) this.#resolvers.delete(key)
  }

  /** Looks nothing up any more. */
  stop(): void {
    for (const follower of this.#followers.values()) follower.stop()
  }

  resolved(name: FollowedName): readonly FoundAddress[] {
    const { found = [] } = this.#followers.get(keyOf(name)) ?? {}
    const first = Math.min(...found.map(({ service }) => service?.priority ?? 0))
    return found.map((each) => addressOf(each, name.port, first))
  }

  facts(): readonly ResolverFacts[] {
    return Array.from(this.#resolvers, ([key, { spec, counts }]) => {
      const servers = spec.servers ?? this.#env.system.conf().servers
      const own = Array.from(this.#followers).filter(([name]) => name.startsWith(`${key}\n`))
      return {
        zone: spec.statusZone,
        servers: servers.map(({ host, port }) =>
          host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`,
        ),
        counts,
        names: own.map(([, { facts }]) => facts),
      }
    })
  }

  #resolver(spec: ResolverSpec): Resolver {
    const key = specKey(spec)
    const known = this.#resolvers.get(key)
    if (known !== undefined) return known
    const resolver = new Resolver(spec, this.#env)
    this.#resolvers.set(key, resolver)
    return resolver
  }
}

function addressOf({ host, service }: Found, port: number, first: number): FoundAddress {
  return {
    address: { kind: 'tcp', host, port: service?.port ?? port },
    target: service?.target,
    // A weight of zero would never be chosen.
    weight: service && Math.max(1, service.weight),
    secondary: service !== undefined && service.priority > first,
  }
}

function specKey(spec: ResolverSpec): string {
  return JSON.stringify(spec)
}

function keyOf({ resolver, host, service }: FollowedName): string {
  return `${specKey(resolver)}\n${service ?? ''}\n${host.toLowerCase()}`
}
