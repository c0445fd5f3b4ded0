import { setTimeout as sleep } from 'node:timers/promises'
import { ensure } from '../../scripts/ensure.ts'
import { freePort } from './free-port.ts'
import { RedisServer, type RedisServerOptions } from './redis-server.ts'

export type { RedisServer } from './redis-server.ts'

/** Starts a server, and waits until it answers. */
export async function redisServer(options: RedisServerOptions = {}): Promise<RedisServer> {
  await ensure(['redis-server'])
  for (let tries = 0; tries < 5; tries++) {
    const server = new RedisServer(options.port ?? (await freePort()), options)
    if (await server.start()) return server
    await server.stop()
    if (options.port !== undefined) break
  }
  throw new Error(`no port for redis-server${options.port === undefined ? '' : `: ${options.port} is taken`}`)
}

/** Servers that are one cluster. */
export interface RedisCluster extends AsyncDisposable {
  /** All are masters, and each has an equal part of the slots, in this order. */
  readonly nodes: readonly RedisServer[]
  readonly urls: readonly string[]
  stop(): Promise<void>
}

/** Starts a cluster, and waits until all its nodes agree that it works, which takes about two seconds. */
export async function redisCluster(options: { readonly nodes?: number } = {}): Promise<RedisCluster> {
  const nodes = await Promise.all(
    Array.from({ length: options.nodes ?? 3 }, async () =>
      redisServer({
        config: {
          'cluster-enabled': 'yes',
          // The usual one is ten thousand above, where connections have their source ports.
          'cluster-port': String(await freePort()),
          'cluster-node-timeout': '2000',
        },
      }),
    ),
  )
  const stop = () => stopAll(nodes)
  try {
    const [first] = nodes
    for (const [index, node] of nodes.entries()) {
      const begin = Math.floor((16_384 * index) / nodes.length)
      const end = Math.floor((16_384 * (index + 1)) / nodes.length) - 1
      await node.command('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
      await node.command('CLUSTER', 'ADDSLOTSRANGE', begin, end)
      const [, busPort] = (await first!.command('CONFIG', 'GET', 'cluster-port')) as string[]
      if (node !== first) await node.command('CLUSTER', 'MEET', '127.0.0.1', first!.port, busPort!)
    }
    for (const node of nodes) {
      await until(`the cluster of ${node.url} works`, async () => {
        const info = String(await node.command('CLUSTER', 'INFO'))
        return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${nodes.length}`)
      })
    }
  } catch (error) {
    await stop()
    throw error
  }
  return { nodes, urls: nodes.map((node) => node.url), stop, [Symbol.asyncDispose]: stop }
}

/** A master and a replica, watched by sentinels, one of which is enough to let the replica take over. */
export interface RedisSentinels extends AsyncDisposable {
  /** What the sentinels call the master. */
  readonly name: string
  readonly urls: readonly string[]
  readonly sentinels: readonly RedisServer[]
  /** As it began. */
  readonly master: RedisServer
  readonly replica: RedisServer
  /** Kills the server that is the master at the time; the other takes over after a second or two. */
  killMaster(): Promise<void>
  stop(): Promise<void>
}

/** Starts them, and waits until every sentinel knows of the replica, without which there is nobody to take over. */
export async function redisSentinels(
  options: {
    readonly sentinels?: number
    /** For the sentinels, and for the servers. */
    readonly sentinelConfig?: RedisServerOptions['config']
    readonly config?: RedisServerOptions['config']
  } = {},
): Promise<RedisSentinels> {
  const name = 'shop-master'
  const started: RedisServer[] = []
  const begin = async (its: RedisServerOptions) => {
    const server = await redisServer(its)
    started.push(server)
    return server
  }
  const stop = () => stopAll(started)
  try {
    // The replica asks at once for a copy, which is sent over the connection without a delay.
    const config = { 'repl-diskless-sync': 'yes', 'repl-diskless-sync-delay': '0', ...options.config }
    const master = await begin({ config })
    const replica = await begin({ config: { ...config, replicaof: `127.0.0.1 ${master.port}` } })
    await until('the replica has its copy', async () =>
      String(await replica.command('INFO', 'replication')).includes('master_link_status:up'),
    )
    const sentinels: RedisServer[] = []
    for (let index = 0; index < (options.sentinels ?? 1); index++) {
      const watch = [`monitor ${name} 127.0.0.1 ${master.port} 1`, `down-after-milliseconds ${name} 500`]
      const password = options.config?.['requirepass']
      const known = password === undefined ? [] : [`auth-pass ${name} ${password}`]
      const sentinel = [...watch, `failover-timeout ${name} 2000`, ...known]
      sentinels.push(await begin({ sentinel: true, config: { sentinel, ...options.sentinelConfig } }))
    }
    for (const sentinel of sentinels) {
      await until('the sentinels know the replica', async () => {
        const known = (await sentinel.command('SENTINEL', 'replicas', name)) as string[][]
        return known.some((fields) => fields[fields.indexOf('master-link-status') + 1] === 'ok')
      })
    }
    const killMaster = async () => {
      for (const server of [master, replica]) {
        if (server.pid === undefined) continue
        const role = (await server.command('ROLE')) as unknown[]
        if (role[0] === 'master') return await server.kill()
      }
    }
    const urls = sentinels.map((sentinel) => sentinel.url)
    return { name, urls, sentinels, master, replica, killMaster, stop, [Symbol.asyncDispose]: stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function stopAll(servers: readonly RedisServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.stop()))
}

async function until(what: string, done: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 15_000
  while (!(await done())) {
    if (performance.now() > end) throw new Error(`it is not so that ${what}`)
    await sleep(30)
  }
}
