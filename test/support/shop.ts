import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, Backends, type Exchange } from './backend.ts'
import { eventually } from './invariants.ts'
import { type Sidecar, type SidecarOptions, start } from './sidecar.ts'
import { type LoadOptions, SteadyLoad } from './steady-load.ts'

/** A peer of the shop: what it was asked, by whom, and how it answers. */
export class Peer {
  readonly backend: Backend
  /** What probes get. */
  health = 200
  /** Whether requests of clients are reset. */
  resets = false
  /** Port of the instance whose next request fails, and no other. */
  failsNext: number | undefined
  /** Requests of clients, and moments of probes of the instances that share, monotonic milliseconds. */
  requests = 0
  probedAt: number[] = []
  /** Moments of the requests of clients, where a test wants them. */
  askedAt: number[] | undefined
  /** Requests of clients in progress now, and most at once since a test set it back. */
  busy = 0
  peak = 0
  /** Milliseconds that an answer takes. */
  after = 0

  constructor(backend: Backend) {
    this.backend = backend
    backend.script = (exchange) => this.#answer(exchange)
  }

  get address(): string {
    return this.backend.address
  }

  async #answer(exchange: Exchange): Promise<void> {
    // There are many of them.
    this.backend.requests.length = 0
    if (exchange.target.startsWith('/health')) {
      if (exchange.target === '/health') this.probedAt.push(performance.now())
      return exchange.reply({ status: this.health })
    }
    this.requests += 1
    this.askedAt?.push(performance.now())
    if (this.resets) return exchange.reset()
    if (this.failsNext !== undefined && exchange.head.header('x-port') === `${this.failsNext}`) {
      this.failsNext = undefined
      return exchange.reply({ status: 503 })
    }
    this.busy += 1
    this.peak = Math.max(this.peak, this.busy)
    if (this.after > 0) await Promise.race([sleep(this.after), exchange.gone])
    // Before the answer: who gets it may ask again at once.
    this.busy -= 1
    await exchange.reply({ body: 'goods' })
  }

  /** Probes since a moment. */
  probesSince(at: number): number {
    return this.probedAt.filter((probed) => probed >= at).length
  }
}

/** Lines that tell of a peer's state. */
const stateLine = /is (unhealthy|healthy|checking|unavailable|down|draining|up)\b|disabled|enabled again/

/** One program of the shop, and its clients. */
export class Instance {
  readonly name: string
  readonly sidecar: Sidecar
  load: SteadyLoad | undefined

  constructor(name: string, sidecar: Sidecar) {
    this.name = name
    this.sidecar = sidecar
  }

  /** @returns undefined where there is no such series */
  async metric(name: string): Promise<number | undefined> {
    const signal = AbortSignal.timeout(5000)
    const text = await (await fetch(`${this.sidecar.admin}/metrics`, { signal })).text()
    const line = text.split('\n').find((one) => one.startsWith(`${name} `) || one.startsWith(`${name}{`))
    return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ') + 1))
  }

  get up(): Promise<number | undefined> {
    return this.metric('evenkeel_fleet_up')
  }
  get exchanges(): Promise<number | undefined> {
    return this.metric('evenkeel_fleet_exchanges_total')
  }
  get members(): Promise<number | undefined> {
    return this.metric('evenkeel_upstream_fleet_members')
  }

  #lines(): string[] {
    return this.sidecar.stderr.split('\n')
  }
  /** What the log says of the fleet, without the time. */
  get fleetLines(): string[] {
    return this.#lines().flatMap((line) => /\[\w+\] .*?(?=fleet: )fleet: .*/.exec(line)?.[0] ?? [])
  }
  /** What it says of the states of peers. */
  get stateLines(): string[] {
    return this.#lines().filter((line) => stateLine.test(line) && !line.includes(' fleet: '))
  }
}

export interface ShopOptions {
  /** Of the directive `fleet` without the name, for each instance. */
  readonly fleets: readonly string[]
  /** Whether there is a program beside them that shares nothing, to compare with. Default true. */
  readonly alone?: boolean
  /** Of the shared probe, milliseconds. Default 400. */
  readonly probeMs?: number
  /** Of `max_conns` of the first peer. Default 50. */
  readonly most?: number
  readonly load?: LoadOptions
  readonly start?: SidecarOptions
}

/** What takes part in a test: two good peers, one that probes find ill, and one that resets what it is asked. */
export class Shop implements AsyncDisposable {
  readonly #backends = new Backends()
  readonly instances: Instance[] = []
  readonly #options: ShopOptions
  good: Peer[] = []
  ill!: Peer
  broken!: Peer
  /** Shares nothing. */
  alone: Instance | undefined
  readonly probeMs: number

  constructor(options: ShopOptions) {
    this.#options = options
    this.probeMs = options.probeMs ?? 400
  }

  async open(): Promise<this> {
    const { fleets, alone = true, start: how } = this.#options
    const made: Peer[] = []
    for (let i = 0; i < 4; i++) made.push(new Peer(await this.#backends.add({})))
    const [one, two, ill, broken] = made as [Peer, Peer, Peer, Peer]
    this.good = [one, two]
    this.ill = ill
    this.broken = broken
    ill.health = 503
    broken.resets = true
    // One after the other: each takes a processor for a while.
    for (const [i, fleet] of fleets.entries()) {
      const name = `i${i + 1}`
      this.instances.push(new Instance(name, await start(this.config(`fleet ${fleet} name=${name};`), how)))
    }
    if (alone) this.alone = new Instance('alone', await start(this.config('')))
    return this
  }

  /** @param fleet the directive; empty: it shares nothing */
  config(fleet: string, probeMs = this.probeMs): string {
    const { most = 50 } = this.#options
    const [one, two] = this.good
    const scope = fleet === '' ? 'uri=/health?alone' : 'uri=/health scope=fleet'
    const conns = `max_conns=${most}${fleet === '' ? '' : ' max_conns_scope=fleet'}`
    return `${fleet}
http {
  access_log off;
  upstream shop {
    zone shop 64k;
    least_time header;
    server ${one!.address} ${conns};
    server ${two!.address};
    server ${this.ill.address};
    server ${this.broken.address} max_fails=1 fail_timeout=1h;
    keepalive 16;
  }
  server {
    listen 127.0.0.1:PORT;
    location / {
      proxy_pass http://shop;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header X-Port $server_port;
      proxy_next_upstream error timeout http_503;
      upstream_probe health ${scope} interval=${probeMs}ms fails=2 passes=2;
    }
  }
}`
  }

  get all(): Instance[] {
    return this.alone === undefined ? this.instances : [...this.instances, this.alone]
  }

  /** Clients begin to ask, once every instance has found out which peers are of no use. */
  async begin(): Promise<void> {
    for (const instance of this.all) {
      instance.load = new SteadyLoad(instance.sidecar.port, this.#options.load)
      await eventually(
        `${instance.name} knows its peers`,
        () => instance.stateLines.length === 2,
        10_000,
      ).catch((error: unknown) => {
        throw new Error(`${error}; standard error:\n${instance.sidecar.stderr}`)
      })
    }
    const bad = this.all.flatMap(({ load }) => load?.failures)
    assert.deepEqual(bad, [])
  }

  /** Waits until all instances share. */
  async together(withinMs = 10_000, instances = this.instances): Promise<void> {
    const end = performance.now() + withinMs
    for (const instance of instances) {
      const left = () => Math.max(0, end - performance.now())
      await eventually(`${instance.name} has Redis`, async () => (await instance.up) === 1, left())
      const before = (await instance.exchanges)!
      await eventually(
        `${instance.name} tells and hears`,
        async () => (await instance.exchanges)! > before + 1,
        left(),
      )
      await eventually(
        `${instance.name} sees all`,
        async () => (await instance.members) === instances.length,
        left(),
      )
    }
  }

  /** Waits until no instance has Redis. */
  async apart(withinMs = 6000, instances = this.instances): Promise<void> {
    for (const instance of instances) {
      await eventually(`${instance.name} misses Redis`, async () => (await instance.up) === 0, withinMs)
    }
  }

  /** Asserts that each good peer is asked once an interval by all instances together. */
  async oneProbe(withinMs = 10_000): Promise<void> {
    const window = 4 * this.probeMs
    const counts = (): number[] => this.good.map((peer) => peer.probesSince(performance.now() - window))
    await eventually(
      'all probe as one',
      () => counts().every((count) => count >= 3 && count <= 5),
      withinMs + window,
    ).catch((error: unknown) => {
      throw new Error(`${error}; probes in four intervals: ${counts().join(' ')}`)
    })
  }

  /** What has to stay as it is from now on. */
  watch(): Watch {
    return new Watch(this)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { load } of this.all) await load?.stop()
    await Promise.all(this.all.map(({ sidecar }) => sidecar.stop()))
    await this.#backends[Symbol.asyncDispose]()
  }
}

/** Compares what happens to clients and peers from one moment on with what did before. */
export class Watch {
  readonly #shop: Shop
  readonly at = performance.now()
  readonly #states: readonly number[]
  readonly #lines: readonly number[]
  readonly #bad: number

  constructor(shop: Shop) {
    this.#shop = shop
    this.#states = shop.all.map(({ stateLines }) => stateLines.length)
    this.#lines = shop.instances.map(({ fleetLines }) => fleetLines.length)
    this.#bad = shop.ill.requests + shop.broken.requests
  }

  /** What each instance has said of the fleet since. */
  get fleetLines(): string[][] {
    return this.#shop.instances.map(({ fleetLines }, i) => fleetLines.slice(this.#lines[i]))
  }

  /** Asserts that no request has failed since, and that no peer has changed its state or was asked that is out. */
  untouched(): void {
    const { all, ill, broken } = this.#shop
    for (const [i, { name, load, stateLines, sidecar }] of all.entries()) {
      assert.deepEqual(load?.failures, [], name)
      assert.deepEqual(stateLines.slice(this.#states[i]), [], name)
      assert.ok(sidecar.running, name)
      assert.doesNotMatch(sidecar.stderr, /\[(alert|emerg|crit)\]|Unhandled|CROSSSLOT|MOVED/, name)
    }
    assert.equal(ill.requests + broken.requests, this.#bad, 'peers that are out are not asked')
  }

  /**
   * Asserts that answers have come as fast as in a quiet time, or as those of the program that shares nothing.
   * @param quiet from and to
   */
  async fast(quiet: readonly [number, number]): Promise<void> {
    // Fewer answers would say little.
    await sleep(Math.max(0, this.at + 1500 - performance.now()))
    const { instances, alone, all } = this.#shop
    // And so would those that a busy machine was late with. One that is never quiet is judged by what there is.
    const quietly = () => all.every(({ load }) => load!.calm(this.at, performance.now()).length >= 100)
    await eventually('enough answers came in quiet', quietly, 5000).catch(() => {})
    const to = performance.now()
    const unshared = alone?.load?.p99(this.at, to) ?? 0
    for (const { name, load } of instances) {
      const usual = Math.max(unshared, load!.p99(...quiet))
      const now = load!.p99(this.at, to)
      // Whoever waits for Redis waits for its time-out of 100 ms; by less than that a busy machine may be slower.
      assert.ok(now <= 2 * usual + 60, `${name}: ${now} ms of 99 in 100, usually ${usual} ms`)
    }
  }
}

/** Starts peers and instances, and waits until they share. */
export function shop(options: ShopOptions): Promise<Shop> {
  return new Shop(options).open()
}
