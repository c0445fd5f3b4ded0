import { noCounts, type ResolverCounts } from '../../feedback/resolver-counts.ts'
import type { ResolverSpec } from '../membership.ts'
import { type Lookup, type LookupEnv, type Memo, Work } from './lookup.ts'
import { Servers } from './servers.ts'

/** What is looked up: addresses of a host, or a service there. */
export interface Name {
  /** Lower case. */
  readonly host: string
  readonly service: string | undefined
}

/** Looks names up, as one `resolver` line says. */
export class Resolver {
  readonly spec: ResolverSpec
  readonly counts: ResolverCounts = noCounts()
  readonly #env: LookupEnv
  readonly #servers: Servers

  /** @param most queries under way at once; undefined: as is usual */
  constructor(spec: ResolverSpec, env: LookupEnv, most?: number) {
    this.spec = spec
    this.#env = env
    this.#servers = new Servers(env.ask, env.now, this.counts, most)
  }

  /** @param memo what the last good look-up of the name left; that of a good one is put there */
  async lookUp(name: Name, memo: Memo): Promise<Lookup> {
    const { queries } = this.counts
    if (name.service === undefined) queries.name += 1
    else queries.srv += 1
    const used: Memo = new Map()
    const work = new Work(this.spec, this.#env, this.#servers, memo, used)
    const how = await (name.service === undefined
      ? work.host(name.host)
      : work.services(name.service, name.host))
    if (how.kind !== 'found') return how
    memo.clear()
    for (const [question, addresses] of used) memo.set(question, addresses)
    return how
  }
}
