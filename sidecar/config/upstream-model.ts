import type { StickyLine } from './sticky-model.ts'

/** Groups in the model, of `http` and of `stream`, and where their hosts are looked up. */

/**
 * A group. At most one method's key is set (the last that was written), named like the method in
 * balance/methods.ts; use `methodOf` in check/upstreams.ts to find it. Without one the method is round robin.
 */
export interface UpstreamBlock extends Resolving {
  readonly servers?: readonly ServerLine[]
  readonly zone?: { readonly name: string; readonly size?: string }
  readonly hash?: MethodArgs
  readonly ip_hash?: MethodArgs
  readonly least_conn?: MethodArgs
  readonly random?: MethodArgs
  readonly least_time?: MethodArgs
  readonly feedback?: MethodArgs
  readonly split?: SplitLine
  /** A method by its name, with its arguments: one key. Round robin is `round_robin` here. */
  readonly shadow?: Readonly<Record<string, MethodArgs>>
  /** Idle connections to keep, a group and thread; 0 for none. */
  readonly keepalive?: number
  readonly keepalive_requests?: number
  readonly keepalive_time?: string
  readonly keepalive_timeout?: string
  /** 0 to 99. */
  readonly response_time_factor?: number
  /** Keeps the group out of the fleet. */
  readonly fleet?: 'off'
  readonly sticky?: StickyLine
  /** Mixed into ids of peers before clients see them. May have variables. */
  readonly sticky_secret?: string
  /** Whether a request whose peer cannot take it is refused instead of going elsewhere. */
  readonly sticky_strict?: boolean
  /** How many requests may wait in each thread where nobody is ready, and for how long (`60s` where absent). */
  readonly queue?: { readonly number: number; readonly timeout?: string }
  readonly backup_switch?: BackupSwitch
}

/** A method's own arguments; the method's schema has checked them. `true` where there are none. */
export type MethodArgs = true | Readonly<Record<string, string | number | boolean>>

/** Requests stay with the list of peers, primaries or backups, that took the last one. */
export interface BackupSwitch {
  /** `true`: until that list has nobody; a time: the primaries are tried again so long after the switch. */
  readonly permanent: true | string
}

/** Which tracks requests go to. At least one of the first two stands. */
export interface SplitLine {
  /** The variable whose value may name a track, with its `$`. */
  readonly by?: string
  /** Percent by track, with two decimals at most, above 0; at most 100 in all. */
  readonly percent?: Readonly<Record<string, number>>
  /** May have variables, and has one. Stands together with `percent`. */
  readonly key?: string
}

/** A `server` line of a group. Names of hosts are looked up when the program starts, not at load. */
export interface ServerLine {
  /** `host[:port]`, `[v6][:port]` or `unix:/path`, exactly as written; see `serverAddress` in address.ts. */
  readonly address: string
  readonly weight?: number
  readonly max_conns?: number
  readonly max_conns_scope?: 'instance' | 'fleet'
  readonly max_fails?: number
  readonly fail_timeout?: string
  readonly slow_start?: string
  readonly backup?: true
  readonly down?: true
  /** Takes only requests of sessions that are bound to it. Never together with `down`. */
  readonly drain?: true
  readonly sid?: string
  /** Addresses of its host are followed while the program runs. */
  readonly resolve?: true
  /** Addresses and ports are those of SRV records, `_service._tcp.host`. Stands together with `resolve`. */
  readonly service?: string
  readonly track?: string
}

/** Where the hosts of groups are looked up, for `http` or `stream` as a whole or for one group. */
export interface Resolving {
  /** Without it the servers of `/etc/resolv.conf`; `off` for nobody. */
  readonly resolver?: 'off' | ResolverLine
  /** `30s` where absent. */
  readonly resolver_timeout?: string
}

export interface ResolverLine {
  /** At least one `host`, `host:port` or `[v6]:port`; 53 where there is no port. */
  readonly addresses: readonly string[]
  /** How long answers are good, whatever they say themselves. */
  readonly valid?: string
  /** Whether IPv6 addresses are asked for; `on` where absent. */
  readonly ipv6?: 'on' | 'off'
  /** Whether IPv4 addresses are; `on` where absent. */
  readonly ipv4?: 'on' | 'off'
  /** Name under which its queries are counted in the status tree. */
  readonly status_zone?: string
}
