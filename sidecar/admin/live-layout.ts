import type { FleetFacts } from '../../feedback/fleet/facts.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { RetryBudget } from '../../feedback/policy.ts'
import type { BudgetFacts, ProbeFacts, SplitFacts, UpstreamFacts } from './facts.ts'
import type { words } from './live-numbers.ts'
import { type WaysLayout, waysLayout } from './live-ways.ts'
import { retiredOf } from './retired.ts'
import type { Change, RuntimeFacts } from './runtime-facts.ts'

/*
 * What rarely changes of what the live page shows: it is told once, and again when it changes.
 */

export interface Layout {
  /** Changes whenever anything else in it does. */
  readonly layout: number
  readonly version: string
  /** Which edition of the page this program has. */
  readonly page: string
  readonly startedAt: number
  readonly words: typeof words
  readonly groups: readonly GroupLayout[]
}

export interface GroupLayout extends WaysLayout {
  readonly name: string
  readonly kind: 'http' | 'stream'
  readonly method: string
  /** Whether its only peer is asked whatever its failures. */
  readonly single: boolean
  /** Percent by track, what they are taken of, and the variable that may name a track; undefined: no split. */
  readonly split: SplitLayout | undefined
  /** The method that is tried beside it. */
  readonly shadow: string | undefined
  /** Ids of the instances that share it; undefined where it is not shared. */
  readonly roster: readonly string[] | undefined
  readonly budgets: readonly BudgetLayout[]
  readonly tracks: readonly string[]
  readonly probes: readonly ProbeLayout[]
  readonly peers: readonly PeerLayout[]
  /** Whether servers can be added and removed. */
  readonly open: boolean
  /** What was changed of it while the program runs; undefined: nothing. */
  readonly changes: readonly ChangeLayout[] | undefined
}

/** A change; see `Change`. */
export type ChangeLayout = Omit<Change, 'upstream'>

export interface SplitLayout {
  readonly percents: readonly (readonly [track: string, percent: number])[]
  readonly key: string | undefined
  readonly variable: string | undefined
}

/** A retry budget, and the locations that have it. */
export interface BudgetLayout extends RetryBudget {
  readonly locations: readonly string[]
}

export interface ProbeLayout {
  readonly name: string
  readonly type: string
  readonly location: string
  readonly mode: string
  readonly interval: number
  readonly essential: boolean
  readonly fails: number
  readonly passes: number
}

export interface PeerLayout {
  /** Stays as long as its counters do. */
  readonly key: string
  readonly name: string
  /** As the configuration has it. */
  readonly server: string
  readonly track: string
  readonly weight: number
  readonly maxFails: number
  readonly failTimeout: number
  readonly slowStart: number
  /** What is configured, or was made of it; 0: no limit. */
  readonly maxConns: number
  readonly order?: 'down' | 'drain'
  /** The text of its line, where that stands for other addresses as well. */
  readonly line?: string
  /** Kinds of what was changed of it. */
  readonly changed?: readonly string[]
  readonly backup?: true
  /** The configuration has it no more. */
  readonly retired?: true
}

/** A group as it is shown: its peers in the order of the events, and the probes that ask them. */
export interface Shown {
  readonly facts: UpstreamFacts
  readonly peers: readonly Peer[]
  /** Of each peer. */
  readonly probed: readonly (readonly ProbeFacts[])[]
  readonly probes: readonly ProbeFacts['probe'][]
  readonly budgets: readonly BudgetFacts[]
}

/** Looks at a group as it is now. */
export function lookAt(
  facts: UpstreamFacts,
  fleet: FleetFacts | undefined,
  runtime: RuntimeFacts | undefined,
): { layout: GroupLayout; shown: Shown } {
  const { upstream } = facts
  const retired = retiredOf(upstream)
  const peers = [...upstream.peers, ...upstream.backups, ...retired]
  const probed = peers.map((peer) => facts.probes(peer))
  const probes = new Map<ProbeFacts['probe'], ProbeLayout>()
  for (const about of probed.flat()) if (!probes.has(about.probe)) probes.set(about.probe, probeLayout(about))
  const { kinds, locations } = budgetKinds(facts.budgets())
  const layout: GroupLayout = {
    name: upstream.name,
    kind: upstream.kind,
    method: upstream.method,
    single: upstream.single,
    split: facts.split && splitLayout(facts.split),
    shadow: facts.shadow?.method,
    roster: fleet?.upstream(upstream) && fleet.roster(upstream),
    budgets: kinds.map(({ ratio, min, window }, i) => ({ ratio, min, window, locations: locations[i]! })),
    tracks: [...upstream.tracks.keys()],
    probes: [...probes.values()],
    peers: peers.map((peer, i) => {
      const gone = i >= peers.length - retired.length
      return { ...peerLayout(peer, gone), ...(gone ? {} : changedLayout(upstream.name, peer, runtime)) }
    }),
    open: runtime?.zone(upstream.name) !== undefined,
    changes: changesOf(upstream.name, runtime),
    ...waysLayout(facts),
  }
  return { layout, shown: { facts, peers, probed, probes: [...probes.keys()], budgets: kinds } }
}

function changesOf(group: string, runtime: RuntimeFacts | undefined): ChangeLayout[] | undefined {
  const own = (runtime?.list() ?? []).filter(({ upstream }) => upstream === group)
  if (own.length === 0) return undefined
  return own.map(({ kind, target, whole, value, file, at, by }) => ({
    kind,
    target,
    whole,
    value,
    file,
    at,
    by,
  }))
}

function changedLayout(
  group: string,
  peer: Peer,
  runtime: RuntimeFacts | undefined,
): Pick<PeerLayout, 'line' | 'changed'> {
  const line = runtime?.line(group, peer)
  const changes = runtime?.of(group, peer) ?? []
  return {
    ...(line === undefined ? {} : { line }),
    ...(changes.length === 0 ? {} : { changed: changes.map(({ kind }) => kind) }),
  }
}

function splitLayout({ percents, key, variable }: SplitFacts): SplitLayout {
  return { percents: [...percents], key, variable }
}

/** Budgets that are the same are one, however many locations have it. */
function budgetKinds(budgets: readonly BudgetFacts[]): { kinds: BudgetFacts[]; locations: string[][] } {
  const kinds: BudgetFacts[] = []
  const locations: string[][] = []
  for (const budget of budgets) {
    const { ratio, min, window } = budget
    const at = kinds.findIndex((one) => one.ratio === ratio && one.min === min && one.window === window)
    if (at < 0) {
      kinds.push(budget)
      locations.push([budget.location])
    } else locations[at]!.push(budget.location)
  }
  return { kinds, locations }
}

function probeLayout({ probe, standing: { rule } }: ProbeFacts): ProbeLayout {
  const { name, kind, location, mode, interval, essential } = probe
  return {
    name,
    type: kind.name,
    location,
    mode,
    interval,
    essential,
    fails: rule.fails,
    passes: rule.passes,
  }
}

function peerLayout(peer: Peer, retired: boolean): PeerLayout {
  const { options, zone } = peer
  return {
    key: `${zone.id}.${peer.index} ${peer.name}`,
    name: peer.name,
    server: peer.server,
    track: options.track,
    weight: options.weight,
    maxFails: options.max_fails,
    failTimeout: options.fail_timeout,
    slowStart: options.slow_start,
    maxConns: options.max_conns,
    ...(options.down ? { order: 'down' as const } : options.drain ? { order: 'drain' as const } : {}),
    ...(options.backup ? { backup: true as const } : {}),
    ...(retired ? { retired: true as const } : {}),
  }
}
