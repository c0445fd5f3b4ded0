import { forgive } from '../../feedback/health.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import type { Change, Deed, Granted, NewServer, PeerWish, RuntimeFacts } from '../admin/runtime-facts.ts'
import type { Plan } from '../build/plans.ts'
import { mistakeOf } from '../mistake.ts'
import { type Next, Refusal } from './aim.ts'
import { Changes, covers, lineOf, type Made, type Written } from './changes.ts'
import { isLiteral, misfit, type WrittenGroup } from './lines.ts'
import { revaluing } from './revalue.ts'
import { adding, removing } from './servers.ts'

/** What peers are known by. */
interface Named {
  readonly name: string
  readonly server: string
}

/** A group that runs. */
interface Group {
  readonly plan: Plan
  readonly balancing: { readonly upstream: Upstream }
}

/** What changes are made on. */
export interface Ground {
  /** The groups that run, by lower-case name. */
  groups(): ReadonlyMap<string, Group>
  /** Brings all threads in line with what `Runtime.changed` says. Rejects where that cannot be; nothing has changed then. */
  refresh(): Promise<void>
  /** Monotonic milliseconds. */
  now(): number
  /** Wall clock milliseconds. */
  wall(): number
  /** A line for the log, of level `notice`. */
  tell(text: string): void
}

/** Changes of groups while the program runs: grants wishes one after the other, and each is in force once it is granted. */
export class Runtime implements RuntimeFacts {
  readonly #ground: Ground
  /** Texts of lines that stand for several addresses, by those. */
  readonly #lines = new WeakMap<Plan, ReadonlyMap<string, string>>()
  readonly #counts = new Map<string, Map<Deed, number>>()
  #changes = new Changes()
  #last: Promise<unknown> = Promise.resolve()

  constructor(ground: Ground) {
    this.#ground = ground
  }

  /** Groups as they are to be: for whoever builds them, from what the file and DNS say. */
  changed(plans: readonly Plan[]): readonly Plan[] {
    return this.#changes.changed(plans, fits)
  }

  /** A file has been read anew and is in force: what it contradicts is forgotten. */
  settle(): void {
    const plans = Array.from(this.#ground.groups().values(), ({ plan }) => plan)
    const { changes, dropped } = this.#changes.after(plans, fits)
    this.#changes = changes
    for (const { change, why } of dropped) {
      this.#count(change.upstream, 'dropped')
      this.#ground.tell(`upstream "${change.upstream}": ${told(change)} no longer holds: ${why}`)
    }
  }

  list(): readonly Change[] {
    return this.#changes.list
  }

  of(upstream: string, peer: Named): readonly Change[] {
    const made = this.#changes.of(upstream)
    if (made.length === 0) return made
    const line = this.line(upstream, peer) ?? peer.server
    return made.filter((change) => covers(change, { ...peer, line }))
  }

  line(upstream: string, { server, name }: Named): string | undefined {
    const plan = this.#group(upstream)?.plan
    if (plan === undefined) return undefined
    let lines = this.#lines.get(plan)
    if (lines === undefined) {
      const named = plan.wanted.filter((each) => !isLiteral(lineOf(each)))
      lines = new Map(named.map((each) => [`${each.server} ${each.name}`, lineOf(each)]))
      this.#lines.set(plan, lines)
    }
    return lines.size === 0 ? undefined : lines.get(`${server} ${name}`)
  }

  zone(upstream: string): string | undefined {
    return this.#group(upstream)?.plan.block.zone?.name
  }

  *counts(): Generator<{ readonly upstream: string; readonly deed: Deed; readonly count: number }> {
    for (const [upstream, deeds] of this.#counts) {
      for (const [deed, count] of deeds) yield { upstream, deed, count }
    }
  }

  change(upstream: string, address: string, wish: PeerWish, by: string): Promise<Granted> {
    return this.#grant(upstream, by, async (plan, made, at) => {
      const next = revaluing(plan, made, address, wish, { by, at })
      return { ...next, forgiven: wish.state === 'up' }
    })
  }

  add(upstream: string, server: NewServer, by: string): Promise<Granted> {
    return this.#grant(upstream, by, (plan, made, at) => adding(plan, made, server, { by, at }))
  }

  remove(upstream: string, address: string, by: string): Promise<Granted> {
    return this.#grant(upstream, by, async (plan, made, at) => removing(plan, made, address, { by, at }))
  }

  reset(upstream: string, by: string): Promise<Granted> {
    return this.#grant(upstream, by, async (_plan, made) => {
      const peers = [...new Set(made.map(({ target }) => target))]
      return {
        made: [],
        peers,
        deeds: made.length > 0 ? ['reset'] : [],
        words: ['all is as in the file again'],
      }
    })
  }

  /** Grants a wish after all that came before it. */
  #grant(
    upstream: string,
    by: string,
    decide: (
      plan: Plan,
      made: readonly Made[],
      at: number,
    ) => Promise<Next & { readonly forgiven?: boolean }>,
  ): Promise<Granted> {
    const granted = this.#last.then(async (): Promise<Granted> => {
      try {
        const group = this.#group(upstream)
        if (group === undefined) throw this.#unknown(upstream)
        const { plan } = group
        const next = await decide(plan, this.#changes.of(plan.name), this.#ground.wall())
        return await this.#enforce(plan, next, by)
      } catch (error) {
        if (error instanceof Refusal) return { ok: false, status: error.status, error: error.message }
        throw error
      }
    })
    this.#last = granted.catch(() => {})
    return granted
  }

  async #enforce(plan: Plan, next: Next & { readonly forgiven?: boolean }, by: string): Promise<Granted> {
    const { name } = plan
    const { made, peers, deeds, words, conflict } = next
    const before = this.#changes.of(name)
    const changed = made.length !== before.length || made.some((change, i) => change !== before[i])
    if (changed) {
      const wrong = made.length > 0 ? fits(plan, made) : undefined
      if (wrong !== undefined) throw new Refusal(conflict ? 409 : 422, wrong)
      this.#changes = this.#changes.with(name, made)
      try {
        await this.#ground.refresh()
      } catch (error) {
        this.#changes = this.#changes.with(name, before)
        throw new Refusal(503, mistakeOf(error))
      }
      for (const deed of deeds) this.#count(name, deed)
      for (const word of words) this.#ground.tell(`upstream "${name}": ${word}, by ${by}`)
    }
    if (next.forgiven) this.#forgive(name, peers, by)
    return { ok: true, peers, changed }
  }

  /** Who says that a peer is up does not want it to stay set aside. */
  #forgive(name: string, names: readonly string[], by: string): void {
    const upstream = this.#group(name)?.balancing.upstream
    if (upstream === undefined) return
    const { zone, peers, backups } = upstream
    const meant = new Set(names)
    const found = [...peers, ...backups].filter((peer) => meant.has(peer.name))
    const failed = found.filter((peer) => zone.peers.fails[peer.index]! > 0)
    if (failed.length === 0) return
    zone.enter()
    for (const peer of failed) forgive(peer, this.#ground.now())
    zone.leave()
    for (const peer of failed)
      this.#ground.tell(`upstream "${name}": failures of ${peer.name} are forgotten, by ${by}`)
  }

  #group(upstream: string): Group | undefined {
    return this.#ground.groups().get(upstream.toLowerCase())
  }

  #unknown(upstream: string): Refusal {
    const names = Array.from(this.#ground.groups().values(), ({ plan }) => plan.name)
    return new Refusal(404, `unknown upstream "${upstream}"; there are: ${names.join(', ') || 'none'}`)
  }

  #count(upstream: string, deed: Deed): void {
    const deeds = this.#counts.get(upstream) ?? new Map<Deed, number>()
    this.#counts.set(upstream, deeds)
    deeds.set(deed, (deeds.get(deed) ?? 0) + 1)
  }
}

/** Plans are the only groups here, and have all of their blocks. */
function fits(group: Written, made: readonly Made[]): string | undefined {
  return misfit(group as WrittenGroup, made)
}

/** A change in words. */
function told({ kind, target, value }: Change): string {
  if (kind === 'added') return `added server ${value}`
  return kind === 'removed' ? `removal of ${target}` : `${kind}=${value} of ${target}`
}
