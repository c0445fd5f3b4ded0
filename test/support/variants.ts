import type { Call } from '../../feedback/call.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import { Group } from '../../sidecar/balance/group.ts'
import type { Env, Method } from '../../sidecar/balance/method.ts'
import { methods } from '../../sidecar/balance/methods.ts'
import { Split, type SplitRule } from '../../sidecar/balance/split.ts'
import { group, type PeerSketch } from './peers.ts'

/** The arguments to try a method with; one that is not listed is tried without any. */
const args: Readonly<Record<string, readonly object[]>> = {
  random: [{}, { mode: 'two' }],
  hash: [{ key: '$request_uri' }, { key: '$request_uri', consistent: true }],
  least_time: [
    { mode: 'header' },
    { mode: 'last_byte', decay: '0' },
    { mode: 'last_byte', best: true },
    { mode: 'last_byte', plain: true },
  ],
  feedback: [{ variable: '$load' }, { variable: '$load', inverse: true, last_byte: true }],
}

/** `$load` is the query of a request; every other variable is its target. */
export const variable = (text: string) => (call: Call) => (text === '$load' ? call.args : call.target)

/** A balancing method with its arguments. */
export interface Variant {
  readonly title: string
  readonly method: Method
  readonly args: object
  /** A group under it, with what it learns and a balancer for each of its lists. */
  make(sketches: readonly PeerSketch[], env: Env, backups?: readonly PeerSketch[], split?: SplitRule): Group
}

/** Every method, with every kind of arguments that makes it another. */
export const variants: readonly Variant[] = methods.flatMap(({ name }) =>
  (args[name] ?? [{}]).map((some) => {
    // Found again by its name as a method of any arguments; the table above keeps to each one's schema.
    const method = methods.find((one) => one.name === name) as unknown as Method
    const make = (
      sketches: readonly PeerSketch[],
      env: Env,
      backups: readonly PeerSketch[] = [],
      split?: SplitRule,
    ) => {
      const upstream: Upstream = group(sketches, {
        backups,
        method: name,
        learning: method.learning(some, variable),
        split: split !== undefined,
      })
      const balancer = (peers: Upstream['peers']) => method.create(upstream, peers, some, env, variable)
      const spare = upstream.backups.length > 0 ? balancer(upstream.backups) : undefined
      const primary = split ? new Split(upstream.peers, split, balancer) : balancer(upstream.peers)
      return new Group(upstream, primary, spare)
    }
    const words = Object.entries(some).map(([key, value]) => (value === true ? key : String(value)))
    return { title: [name, ...words].join(' '), method, args: some, make }
  }),
)
