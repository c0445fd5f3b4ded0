import type { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { Sessions } from '../../feedback/sessions/sessions.ts'
import { Shadow } from '../../feedback/shadow.ts'
import type { Track } from '../../feedback/track.ts'
import { type Learning, Upstream } from '../../feedback/upstream.ts'
import type { Variables } from '../../feedback/variables.ts'
import type { Zone } from '../../feedback/zone.ts'
import { Group } from '../balance/group.ts'
import type { SwitchRules } from '../balance/list-walk.ts'
import { type Balancer, type Env, type Method, wordsOf } from '../balance/method.ts'
import { defaultMethod, methods } from '../balance/methods.ts'
import type { ShadowMethod } from '../balance/shadow.ts'
import { Split, type SplitRule } from '../balance/split.ts'
import { Sticky } from '../balance/sticky/sticky.ts'
import { type MethodLine, methodOf, shadowOf } from '../config/check/upstreams.ts'
import { timeMs } from '../config/units.ts'
import type { BackupSwitch, SplitLine, UpstreamBlock } from '../config/upstream-model.ts'
import type { SeatedShadow } from './memory.ts'
import { queueOptions } from './queues.ts'
import { stickyRules } from './sticky.ts'

const env: Env = { now: () => monotonic(), random: Math.random }

/** Where the numbers of a group lie. */
export interface Seated {
  readonly zone: Zone
  readonly peers: readonly Peer[]
  readonly backups: readonly Peer[]
  readonly tracks: ReadonlyMap<string, Track>
  /** What `sticky learn` learns; left out where it does not stand. */
  readonly table?: Sessions | undefined
}

/** What a group's methods are made of. */
export interface Materials {
  readonly name: string
  readonly kind: 'http' | 'stream'
  readonly block: UpstreamBlock
  /** `response_time_factor` / 100. */
  readonly keep: number
  /** Whether it is shared with other instances. */
  readonly fleet: boolean
  readonly variables: Variables
  readonly seated: Seated
  /**
   * Where the shadow's numbers lie.
   * @param kept what it has now, where it is the same method; undefined: it begins afresh
   * @param anew whether what both methods have picked is counted anew, since it is compared with another one now
   */
  seatShadow(kept: Upstream | undefined, anew: boolean): SeatedShadow
}

/** A group with its methods, and peers of its shadow that the configuration has no more. */
export interface Built {
  readonly group: Group
  readonly removed: readonly Peer[]
}

/** @param old the group of that name that runs now */
export function buildGroup(materials: Materials, old: Group | undefined): Built {
  const { name, block, keep, fleet, variables, seated } = materials
  const kind = kindOf(methodOf(block), variables, keep, materials.kind)
  const shade = buildShadow(materials, kind.words, old?.shadow)
  const rules = stickyRules(block, name, variables, seated.table)
  const upstream = new Upstream({
    name,
    kind: materials.kind,
    ...seated,
    method: kind.method.name,
    learning: kind.learning,
    responseTimeFactor: keep,
    fleet,
    split: block.split !== undefined,
    shadow: shade?.method.state,
    queue: queueOptions(block),
    sessions: rules?.book,
  })
  const primary = balancerOf(kind, upstream, block.split, variables)
  const backup = upstream.backups.length > 0 ? kind.create(upstream, upstream.backups) : undefined
  const group = new Group(upstream, primary, backup, shade?.method, {
    sticky: rules && new Sticky(rules, [...upstream.peers, ...upstream.backups]),
    switching: switchRules(block.backup_switch),
  })
  return { group, removed: shade?.removed ?? [] }
}

function switchRules(line: BackupSwitch | undefined): SwitchRules | undefined {
  if (line === undefined) return undefined
  return { after: line.permanent === true ? undefined : timeMs(line.permanent) }
}

/** @param own words of the group's own method */
function buildShadow(
  { name, kind: side, block, keep, variables, seated, seatShadow }: Materials,
  own: string,
  old: ShadowMethod | undefined,
): { readonly method: ShadowMethod; readonly removed: readonly Peer[] } | undefined {
  const line = shadowOf(block)
  if (line === undefined) return undefined
  const kind = kindOf(line, variables, keep, side)
  const kept = old?.words === kind.words ? old.state.upstream : undefined
  const { zone, peers, tracks, removed } = seatShadow(kept, kept !== undefined && old?.beside !== own)
  const upstream = new Upstream({
    name,
    kind: side,
    zone,
    peers,
    backups: [],
    tracks,
    method: kind.method.name,
    learning: kind.learning,
    responseTimeFactor: keep,
    split: block.split !== undefined,
  })
  const balancer = balancerOf(kind, upstream, block.split, variables)
  const state = new Shadow(upstream, seated.peers)
  return { method: { words: kind.words, beside: own, balancer, state }, removed }
}

/** A method with its arguments, its variables compiled. */
interface Kind {
  readonly method: Method
  readonly words: string
  readonly learning: Learning | undefined
  create(upstream: Upstream, peers: readonly Peer[]): Balancer
}

function kindOf(
  { name, args }: MethodLine,
  variables: Variables,
  keep: number,
  side: 'http' | 'stream',
): Kind {
  const method: Method = methods.find((one) => one.name === name) ?? defaultMethod
  const learning = method.learning(
    args,
    (text) => variables.fresh(text),
    keep,
    (text, is) => variables.involves(text, is),
  )
  return {
    method,
    words: wordsOf(method, args),
    // A session has no header that a value could be read after.
    learning: learning?.value && side === 'stream' ? { ...learning, mode: 'last_byte' } : learning,
    create: (upstream, peers) => method.create(upstream, peers, args, env, (text) => variables.compile(text)),
  }
}

/** The method at work on the primaries, in each track by itself where requests are split. */
function balancerOf(
  kind: Kind,
  upstream: Upstream,
  split: SplitLine | undefined,
  variables: Variables,
): Balancer {
  const make = (peers: readonly Peer[]) => kind.create(upstream, peers)
  if (split === undefined) return make(upstream.peers)
  return new Split(
    upstream.peers,
    splitRule(split, (text) => variables.compile(text)),
    make,
  )
}

/** How requests are split, its variables compiled. */
function splitRule(
  { by, percent, key }: SplitLine,
  compile: (text: string) => (call: Call) => string,
): SplitRule {
  const reader = (text: string | undefined) =>
    text === undefined ? undefined : { text, read: compile(text) }
  return { variable: reader(by), percents: new Map(Object.entries(percent ?? {})), key: reader(key) }
}
