import type { Call } from '../../feedback/call.ts'
import type { Peer } from '../../feedback/peer.ts'
import { stableTrack } from '../../feedback/track.ts'
import type { Ask, Balancer } from './method.ts'
import { murmur2 } from './murmur2.ts'

/** A text with variables as configured, and how it is read. */
export interface CallText {
  readonly text: string
  readonly read: (call: Call) => string
}

/** Which track a request goes to. */
export interface SplitRule {
  /** A value that names a track sends the request there; undefined: nothing is read. */
  readonly variable: CallText | undefined
  /** Percent by track in the order written, with two decimals at most; what is left to 100 goes to `stable`. */
  readonly percents: ReadonlyMap<string, number>
  /** What the percentages are taken of; undefined: every request is drawn by itself. */
  readonly key: CallText | undefined
}

/** Hashes are below. */
const range = 2 ** 32

/**
 * Requests split over the tracks of a group, and the group's method at work inside of each. A request stays in its track
 * as long as somebody there can be asked, and then goes to `stable`, for good. From `stable` none goes to another track:
 * what is tried out must not get the requests that a sick `stable` loses.
 */
export class Split implements Balancer {
  readonly heedsStuck: boolean
  readonly rule: SplitRule
  readonly #peers: readonly Peer[]
  readonly #parts = new Map<string, Part>()
  readonly #stable: Part | undefined
  /** The tracks that percentages send to, and where each one's stretch of the hashes ends. */
  readonly #names: readonly string[]
  readonly #ends: readonly number[]
  readonly #percents = new Map<string, number>()

  /**
   * @param peers the group's primaries; each track of the rule has some
   * @param make the method at work on one list
   */
  constructor(peers: readonly Peer[], rule: SplitRule, make: (peers: readonly Peer[]) => Balancer) {
    this.rule = rule
    this.#peers = peers
    const lists = new Map<string, { peers: Peer[]; places: number[] }>()
    for (const [place, peer] of peers.entries()) {
      const { track } = peer.options
      let list = lists.get(track)
      if (list === undefined) {
        list = { peers: [], places: [] }
        lists.set(track, list)
      }
      list.peers.push(peer)
      list.places.push(place)
    }
    for (const [track, list] of lists) this.#parts.set(track, { ...list, balancer: make(list.peers) })
    this.#stable = this.#parts.get(stableTrack)
    this.heedsStuck = [...this.#parts.values()].some(({ balancer }) => balancer.heedsStuck === true)
    this.#names = [...rule.percents.keys()]
    this.#ends = endsOf([...rule.percents.values()])
    for (const track of this.#parts.keys()) this.#percents.set(track, rule.percents.get(track) ?? 0)
    const rest = 100 - sumOf(rule.percents.values())
    if (rest > 0) this.#percents.set(stableTrack, (this.#percents.get(stableTrack) ?? 0) + rest)
  }

  /** Percent of the requests by track, that of `stable` with what is left, those that get none too; they sum to 100. */
  get percents(): ReadonlyMap<string, number> {
    return this.#percents
  }

  /**
   * Which track a request goes to. Reads of the call, so it is to be asked before anybody holds the group's state.
   * @param dice asked where the request is drawn by itself
   */
  trackOf(call: Call, dice: { random(): number }): string {
    const { variable, key } = this.rule
    const named = variable?.read(call)
    if (named !== undefined && this.#parts.has(named)) return named
    if (this.#names.length === 0) return stableTrack
    return this.#trackAt(key === undefined ? dice.random() * range : murmur2(key.read(call)))
  }

  #trackAt(hash: number): string {
    const ends = this.#ends
    for (let i = 0; i < ends.length; i++) if (hash < ends[i]!) return this.#names[i]!
    return stableTrack
  }

  /** The primaries that a request of a track may go to. */
  *within(track: string): Generator<Peer> {
    const own = this.#parts.get(track)
    if (own !== undefined) yield* own.peers
    if (this.#stable !== undefined && this.#stable !== own) yield* this.#stable.peers
  }

  read(ask: Ask): void {
    const part = ask.fallen ? this.#stable : this.#parts.get(ask.call.track)
    part?.balancer.read?.(ask)
  }

  pick(ask: Ask): Peer | undefined {
    if (!ask.fallen) {
      const own = this.#parts.get(ask.call.track)
      const peer = own?.balancer.pick(ask)
      if (peer !== undefined || own === this.#stable) return peer
      ask.fallen = true
      ask.draws = 0
      // What was read of the call before the group's state was held is the same for every list.
      if (own?.balancer.read === undefined) ask.memo = undefined
    }
    return this.#stable?.balancer.pick(ask)
  }

  /** With the percentages: what the variable sends elsewhere nobody knows before. */
  shares(ready: (peer: Peer) => boolean, now: number): number[] {
    const shares = this.#peers.map(() => 0)
    for (const [track, part] of this.#parts) {
      const percent = this.#goesTo(track, ready)
      if (percent === 0) continue
      const inside = part.balancer.shares(ready, now)
      for (const [i, place] of part.places.entries()) shares[place] = (inside[i]! * percent) / 100
    }
    return shares
  }

  /** Percent of the requests that a track gets while those are ready: its own, and to `stable` what others lack peers for. */
  #goesTo(track: string, ready: (peer: Peer) => boolean): number {
    const able = ({ peers }: Part) => peers.some(ready)
    let percent = this.#percents.get(track) ?? 0
    if (track !== stableTrack) return percent
    for (const [other, part] of this.#parts)
      if (part !== this.#stable && !able(part)) percent += this.#percents.get(other)!
    return percent
  }

  /** The method at work in a track; undefined where the track has no primary. */
  inside(track: string): Balancer | undefined {
    return this.#parts.get(track)?.balancer
  }
}

/** A track at work. */
interface Part {
  readonly peers: readonly Peer[]
  /** Of its peers in the group's list. */
  readonly places: readonly number[]
  readonly balancer: Balancer
}

/**
 * Where the stretches of the hashes end, as nginx's `split_clients` has them: each is rounded down by itself. Percentages
 * that make up 100 leave nothing over, whatever the rounding.
 */
function endsOf(percents: readonly number[]): number[] {
  let end = 0
  let sum = 0
  return percents.map((percent) => {
    const hundredths = Math.round(100 * percent)
    sum += hundredths
    end += Math.floor((hundredths * (range - 1)) / 10_000)
    return sum === 10_000 ? range : end
  })
}

/** Summed in hundredths, so that decimals add up. */
function sumOf(percents: Iterable<number>): number {
  let sum = 0
  for (const percent of percents) sum += Math.round(100 * percent)
  return sum / 100
}
