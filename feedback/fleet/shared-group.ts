import type { Upstream } from '../upstream.ts'
import { audit, auditFields } from './audit.ts'
import { departure } from './departure.ts'
import { exchange } from './exchange.ts'
import type { FleetGroupFacts } from './facts.ts'
import type { FleetLines } from './fleet-lines.ts'
import { type GroupKeys, groupKeys } from './keys.ts'
import { Ledger } from './ledger.ts'
import type { Link, LinkEnv } from './link.ts'
import type { FleetOptions } from './options.ts'
import { peerId } from './peer-id.ts'
import { readRoster, roster, rosterEvery } from './roster.ts'
import { SharedSessions } from './shared-sessions.ts'
import type { Tally } from './tally.ts'
import { packSent, readHeard } from './wire.ts'

/** After so many times `ttl` of which nothing was shared it is said that nothing is. */
const aloneTimes = 3

/** What all groups of a fleet have in common, and who is told what comes of their rounds. */
export interface Fellowship {
  readonly options: FleetOptions
  /** This instance's id among all. */
  readonly id: string
  /** For how long an unused key is kept, milliseconds. */
  readonly keep: number
  readonly env: LinkEnv
  readonly link: Link
  readonly lines: FleetLines
  readonly tally: Tally
  /** What was shared of a group was lost, and is begun anew. */
  reset(): void
  /** Records of probes have changed. */
  records(upstream: Upstream, records: ReadonlyMap<string, Buffer>): void
}

/** A group that is shared, and the rounds in which it is: an exchange for each interval, and now and then an audit. */
export class SharedGroup {
  readonly ledger: Ledger
  readonly keys: GroupKeys
  readonly #fellowship: Fellowship
  readonly #sessions: SharedSessions
  /** Whether an exchange is under way. */
  #pending = false
  /** Whether a reload has taken the group away, or the fleet is left. */
  #departed = false
  /** Since when the others have had none of its peers, monotonic milliseconds; undefined: they have some. */
  #aloneAt: number | undefined
  #saidAlone = false
  /** When it is next looked whether all that is kept of it is right, monotonic milliseconds, and from which peer on. */
  #auditAt: number
  #auditFrom: number
  /** Who shares it, as it was last asked for, and when that was; undefined: never. */
  #roster: readonly string[] = []
  #rosterAt: number | undefined

  constructor(upstream: Upstream, fellowship: Fellowship) {
    const { prefix, group, ttl } = fellowship.options
    this.#fellowship = fellowship
    this.keys = groupKeys(prefix, group, upstream.name.toLowerCase())
    this.ledger = new Ledger(upstream, ttl)
    const { link, tally, env } = fellowship
    this.#sessions = new SharedSessions({ link, tally, now: () => env.now(), keys: this.keys })
    this.#auditFrom = Math.floor(fellowship.env.random() * 1000)
    this.#auditAt = this.#nextAudit(1)
  }

  /** An interval has passed. */
  round(): void {
    const { ledger } = this
    const { env, link, options } = this.#fellowship
    if (env.now() - (ledger.heardAt ?? Number.NEGATIVE_INFINITY) > options.ttl) ledger.cutOff()
    const book = ledger.upstream.sessions
    if (book !== undefined && link.up) void this.#sessions.round(book)
    if (this.#pending) return
    if (link.up) void this.#exchange()
    else {
      ledger.skip()
      // An answer may just have been on its way when Redis was lost, and a reload may have brought another limit.
      ledger.takeFair()
    }
  }

  /**
   * Takes leave of the others. Never rejects.
   * @param replaced whether another fleet comes in the place of this one
   */
  async depart(replaced: boolean): Promise<void> {
    this.#departed = true
    const { state, changed, members } = this.keys
    const { id, keep, link } = this.#fellowship
    this.ledger.end(replaced)
    if (!link.up) return
    const book = this.ledger.upstream.sessions
    // The last ones may have been bound just now.
    if (book !== undefined) await this.#sessions.end(book)
    try {
      await link.run(departure, [state, changed, members], [keep, id])
    } catch {
      // Its parts go after `ttl`.
    }
  }

  get facts(): FleetGroupFacts {
    const { members, heardAt, resets } = this.ledger
    const age = heardAt === undefined ? undefined : this.#fellowship.env.now() - heardAt
    const { told, heard } = this.#sessions
    const learns = this.ledger.upstream.sessions !== undefined
    return { members, age, resets, ...(learns ? { sessions: { told, heard } } : {}) }
  }

  /** See facts.ts. */
  get roster(): readonly string[] {
    const { env, link } = this.#fellowship
    if (!link.up) return []
    if (env.now() - (this.#rosterAt ?? Number.NEGATIVE_INFINITY) >= rosterEvery) void this.#list()
    return this.#roster
  }

  async #list(): Promise<void> {
    const { env, link, options } = this.#fellowship
    this.#rosterAt = env.now()
    try {
      this.#roster = readRoster(await link.run(roster, [this.keys.members], [options.ttl]))
    } catch {
      // An exchange that fails says so, and the next time will do.
    }
  }

  async #exchange(): Promise<void> {
    const { ledger, keys } = this
    const { id, keep, env, link, options, lines, tally } = this.#fellowship
    const startedAt = env.now()
    const telling = ledger.gather(startedAt)
    this.#pending = true
    try {
      const args = packSent(ledger.send(telling, id, options.ttl), keep, keys.told)
      const names = [keys.state, keys.changed, keys.members, keys.told + id]
      const heard = readHeard(await link.run(exchange, names, args), telling.updates)
      const endedAt = env.now()
      tally.answered(startedAt, endedAt)
      // A reload may have taken the group away meanwhile.
      if (this.#departed) return
      const { resets } = ledger
      ledger.hear(telling, heard, (startedAt + endedAt) / 2, endedAt)
      if (ledger.resets > resets) {
        lines.lost(endedAt)
        this.#fellowship.reset()
      }
      this.#warnAlone(endedAt)
      if (heard.probes.size > 0) this.#fellowship.records(ledger.upstream, heard.probes)
      if (endedAt >= this.#auditAt) void this.#audit()
    } catch (error) {
      tally.failed(error)
      ledger.lose(telling)
    } finally {
      this.#pending = false
    }
  }

  /** All instances together look at a group about as often, however many there are; what is wrong may be their number. */
  #nextAudit(members: number): number {
    const { env, options } = this.#fellowship
    const times = Math.min(50, Math.max(1, members / 4))
    return env.now() + options.ttl * times * (0.5 + env.random())
  }

  async #audit(): Promise<void> {
    const { ledger } = this
    const { state, changed, members, told } = this.keys
    const { keep, link } = this.#fellowship
    const { peers, backups } = ledger.upstream
    const names = [...peers, ...backups].map(peerId)
    const fields = auditFields(names, this.#auditFrom, ledger.members)
    this.#auditFrom += fields.length
    this.#auditAt = this.#nextAudit(ledger.members)
    try {
      await link.run(audit, [state, changed, members], [keep, told, ...fields])
    } catch {
      // An exchange that fails says so, and the next time will do.
    }
  }

  #warnAlone(now: number): void {
    const { lines, options } = this.#fellowship
    if (!this.ledger.alone) {
      this.#aloneAt = undefined
      return
    }
    this.#aloneAt ??= now
    if (this.#saidAlone || now - this.#aloneAt < aloneTimes * options.ttl) return
    this.#saidAlone = true
    lines.alone(this.ledger.upstream.name)
  }
}
