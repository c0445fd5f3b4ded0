import type { Wanted } from '../../feedback/carry.ts'
import type { ServerOptions } from '../../feedback/peer.ts'
import type { Change, ChangeKind, PeerOrder } from '../admin/runtime-facts.ts'
import { formatAddress, serverAddress } from '../config/address.ts'
import type { ServerLine, UpstreamBlock } from '../config/upstream-model.ts'

/** A group as the file, or DNS, has it. */
export interface Written {
  /** Whatever its case. */
  readonly name: string
  readonly block: Pick<UpstreamBlock, 'servers'>
}

/** A change with what the file said of that very thing when it was made. */
export interface Made extends Change {
  /** The lines that it is about: texts of `server`. */
  readonly lines: readonly string[]
  /** What they said, to be compared. */
  readonly was: string
  /** Of what was added: its line, and its peers. */
  readonly line?: ServerLine
  readonly peers?: readonly Wanted[]
}

/** A change that no longer holds, and why. */
export interface Dropped {
  readonly change: Change
  readonly why: string
}

export type ValueKind = 'state' | 'weight' | 'max_conns'
export const valueKinds: readonly ValueKind[] = ['state', 'weight', 'max_conns']

/** What a line says, defaults filled in. */
export function valueIn(line: ServerLine, kind: ValueKind): string | number {
  if (kind === 'weight') return line.weight ?? 1
  if (kind === 'max_conns') return line.max_conns ?? 0
  return line.down ? 'down' : line.drain ? 'drain' : 'up'
}

/** What lines say of one thing, as a text that is another one where they say something else. */
export function saying(lines: readonly ServerLine[], kind: ChangeKind): string {
  if (kind === 'added' || kind === 'removed') {
    // The order of parameters says nothing.
    return lines
      .map((line) => JSON.stringify(Object.entries(line).sort(([a], [b]) => (a < b ? -1 : 1))))
      .join()
  }
  return [...new Set(lines.map((line) => String(valueIn(line, kind))))].sort().join()
}

/** A line in nginx's words, without its directive. */
export function wordsOfLine(line: ServerLine): string {
  const { address, ...rest } = line
  const words = Object.entries(rest).map(([name, value]) => (value === true ? name : `${name}=${value}`))
  return [address, ...words].join(' ')
}

/** The text of the line that a peer comes from. */
export function lineOf({ server, line = server }: Pick<Wanted, 'server' | 'line'>): string {
  return line
}

/** Whether the change is about the peer. */
export function covers(
  { whole, target, lines }: Made,
  peer: Pick<Wanted, 'server' | 'line' | 'name'>,
): boolean {
  return whole ? lineOf(peer) === target : peer.name === target && lines.includes(lineOf(peer))
}

/**
 * What was changed of groups' peers since the program began, and what that makes of the lists that the file or DNS
 * yields. Nothing in here reaches outside.
 */
export class Changes {
  /** By lower-case name of the group, in the order in which they were made. */
  #groups: ReadonlyMap<string, readonly Made[]>

  constructor(groups: ReadonlyMap<string, readonly Made[]> = new Map()) {
    this.#groups = groups
  }

  /** All that hold, in the order in which they were made. */
  get list(): readonly Made[] {
    return [...this.#groups.values()].flat().sort((a, b) => a.at - b.at)
  }

  of(group: string): readonly Made[] {
    return this.#groups.get(group.toLowerCase()) ?? []
  }

  /** The same with other changes of one group. */
  with(group: string, made: readonly Made[]): Changes {
    const groups = new Map(this.#groups)
    if (made.length > 0) groups.set(group.toLowerCase(), made)
    else groups.delete(group.toLowerCase())
    return new Changes(groups)
  }

  /**
   * The list in force: the given one in its order, without what was removed and with what was added after it. To
   * apply them twice is to apply them once.
   */
  apply(group: string, wanted: readonly Wanted[]): readonly Wanted[] {
    const made = this.of(group)
    if (made.length === 0) return wanted
    const index = new Index(made)
    const list = wanted.filter((each) => index.find(each, 'removed') === undefined)
    const names = new Set(list.map(({ name }) => name))
    for (const { peers = [] } of made) {
      for (const peer of peers) {
        if (names.has(peer.name)) continue
        names.add(peer.name)
        list.push(peer)
      }
    }
    return list.map((each) => changed(each, index))
  }

  /** The groups of a configuration with what was changed of them, as long as the configuration does not say otherwise. */
  changed<P extends Written & { readonly wanted: readonly Wanted[] }>(
    plans: readonly P[],
    fits: Fits,
  ): readonly P[] {
    if (this.#groups.size === 0) return plans
    const { changes } = this.after(plans, fits)
    return plans.map((plan) => {
      const wanted = changes.apply(plan.name, plan.wanted)
      return wanted === plan.wanted ? plan : { ...plan, wanted }
    })
  }

  /**
   * What is left under a configuration: where the file says something else of a thing than it did when that was
   * changed, the file holds.
   */
  after(
    plans: readonly Written[],
    fits: Fits,
  ): { readonly changes: Changes; readonly dropped: readonly Dropped[] } {
    const groups = new Map<string, readonly Made[]>()
    const dropped: Dropped[] = []
    const written = new Map(plans.map((plan) => [plan.name.toLowerCase(), plan]))
    for (const [key, made] of this.#groups) {
      const plan = written.get(key)
      let left: Made[] = []
      // Values of peers that were added stand on these.
      const order = [...made.filter(({ line }) => line), ...made.filter(({ line }) => !line)]
      for (const change of order) {
        const why =
          plan === undefined
            ? 'the group is gone'
            : (refutation(change, plan, left) ?? fits(plan, [...left, change]))
        if (why === undefined) left.push(change)
        else dropped.push({ change, why })
      }
      left = made.filter((change) => left.includes(change))
      if (left.length > 0) groups.set(key, left)
    }
    return { changes: dropped.length === 0 ? this : new Changes(groups), dropped }
  }
}

/** What is wrong with a group that is changed so; undefined: nothing. */
export type Fits = (written: Written, made: readonly Made[]) => string | undefined

/** Changes by what they are about. */
class Index {
  readonly #by = new Map<string, Made[]>()

  constructor(made: readonly Made[]) {
    for (const change of made) {
      const key = `${change.whole} ${change.target}`
      const same = this.#by.get(key)
      if (same) same.push(change)
      else this.#by.set(key, [change])
    }
  }

  /** The closest one: of the very peer, or else of its line. */
  find(peer: Wanted, kind: ChangeKind): Made | undefined {
    const is = (change: Made) => change.kind === kind && covers(change, peer)
    return this.#by.get(`false ${peer.name}`)?.find(is) ?? this.#by.get(`true ${lineOf(peer)}`)?.find(is)
  }
}

function changed(peer: Wanted, index: Index): Wanted {
  const weight = index.find(peer, 'weight')?.value
  const most = index.find(peer, 'max_conns')?.value
  const state = index.find(peer, 'state')?.value
  if (weight === undefined && most === undefined && state === undefined) return peer
  const options: ServerOptions = {
    ...peer.options,
    ...(weight === undefined ? {} : { weight: Number(weight) }),
    ...(most === undefined ? {} : { max_conns: Number(most) }),
    ...(state === undefined ? {} : ordered(state as PeerOrder)),
  }
  return { ...peer, options }
}

function ordered(state: PeerOrder): Pick<ServerOptions, 'down' | 'drain'> {
  return { down: state === 'down', drain: state === 'drain' }
}

/** The lines of a group, those that were added last. */
export function linesOf({ block }: Written, made: readonly Made[]): readonly ServerLine[] {
  return [...(block.servers ?? []), ...made.flatMap(({ line }) => line ?? [])]
}

/** How the file contradicts a change; undefined: it does not. */
function refutation(change: Made, plan: Written, others: readonly Made[]): string | undefined {
  const { kind, lines, was, peers } = change
  const own = plan.block.servers ?? []
  if (kind === 'added') {
    const names = new Set([change.target, ...(peers ?? []).map(({ name }) => name)])
    const has = own.some(
      ({ address }) => names.has(address) || names.has(formatAddress(serverAddress(address))),
    )
    return has ? 'the file has it now' : undefined
  }
  const about = (kind === 'removed' ? own : linesOf(plan, others)).filter(({ address }) =>
    lines.includes(address),
  )
  if (about.length === 0) return 'the file does not have it any more'
  if (saying(about, kind) === was) return undefined
  if (kind === 'removed') return 'its line in the file is another one'
  return `the file says "${kind}=${valueIn(about[0]!, kind)}" by now`
}
