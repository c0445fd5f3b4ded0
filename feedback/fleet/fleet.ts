import { randomBytes } from 'node:crypto'
import type { Cluster, Redis } from 'ioredis'
import type { Peer } from '../peer.ts'
import type { Upstream } from '../upstream.ts'
import type { Board } from './board.ts'
import type { FleetFacts, FleetGroupFacts, FleetPeerFacts, FleetSamples } from './facts.ts'
import { FleetLines } from './fleet-lines.ts'
import type { GroupKeys } from './keys.ts'
import { Link, type LinkEnv } from './link.ts'
import type { FleetOptions } from './options.ts'
import { Samples } from './samples.ts'
import type { Script } from './script.ts'
import { type Fellowship, SharedGroup } from './shared-group.ts'
import { Tally } from './tally.ts'

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
  readonly #tally = new Tally()
  readonly #fellowship: Fellowship
  readonly #records = new Set<(upstream: Upstream, records: ReadonlyMap<string, Buffer>) => void>()
  /** By lower-case name. */
  #groups = new Map<string, SharedGroup>()
  #cancel: (() => void) | undefined
  #stopped = false
  #required: boolean

  /** @param before the fleet in whose place this one comes: what it heard last counts for readiness */
  constructor(options: FleetOptions, env: FleetEnv, before?: Fleet) {
    this.options = options
    this.#env = env
    this.#required = options.required
    this.#tally.heardAt = before?.silence === undefined ? undefined : env.now() - before.silence
    this.id = `${options.name}~${randomBytes(4).toString('hex')}`
    this.#link = new Link(options, env)
    this.#fellowship = {
      options,
      id: this.id,
      keep: this.keep,
      env,
      link: this.#link,
      lines: new FleetLines(options.group, this.#link.name, env),
      tally: this.#tally,
      reset: () => this.#samples.forget(),
      records: (upstream, records) => {
        for (const hear of this.#records) hear(upstream, records)
      },
    }
    this.#samples = new Samples(options.name, {
      ...env,
      run: (script, keys, args) => this.#link.run(script, keys, args),
    })
    this.#link.listen((up) => {
      if (!up) this.#samples.forget()
      // The others wait for what there is to tell as much as this one for them.
      if (up) {
        this.#tally.heardAt = env.now()
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
      this.#groups.set(name, new SharedGroup(upstream, this.#fellowship))
    }
    for (const shared of before.values()) void shared.depart(false)
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
    const departures = Array.from(groups.values(), (shared) => shared.depart(replaced))
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
    for (const shared of this.#groups.values()) shared.round()
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
    return this.#link.error ?? this.#tally.fault
  }
  get required(): boolean {
    return this.#required
  }
  get refused(): boolean {
    return this.#link.refused
  }
  get silence(): number | undefined {
    const { heardAt } = this.#tally
    if (heardAt === undefined) return undefined
    // Where nothing is shared there is nothing to be heard.
    return this.up && this.#groups.size === 0 ? 0 : this.#env.now() - heardAt
  }
  get interval(): number {
    return this.options.interval
  }
  get ttl(): number {
    return this.options.ttl
  }
  get exchanges(): number {
    return this.#tally.exchanges
  }
  get failures(): number {
    return this.#tally.failures
  }
  get losses(): number {
    return this.#link.losses
  }
  get roundTripMs(): number | undefined {
    return this.#tally.roundTripMs
  }

  upstream(upstream: Upstream): FleetGroupFacts | undefined {
    return this.#shared(upstream)?.facts
  }

  roster(upstream: Upstream): readonly string[] {
    return this.#shared(upstream)?.roster ?? []
  }

  peer(upstream: Upstream, peer: Peer): FleetPeerFacts | undefined {
    return this.#shared(upstream)?.ledger.about(peer, this.#env.now())
  }

  samples(
    upstream: Upstream,
    tracks: readonly string[],
    from: number,
    to: number,
  ): Promise<FleetSamples | undefined> {
    return this.#samples.hear(upstream, tracks, from, to)
  }

  #shared(upstream: Upstream): SharedGroup | undefined {
    return this.#groups.get(upstream.name.toLowerCase())
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
    return this.#shared(upstream)?.keys
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
