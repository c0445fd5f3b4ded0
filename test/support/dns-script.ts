// What a scripted DNS server answers, and in which way.

/** A record as the library that writes messages takes it. */
export type DnsRecord =
  | {
      readonly type: 'A' | 'AAAA' | 'CNAME'
      readonly name: string
      readonly ttl?: number
      readonly data: string
    }
  | {
      readonly type: 'SRV'
      readonly name: string
      readonly ttl?: number
      readonly data: {
        readonly priority?: number
        readonly weight?: number
        readonly port: number
        readonly target: string
      }
    }

/** A message that is no answer: sent before one, or in its place. */
export type Junk = 'wrong id' | 'wrong question' | 'garbage' | 'query'

export interface DnsRule {
  /** `NOERROR` where absent. */
  readonly code?: 'NOERROR' | 'FORMERR' | 'SERVFAIL' | 'NXDOMAIN' | 'NOTIMP' | 'REFUSED'
  readonly answers?: readonly DnsRecord[]
  readonly additionals?: readonly DnsRecord[]
  /** Whether the authority is left out where there are no answers. */
  readonly bare?: boolean
  /** `truncated` does not fit over UDP; `drop` is not answered. */
  readonly how?: 'drop' | 'truncated'
  readonly junk?: readonly Junk[]
  /** Milliseconds before it is sent. */
  readonly after?: number
}

/** A query that came. */
export interface DnsQuery {
  readonly name: string
  readonly type: string
  readonly over: 'udp' | 'tcp'
  /** Of the sender. */
  readonly port: number
  readonly id: number
}

/** Rules by `TYPE name`, or `* name` for all types. A name that has none is not there. */
export type DnsRules = Readonly<Record<string, DnsRule>>
