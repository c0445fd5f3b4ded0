import type { Address } from '../feedback/peer.ts'
import type { Plan } from './build/plans.ts'
import type { DnsServer } from './resolve/exchange.ts'

/** What a `resolver` line says, in numbers. */
export interface ResolverSpec {
  /** Who is asked, at least one; undefined: the servers of the system. */
  readonly servers: readonly DnsServer[] | undefined
  /** For how long an answer is taken for good, whatever it says itself, milliseconds. */
  readonly validMs: number | undefined
  readonly ipv4: boolean
  readonly ipv6: boolean
  /** How long a look-up may take in all, milliseconds. */
  readonly timeoutMs: number
  /** Name under which it is counted in the status tree. */
  readonly statusZone: string | undefined
}

/** A name of a `server` line whose addresses are followed while the program runs. */
export interface FollowedName {
  /** As written in the line, without its port. */
  readonly host: string
  /** The port where records do not say it. */
  readonly port: number
  /** `service=` as written; undefined: addresses are asked for, and not services. */
  readonly service: string | undefined
  readonly resolver: ResolverSpec
}

/** An address of a followed name. */
export interface FoundAddress {
  readonly address: Address
  /** The target of its service record: what stands for the `server` text; undefined: the line's own. */
  readonly target: string | undefined
  /** Of its service record; undefined: the line's own. */
  readonly weight: number | undefined
  /** Whether it is not among the services that are to be used first. */
  readonly secondary: boolean
}

/** Who belongs to groups beside whom their lines name: what DNS knows, and what was changed while the program ran. */
export interface Membership {
  /** Follows these names as well from now on; resolves when they are known, or a little later. Never rejects. */
  expect(names: readonly FollowedName[]): Promise<void>
  /** Addresses that a followed name has now; empty: none, or none is known yet. */
  resolved(name: FollowedName): readonly FoundAddress[]
  /** Groups as they are to be after changes that were made while the program ran. */
  changed(plans: readonly Plan[]): readonly Plan[]
}

/** Where nothing is followed and nothing was changed: names have no addresses. */
export const noMembership: Membership = {
  expect: async () => {},
  resolved: () => [],
  changed: (plans) => plans,
}
