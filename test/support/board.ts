import { Cluster, Redis, type RedisOptions } from 'ioredis'
import type { Board } from '../../feedback/fleet/board.ts'
import { type GroupKeys, groupKeys } from '../../feedback/fleet/keys.ts'
import type { Script } from '../../feedback/fleet/script.ts'
import type { Upstream } from '../../feedback/upstream.ts'

type Settings = Pick<
  RedisOptions,
  'commandTimeout' | 'enableOfflineQueue' | 'autoResendUnfulfilledCommands' | 'maxRetriesPerRequest'
>

/** The least board that there can be: one connection, and an exchange that only reads what has changed. */
export class TestBoard implements Board {
  readonly id: string
  readonly keep = 60_000
  readonly group = 'app'
  readonly prefix = 'evenkeel'
  /** Scripts that were run, by name. */
  readonly ran: string[] = []
  /** Connections that were asked for beside the board's own. */
  readonly opened: (Redis | Cluster)[] = []
  up = false
  readonly #ports: readonly number[]
  readonly #cluster: boolean
  readonly #client: Redis | Cluster
  readonly #upstreams: readonly Upstream[]
  readonly #changes = new Set<(up: boolean) => void>()
  readonly #records = new Set<(upstream: Upstream, records: ReadonlyMap<string, Buffer>) => void>()
  readonly #since = new Map<Upstream, { epoch: string; version: number }>()
  readonly #timer: NodeJS.Timeout
  #busy = false

  constructor(id: string, ports: readonly number[], upstreams: readonly Upstream[], cluster = false) {
    this.id = id
    this.#ports = ports
    this.#cluster = cluster
    this.#upstreams = upstreams
    // What was not answered is not asked again behind the back of whoever asked.
    const once = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 }
    this.#client = this.#make({ ...once, commandTimeout: 300, enableOfflineQueue: cluster })
    this.#client.on('ready', () => this.#turn(true))
    this.#client.on('close', () => this.#turn(false))
    void this.#client.connect().catch(() => {})
    this.#timer = setInterval(() => void this.#exchange(), 40)
  }

  #make(options: Settings): Redis | Cluster {
    const common = { connectTimeout: 300, disconnectTimeout: 50, maxRetriesPerRequest: null, ...options }
    const made = this.#cluster
      ? new Cluster(
          this.#ports.map((port) => ({ host: '127.0.0.1', port })),
          { lazyConnect: true, clusterRetryStrategy: () => 50, redisOptions: common },
        )
      : new Redis({
          host: '127.0.0.1',
          port: this.#ports[0]!,
          lazyConnect: true,
          retryStrategy: () => 50,
          ...common,
        })
    made.on('error', () => {})
    return made
  }

  onChange(hear: (up: boolean) => void): () => void {
    this.#changes.add(hear)
    return () => this.#changes.delete(hear)
  }

  onRecords(hear: (upstream: Upstream, records: ReadonlyMap<string, Buffer>) => void): () => void {
    this.#records.add(hear)
    return () => this.#records.delete(hear)
  }

  keys(upstream: Upstream): GroupKeys {
    return groupKeys(this.prefix, this.group, upstream.name)
  }

  async run(script: Script, keys: readonly string[], args: readonly (string | number | Buffer)[]) {
    if (!this.up) throw new Error('redis does not answer')
    this.ran.push(script.name)
    return this.#client.callBuffer('EVAL', script.text, keys.length, ...keys, ...args)
  }

  connect(): Redis | Cluster {
    const made = this.#make({})
    this.opened.push(made)
    return made
  }

  close(): void {
    clearInterval(this.#timer)
    this.#turn(false)
    this.#client.disconnect()
  }

  /** Loses its connection and is not to have another for a while. */
  async cut(ms: number): Promise<void> {
    this.#busy = true
    this.#client.disconnect()
    await new Promise((resolve) => setTimeout(resolve, ms))
    await this.#client.connect()
    this.#busy = false
  }

  #turn(up: boolean): void {
    if (up === this.up) return
    this.up = up
    this.#since.clear()
    for (const hear of this.#changes) hear(up)
  }

  async #exchange(): Promise<void> {
    if (!this.up || this.#busy) return
    this.#busy = true
    try {
      for (const upstream of this.#upstreams) await this.#read(upstream)
    } catch {
      // One that is silent is gone.
      this.#turn(false)
      if (this.#client instanceof Redis) this.#client.disconnect(true)
    } finally {
      this.#busy = false
    }
  }

  async #read(upstream: Upstream): Promise<void> {
    const { state, changed } = this.keys(upstream)
    const [epoch = '', version] = await this.#client.hmget(state, 'epoch', 'version')
    const known = this.#since.get(upstream)
    const since = known?.epoch === epoch ? known.version : 0
    const fields = await this.#client.zrangebyscore(changed, `(${since}`, '+inf')
    this.#since.set(upstream, { epoch: epoch ?? '', version: Number(version ?? 0) })
    if (fields.length === 0) return
    const values = await this.#client.hmgetBuffer(state, ...fields)
    const records = new Map<string, Buffer>()
    for (const [i, field] of fields.entries()) {
      const value = values[i]
      if (value && field.startsWith('r')) records.set(field, value)
    }
    for (const hear of this.#records) hear(upstream, records)
  }
}
