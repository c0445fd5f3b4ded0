import type { ConnectionOptions } from 'node:tls'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import type { FleetOptions } from './options.ts'
import { type RedisAddress, redisAddresses } from './redis-address.ts'
import { connectorOn, type SentinelQuestion, Sockets } from './redis-connector.ts'
import { inDatabase } from './redis-database.ts'

/** What of ioredis's options is the same for one server and for the nodes of a cluster. */
type Settings = Omit<
  RedisOptions,
  | 'replyMapping'
  | 'himportFieldsets'
  | 'sentinels'
  | 'path'
  | 'host'
  | 'port'
  | 'readOnly'
  | 'retryStrategy'
  | 'enableOfflineQueue'
>

/** What whoever asks for a client may say otherwise. */
export type Overrides = Settings & { readonly enableOfflineQueue?: boolean }

/** How long the server may say nothing before the kernel asks it whether it is there, milliseconds. */
const keepAlive = 10_000

/** A client that connects once, and does nothing of its own accord: whoever holds it decides what comes next. */
export interface Client {
  readonly redis: Redis | Cluster
  readonly sockets: Sockets
}

/**
 * @param attempt counts the clients made for one connection: each begins with another of the sentinels, or servers
 * @param deadline for everything that connecting takes, milliseconds
 * @param silence how long one node of a cluster may owe answers without giving any, milliseconds
 */
export function oneClient(options: FleetOptions, attempt: number, deadline: number, silence: number): Client {
  const sockets = new Sockets()
  const manners: Settings = {
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    connectTimeout: deadline,
  }
  const redis = options.cluster
    ? new Cluster(nodes(options), {
        lazyConnect: true,
        enableReadyCheck: false,
        // Commands wait here only while no node is known, which the holder sees as the end of the client; without it
        // those that come while a node is being connected to would be refused.
        enableOfflineQueue: true,
        clusterRetryStrategy: () => null,
        maxRedirections: 3,
        retryDelayOnFailover: 0,
        retryDelayOnClusterDown: 0,
        slotsRefreshTimeout: deadline / 2,
        redisOptions: {
          ...shared(options),
          ...manners,
          socketTimeout: silence,
          Connector: connectorOn(sockets),
        },
      })
    : inDatabase(
        new Redis({
          ...single(options, attempt, deadline, sockets),
          ...manners,
          retryStrategy: null,
          enableOfflineQueue: false,
        }),
      )
  // Listened to for good: an error may still come when nobody waits for one.
  redis.on('error', () => {})
  return { redis, sockets }
}

/**
 * A client that connects again by itself, for as long as it takes. A command waits for its answer over any number of
 * connections, and is refused while there is none, except in a cluster, where it waits for a node to be connected to.
 */
export function lastingClient(options: FleetOptions, overrides: Overrides): Redis | Cluster {
  const { enableOfflineQueue = options.cluster, ...further } = overrides
  const again = (times: number) => Math.random() * Math.min(2000, 100 * 2 ** Math.min(times, 10)) + 50
  // Longer than any blocking command waits.
  const manners: Settings = { maxRetriesPerRequest: null, connectTimeout: 2000, socketTimeout: 30_000 }
  const redis = options.cluster
    ? new Cluster(nodes(options), {
        lazyConnect: true,
        enableOfflineQueue,
        clusterRetryStrategy: again,
        slotsRefreshTimeout: 1000,
        redisOptions: { ...shared(options), ...manners, Connector: connectorOn(undefined), ...further },
      })
    : inDatabase(
        new Redis({
          ...single(options, 0, 2000, undefined),
          ...manners,
          retryStrategy: again,
          enableOfflineQueue,
          ...further,
        }),
      )
  redis.on('error', () => {})
  return redis
}

/** What holds for every connection to a server that keeps data. */
function shared(options: FleetOptions, address?: RedisAddress): Settings {
  const addresses = redisAddresses(options)
  const own = address ?? addresses.find((one) => one.user !== undefined || one.password !== undefined)
  const tls = (address?.tls ?? addresses.some((one) => one.tls)) ? tlsOptions(options) : undefined
  // A URL's user is a sentinel's where there are sentinels.
  const said = options.sentinel === undefined && (own?.user ?? own?.password) !== undefined ? own : undefined
  const user = said === undefined ? options.user : said.user
  const password = said?.password ?? options.password
  return {
    lazyConnect: true,
    disableClientInfo: true,
    connectionName: `evenkeel:${encodeURIComponent(options.name)}`,
    keepAlive,
    ...(user === undefined ? {} : { username: user }),
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls }),
  }
}

function single(
  options: FleetOptions,
  attempt: number,
  deadline: number,
  sockets: Sockets | undefined,
): Settings & { host?: string; port?: number } {
  const addresses = redisAddresses(options)
  if (options.sentinel !== undefined) {
    const tls = addresses.some((address) => address.tls) ? tlsOptions(options) : undefined
    const question: SentinelQuestion = {
      master: options.sentinel,
      sentinels: addresses,
      tls,
      // So that the last of them, and the master, have their turn before the deadline.
      timeout: deadline / (addresses.length + 1),
      first: attempt,
    }
    return { ...shared(options), db: addresses[0]!.db, Connector: connectorOn(sockets, question) }
  }
  const address = addresses[attempt % addresses.length]!
  const { host, port, db } = address
  return { ...shared(options, address), host, port, db, Connector: connectorOn(sockets) }
}

function nodes(options: FleetOptions): { host: string; port: number }[] {
  return redisAddresses(options).map(({ host, port }) => ({ host, port }))
}

function tlsOptions({ ca, cert, key }: FleetOptions): ConnectionOptions {
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  }
}
