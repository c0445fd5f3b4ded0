import type { Zone } from './zone.ts'

/** Where a peer listens. */
export type Address =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }

/** What the configuration says of a `server` line, in numbers. */
export interface ServerOptions {
  /** Relative share, 1 or more. */
  readonly weight: number
  /** Most requests in progress at once; 0 is unlimited. */
  readonly max_conns: number
  /** Whether that holds for this instance or for all of the fleet together. */
  readonly max_conns_scope: 'instance' | 'fleet'
  /** Failures before the peer is set aside; 0 switches that off. */
  readonly max_fails: number
  /** How long it is set aside, and the quiet time after which failures are forgotten; milliseconds. */
  readonly fail_timeout: number
  /** Ramp after recovery, milliseconds; 0 is none. */
  readonly slow_start: number
  readonly backup: boolean
  readonly down: boolean
  /** Takes only what is bound to it already. */
  readonly drain: boolean
  readonly track: string
  /** Sticky id; the lower-case md5 of `name` unless configured. */
  readonly sid: string
}

/** One address of a server: the configured frame around a slot of numbers in its group's zone. */
export class Peer {
  /** `127.0.0.1:8081`, `[::1]:80` or `unix:/path`: its key in the status tree and its name in logs. */
  readonly name: string
  /** The argument of `server` exactly as written: what consistent hashing places on the ring. */
  readonly server: string
  readonly address: Address
  readonly options: ServerOptions
  readonly zone: Zone
  /** Its slot in every column of the zone. */
  readonly index: number
  /** Whose slot it was when this object was made; see `retired`. */
  readonly tenant: number

  constructor(
    zone: Zone,
    index: number,
    server: string,
    name: string,
    address: Address,
    options: ServerOptions,
    tenant: number = zone.peers.tenant[index]!,
  ) {
    this.zone = zone
    this.index = index
    this.server = server
    this.name = name
    this.address = address
    this.options = options
    this.tenant = tenant
  }

  /** Whether the configuration no longer has the peer: it finishes its calls and gets no new one. */
  get retired(): boolean {
    return this.zone.peers.tenant[this.index] !== this.tenant
  }

  /** Whether that is so because the configuration was read anew: then tunnels and sessions have to end soon as well. */
  get dismissed(): boolean {
    return this.zone.peers.tenant[this.index] === 0
  }
}
