import type { FleetOptions } from './options.ts'

/** Where a server, or a sentinel, is, and as whom to ask it. */
export interface RedisAddress {
  readonly host: string
  readonly port: number
  readonly user: string | undefined
  readonly password: string | undefined
  /** Number of the database. */
  readonly db: number
  readonly tls: boolean
  /** `host:port`, for people, and `/DATABASE` where that is not 0. */
  readonly name: string
}

/**
 * The addresses of the URLs. What a URL says of user and password is for the server it names: with `sentinel` that is
 * the sentinel.
 */
export function redisAddresses(options: FleetOptions): readonly RedisAddress[] {
  return options.urls.map((text) => {
    const url = new URL(text)
    const bare = url.hostname.replace(/^\[(.*)\]$/, '$1')
    const host = bare === '' ? '127.0.0.1' : decodeURIComponent(bare)
    const port = Number(url.port) || (options.sentinel === undefined ? 6379 : 26_379)
    const db = Number(/^\/(\d+)$/.exec(url.pathname)?.[1] ?? 0)
    return {
      host,
      port,
      user: decoded(url.username),
      password: decoded(url.password),
      db,
      tls: url.protocol === 'rediss:',
      name: hostPort(host, port) + (db === 0 || options.sentinel !== undefined ? '' : `/${db}`),
    }
  })
}

export function hostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function decoded(text: string): string | undefined {
  return text === '' ? undefined : decodeURIComponent(text)
}

/** What the servers are called in a line for people. */
export function serversName(options: FleetOptions, addresses: readonly RedisAddress[]): string {
  const names = addresses.map((address) => address.name).join(', ')
  if (options.cluster) return `redis cluster at ${names}`
  if (options.sentinel === undefined) return `redis at ${names}`
  const db = addresses[0]?.db ?? 0
  return `redis ${options.sentinel}${db === 0 ? '' : `/${db}`} of the sentinels at ${names}`
}
