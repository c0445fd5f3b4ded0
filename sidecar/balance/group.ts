import type { Peer } from '../../feedback/peer.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import type { SwitchRules } from './list-walk.ts'
import type { Balancer } from './method.ts'
import type { ShadowMethod } from './shadow.ts'
import { Split } from './split.ts'
import type { Sticky } from './sticky/sticky.ts'

/** What holds beside the method. */
export interface GroupRules {
  /** Undefined where no sessions are bound to peers. */
  readonly sticky?: Sticky | undefined
  /** Undefined where every request begins with the primaries. */
  readonly switching?: SwitchRules | undefined
}

/** A group of peers with the method at work on its primaries and, where there are some, on its backups. */
export class Group {
  readonly upstream: Upstream
  readonly primary: Balancer
  /** Undefined when the group has no backup. */
  readonly backup: Balancer | undefined
  /** The primaries' balancer, where requests are split over tracks: otherwise tracks are labels and nothing more. */
  readonly split: Split | undefined
  /** A method that is tried beside the primaries' own. */
  readonly shadow: ShadowMethod | undefined
  readonly sticky: Sticky | undefined
  /** Undefined too where there is no backup. */
  readonly switching: SwitchRules | undefined

  constructor(
    upstream: Upstream,
    primary: Balancer,
    backup: Balancer | undefined,
    shadow?: ShadowMethod | undefined,
    { sticky, switching }: GroupRules = {},
  ) {
    this.upstream = upstream
    this.primary = primary
    this.backup = backup
    this.shadow = shadow
    this.sticky = sticky
    this.switching = backup && switching
    this.split = primary instanceof Split ? primary : undefined
  }

  /** Who picks a peer of the group, among those of its kind and track. */
  balancerOf({ options }: Peer): Balancer | undefined {
    if (options.backup) return this.backup
    return this.split ? this.split.inside(options.track) : this.primary
  }
}
