import { randomBytes } from 'node:crypto'
import type { Cluster, Redis } from 'ioredis'
import type { Peer } from '../peer.ts'
import type { Upstream } from '../upstream.ts'
import { audit, auditFields } from './audit.ts'
import type { Board } from './board.ts'
import { departure } from './departure.ts'
import { exchange } from './exchange.ts'
import type { FleetFacts, FleetGroupFacts, FleetPeerFacts, FleetSamples } from './facts.ts'
import { type GroupKeys, groupKeys } from './keys.ts'
import { Ledger, type Telling } from './ledger.ts'
import { Link, type LinkEnv } from './link.ts'
import type { FleetOptions } from './options.ts'
import { peerId } from './peer-id.ts'
import { readRoster, roster, rosterEvery } from './roster.ts'
import { Samples } from './samples.ts'
import type { Script } from './script.ts'
import { packUpdates, readHeard } from './wire.ts'

/** Time, dice, and something to wait with. */
export interface FleetEnv extends LinkEnv {
  /**
   * Runs something once, after so many milliseconds. Must keep no process alive.
   * @returns keeps it from running
   */
  after(ms: number, run: () => void): () => void
}

/** By so much of it an interval is shorter or longer, so that instances do not come in step. */
const jitter = 0.1
/** It is said that the shared state was lost at most so often, milliseconds. */
const lossEvery = 60_000
/** After so many times `ttl` of which nothing was shared it is said that nothing is. */
const aloneTimes = 3

interface Shared {
  readonly ledger: Ledger
  readonly keys: GroupKeys
  /** Whether an exchange is under way. */
  pending: boolean
  /** Since when the others have had none of its peers, monotonic milliseconds; undefined: they have some. */
  aloneAt: number | undefined
  saidAlone: boolean
  /** When it is next looked whether all that is kept of it is right, monotonic milliseconds, and from which peer on. */
  auditAt: number
  auditFrom: number
  /** Who shares it, as it was last asked for, and when that was; undefined: never. */
  roster: readonly string[]
  rosterAt: number | undefined
}

/**
 * All instances that balance the same groups, as this one knows them: tells them what it has seen and takes in what they
 * have, a round trip for each group and interval. Nobody waits for it, and nothing needs it: without it every instance
 * goes by what it sees itself.
 */
export class Fleet implements FleetFacts, Board {
  readonly options: FleetOptions
  readonly id: string
  readonly #env: FleetEnv
  readonly #link: Link
  readonly #samples: Samples
  readonly #records = new Set<(upstream: Upstream, records: ReadonlyMap<string, Buffer>) => void>()
  /** By lower-case name. */
  #groups = new Map<string, Shared>()
  #cancel: (() => void) | undefined
  #stopped = false
  #exchanges = 0
  #failures = 0
  #roundTripMs: number | undefined
  #fault: string | undefined
  #required: boolean
  /** When anything was heard last, monotonic milliseconds; undefined: never. */
  #heardAt: number | undefined
  #saidLossAt = Number.NEGATIVE_INFINITY

  /** @param before the fleet in whose place this one comes: what it heard last counts for readiness */
  constructor(options: FleetOptions, env: FleetEnv, before?: Fleet) {
    this.options = options
    this.#env = env
    this.#required = options.required
    this.#heardAt = before?.silence === undefined ? undefined : env.now() - before.silence
    this.id = `${options.name}~${randomBytes(4).toString('hex')}`
    this.#link = new Link(options, env)
    this.#samples = new Samples(options.name, {
      ...env,
      run: (script, keys, args) => this.#link.run(script, keys, args),
    })
    this.#link.listen((up) => {
      if (!up) this.#samples.forget()
      // The others wait for what there is to tell as much as this one for them.
      if (up) {
        this.#heardAt = env.now()
        this.#tick()
      } else for (const { ledger } of this.#groups.values()) ledger.takeFair()
    })
  }

  /** Shares these groups from now on, and no others. */
  use(upstreams: Iterable<Upstream>): void {
    const before = this.#groups
    this.#groups = new Map()
    for (const upstream of upstreams) {
      if (!upstream.fleet) continue
      const name = upstream.name.toLowerCase()
      const known = before.get(name)
      if (known && known.ledger.upstream.zone === upstream.zone) {
        known.ledger.use(upstream)
        before.delete(name)
        this.#groups.set(name, known)
        continue
      }
      const keys = groupKeys(this.options.prefix, this.options.group, name)
      const ledger = new Ledger(upstream, this.options.ttl)
      const shared = { ledger, keys, pending: false, aloneAt: undefined, saidAlone: false }
      const auditFrom = Math.floor(this.#env.random() * 1000)
      const asked = { auditAt: this.#nextAudit(1), auditFrom, roster: [], rosterAt: undefined }
      this.#groups.set(name, { ...shared, ...asked })
    }
    for (const shared of before.values()) void this.#depart(shared, false)
    this.#samples.use(
      Array.from(this.#groups.values(), ({ ledger, keys }) => ({
        upstream: ledger.upstream,
        keys,
        members: () => ledger.members,
      })),
    )
  }

  /** @param required whether readiness asks for it from now on */
  require(required: boolean): void {
    this.#required = required
    this.#link.require(required)
  }

  start(): void {
    this.#link.start()
    this.#samples.start()
    this.#arm()
  }

  /**
   * Takes leave of the others. Ends soon, whatever Redis does; never rejects.
   * @param replaced whether another fleet comes in the place of this one
   */
  async stop(replaced = false): Promise<void> {
    this.#stopped = true
    this.#cancel?.()
    // What is still to be heard must not be taken in any more.
    const groups = this.#groups
    this.#groups = new Map()
    const departures = Array.from(groups.values(), (shared) => this.#depart(shared, replaced))
    await Promise.all([...departures, this.#samples.stop()])
    await this.#link.stop()
  }

  /** Resolves once every group has been heard of and every common limit has a lease, or after so many milliseconds. */
  async heard(ms: number): Promise<void> {
    const { now, after } = this.#env
    const end = now() + ms
    const missing = () =>
      Array.from(this.#groups.values()).some(({ ledger }) => ledger.heardAt === undefined || ledger.without)
    while (missing() && now() < end) await new Promise<void>((go) => after(5, go))
  }

  #arm(): void {
    this.#cancel?.()
    const { interval } = this.options
    this.#cancel = this.#env.after(interval * (1 - jitter + 2 * jitter * this.#env.random()), () =>
      this.#tick(),
    )
  }

  #tick(): void {
    // Redis may be found again while it is being left.
    if (this.#stopped) return
    this.#arm()
    for (const shared of this.#groups.values()) {
      const { ledger, pending } = shared
      if (this.#env.now() - (ledger.heardAt ?? Number.NEGATIVE_INFINITY) > this.options.ttl) ledger.cutOff()
      if (pending) continue
      if (this.#link.up) void this.#exchange(shared)
      else {
        ledger.skip()
        // An answer may just have been on its way when Redis was lost, and a reload may have brought another limit.
        ledger.takeFair()
      }
    }
  }

  async #exchange(shared: Shared): Promise<void> {
    const { ledger, keys } = shared
    const { now } = this.#env
    const { ttl } = this.options
    const startedAt = now()
    const telling = ledger.gather(startedAt)
    shared.pending = true
    try {
      const args = [
        this.keep,
        this.id,
        ttl,
        ledger.epoch,
        ledger.version,
        telling.requests,
        telling.retries,
        ledger.mostMembers,
        keys.told,
        ...packUpdates(telling.updates),
      ]
      const names = [keys.state, keys.changed, keys.members, keys.told + this.id]
      const heard = readHeard(await this.#link.run(exchange, names, args), telling.updates)
      const endedAt = now()
      this.#exchanges += 1
      this.#roundTripMs = endedAt - startedAt
      this.#fault = undefined
      this.#heardAt = endedAt
      // A reload may have taken the group away meanwhile.
      if (this.#groups.get(ledger.upstream.name.toLowerCase()) !== shared) return
      const { resets } = ledger
      ledger.hear(telling, heard, (startedAt + endedAt) / 2, endedAt)
      if (ledger.resets > resets) {
        this.#warnLoss(endedAt)
        this.#samples.forget()
      }
      this.#warnAlone(shared, endedAt)
      if (heard.probes.size > 0) for (const hear of this.#records) hear(ledger.upstream, heard.probes)
      if (endedAt >= shared.auditAt) void this.#audit(shared)
    } catch (error) {
      this.#lost(ledger, telling, error)
    } finally {
      shared.pending = false
    }
  }

  /** All instances together look at a group about as often, however many there are; what is wrong may be their number. */
  #nextAudit(members: number): number {
    const times = Math.min(50, Math.max(1, members / 4))
    return this.#env.now() + this.options.ttl * times * (0.5 + this.#env.random())
  }

  async #audit(shared: Shared): Promise<void> {
    const { ledger, keys } = shared
    const { peers, backups } = ledger.upstream
    const names = [...peers, ...backups].map(peerId)
    const fields = auditFields(names, shared.auditFrom, ledger.members)
    shared.auditFrom += fields.length
    shared.auditAt = this.#nextAudit(ledger.members)
    try {
      await this.#link.run(audit, [keys.state, keys.changed, keys.members], [this.keep, keys.told, ...fields])
    } catch {
      // An exchange that fails says so, and the next time will do.
    }
  }

  #lost(ledger: Ledger, telling: Telling, error: unknown): void {
    this.#failures += 1
    this.#fault = error instanceof Error ? error.message : String(error)
    ledger.lose(telling)
  }

  async #depart({ ledger, keys }: Shared, replaced: boolean): Promise<void> {
    ledger.end(replaced)
    if (!this.#link.up) return
    try {
      await this.#link.run(departure, [keys.state, keys.changed, keys.members], [this.keep, this.id])
    } catch {
      // Its parts go after `ttl`.
    }
  }

  /** Of all groups together: they are lost together. */
  #warnLoss(now: number): void {
    if (now - this.#saidLossAt < lossEvery) return
    this.#saidLossAt = now
    this.#env.say('warn', `fleet: what was shared is gone from ${this.#link.name}; beginning anew`)
  }

  #warnAlone(shared: Shared, now: number): void {
    if (!shared.ledger.alone) {
      shared.aloneAt = undefined
      return
    }
    shared.aloneAt ??= now
    if (shared.saidAlone || now - shared.aloneAt < aloneTimes * this.options.ttl) return
    shared.saidAlone = true
    const { name } = shared.ledger.upstream
    const { group } = this.options
    this.#env.say(
      'warn',
      `fleet: no other instance of group "${group}" has a peer of upstream "${name}" that this one has; ` +
        'where several apps use one Redis, each needs a group of its own',
    )
  }

  // For the admin server.

  get group(): string {
    return this.options.group
  }
  get name(): string {
    return this.options.name
  }
  get servers(): readonly string[] {
    return this.#link.servers
  }
  get up(): boolean {
    return this.#link.up
  }
  get since(): number {
    return this.#link.since
  }
  get error(): string | undefined {
    return this.#link.error ?? this.#fault
  }
  get required(): boolean {
    return this.#required
  }
  get refused(): boolean {
    return this.#link.refused
  }
  get silence(): number | undefined {
    if (this.#heardAt === undefined) return undefined
    // Where nothing is shared there is nothing to be heard.
    return this.up && this.#groups.size === 0 ? 0 : this.#env.now() - this.#heardAt
  }
  get interval(): number {
    return this.options.interval
  }
  get ttl(): number {
    return this.options.ttl
  }
  get exchanges(): number {
    return this.#exchanges
  }
  get failures(): number {
    return this.#failures
  }
  get losses(): number {
    return this.#link.losses
  }
  get roundTripMs(): number | undefined {
    return this.#roundTripMs
  }

  upstream(upstream: Upstream): FleetGroupFacts | undefined {
    const { ledger } = this.#groups.get(upstream.name.toLowerCase()) ?? {}
    if (ledger === undefined) return undefined
    const { members, heardAt, resets } = ledger
    return { members, age: heardAt === undefined ? undefined : this.#env.now() - heardAt, resets }
  }

  roster(upstream: Upstream): readonly string[] {
    const shared = this.#groups.get(upstream.name.toLowerCase())
    if (shared === undefined || !this.#link.up) return []
    if (this.#env.now() - (shared.rosterAt ?? Number.NEGATIVE_INFINITY) >= rosterEvery)
      void this.#list(shared)
    return shared.roster
  }

  async #list(shared: Shared): Promise<void> {
    shared.rosterAt = this.#env.now()
    try {
      shared.roster = readRoster(await this.#link.run(roster, [shared.keys.members], [this.options.ttl]))
    } catch {
      // An exchange that fails says so, and the next time will do.
    }
  }

  peer(upstream: Upstream, peer: Peer): FleetPeerFacts | undefined {
    return this.#groups.get(upstream.name.toLowerCase())?.ledger.about(peer, this.#env.now())
  }

  samples(
    upstream: Upstream,
    tracks: readonly string[],
    from: number,
    to: number,
  ): Promise<FleetSamples | undefined> {
    return this.#samples.hear(upstream, tracks, from, to)
  }

  // For probes.

  get prefix(): string {
    return this.options.prefix
  }

  /** Long after every instance has gone, or one has been away for good. */
  get keep(): number {
    return Math.max(60_000, 10 * this.options.ttl)
  }

  onChange(hear: (up: boolean) => void): () => void {
    return this.#link.listen(hear)
  }

  onRecords(hear: (upstream: Upstream, records: ReadonlyMap<string, Buffer>) => void): () => void {
    this.#records.add(hear)
    return () => this.#records.delete(hear)
  }

  keys(upstream: Upstream): GroupKeys | undefined {
    return this.#groups.get(upstream.name.toLowerCase())?.keys
  }

  run(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number | Buffer)[],
  ): Promise<unknown> {
    return this.#link.run(script, keys, args)
  }

  connect(): Redis | Cluster {
    return this.#link.connect()
  }
}
