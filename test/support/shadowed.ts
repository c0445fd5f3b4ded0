import { Shadow } from '../../feedback/shadow.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import { Group } from '../../sidecar/balance/group.ts'
import type { Balancer, Env } from '../../sidecar/balance/method.ts'
import { Split, type SplitRule } from '../../sidecar/balance/split.ts'
import { group, type PeerSketch } from './peers.ts'
import { type Variant, variable } from './variants.ts'

export interface ShadowedOptions {
  readonly backups?: readonly PeerSketch[]
  readonly split?: SplitRule
  /** Dice of the shadow; by default its own. */
  readonly dice?: Env
}

/** A group under one method with another one in its shadow. */
export interface Shadowed {
  readonly group: Group
  readonly upstream: Upstream
  readonly shadow: Shadow
  /** The group as the shadow has it. */
  readonly twins: Upstream
}

/** @param own the method in force @param tried the one in its shadow; undefined: there is none */
export function shadowed(
  sketches: readonly PeerSketch[],
  own: Variant,
  tried: Variant,
  env: Env,
  { backups = [], split, dice = env }: ShadowedOptions = {},
): Shadowed {
  const learning = ({ method, args }: Variant) => method.learning(args, variable)
  const list = (
    { method, args }: Variant,
    upstream: Upstream,
    peers: Upstream['peers'],
    around: Env,
  ): Balancer => {
    const make = (some: Upstream['peers']) => method.create(upstream, some, args, around, variable)
    return split && peers === upstream.peers ? new Split(peers, split, make) : make(peers)
  }
  const twins = group(sketches, {
    method: tried.method.name,
    learning: learning(tried),
    split: split !== undefined,
  })
  const upstream = group(sketches, {
    backups,
    method: own.method.name,
    learning: learning(own),
    split: split !== undefined,
    shadow: (peers) => new Shadow(twins, peers),
  })
  const state = upstream.shadow!
  const made = new Group(
    upstream,
    list(own, upstream, upstream.peers, env),
    backups.length > 0 ? list(own, upstream, upstream.backups, env) : undefined,
    {
      words: tried.title,
      beside: own.title,
      balancer: list(tried, twins, twins.peers, dice),
      state,
    },
  )
  return { group: made, upstream, shadow: state, twins }
}
