import { tellSwitch } from '../../feedback/backup-switch.ts'
import type { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import { exclusion as excluded, fullByLease, usable } from '../../feedback/health.ts'
import { begin } from '../../feedback/observe.ts'
import { Attempt } from '../../feedback/outcome.ts'
import type { Peer } from '../../feedback/peer.ts'
import { busyPeers, countsAsTry, tries } from './eligible.ts'
import type { Group } from './group.ts'
import { ListWalk } from './list-walk.ts'
import type { Ask, Balancer, Env } from './method.ts'
import { ShadowAsk } from './shadow.ts'
import type { Split } from './split.ts'
import { StickyAsk } from './sticky/sticky.ts'

/** The clock and the dice of this machine. */
export const system: Env = { now: () => monotonic(), random: Math.random }

/** Where attempts are counted by what became of their sessions. */
const stickyFields = { NEW: 'stickyNew', HIT: 'stickyHit', MISS: 'stickyMiss' } as const

/**
 * One request's search for peers: picks and reserves, one peer after the other, never the same one twice. It
 * begins among the primaries, those of its track where the group's requests are split, and moves on to the backups, for
 * good, once no primary is ready for this request. A peer that its session is bound to goes before all of that.
 */
export class Selection implements Ask {
  readonly group: Group
  readonly call: Call
  now = 0
  memo: unknown = undefined
  draws = 0
  pick = ''
  drifted = 0
  fallen = false
  readonly #env: Env
  readonly #shadow: ShadowAsk | undefined
  readonly #sticky: StickyAsk | undefined
  readonly #walk: ListWalk | undefined
  readonly #tried: Peer[] = []
  #backup = false
  /** Whether its track has counted it, and that it went elsewhere. */
  #sent = false
  #gone = false
  #denial: 'overflow' | 'no_live' = 'no_live'
  #byLease = false
  /** Whether it is the session's peer that could not take it, and nobody else may. */
  #refused = false

  constructor(group: Group, call: Call, env: Env = system) {
    this.group = group
    this.call = call
    this.#env = env
    // What this reads of the call is read before the zone is held, as with `read`.
    this.#sticky = group.sticky && new StickyAsk(group.sticky, call, env.now())
    this.#walk = group.switching && new ListWalk(group.switching)
    call.track = this.#trackOf(group.split)
    this.#shadow = group.shadow && new ShadowAsk(group.shadow, this)
  }

  /** A session that is bound to a peer is of that peer's track, whatever the split says. */
  #trackOf(split: Split | undefined): string {
    if (split === undefined) return ''
    const bound = this.#sticky?.bound[0]
    if (bound === undefined || bound.options.backup) return split.trackOf(this.call, this.#env)
    return bound.options.track
  }

  /** What became of the session at the last choice, as `$upstream_sticky_status`; empty where the group binds none. */
  get stickiness(): string {
    return this.#sticky?.status ?? ''
  }

  /** How many attempts the request may have, as far as its peers go; see `tries`. */
  get tries(): number {
    return tries(this.group, this.call.track)
  }

  /**
   * Requests of the same lane may go to the same peers: where one finds nobody, neither does any other. For those that
   * wait in a queue.
   */
  get lane(): string {
    const { split } = this.group
    let lane = split === undefined ? '' : this.call.track
    // By the peers, which are few, and not by what names them: clients may write what they like there.
    for (const { name } of this.#sticky?.bound ?? []) lane += ` @${name}`
    for (const { name } of this.#tried) lane += ` ${name}`
    return lane
  }

  /** Whether there is nothing to wait for: nobody may take the request but a peer that there is not. */
  get lost(): boolean {
    return this.#sticky?.lost ?? false
  }

  /** How many of them are left, counting peers of the group that were asked. */
  get triesLeft(): number {
    // One that was marked `down` since it was asked is none of `tries`.
    return Math.max(0, this.tries - this.#tried.filter(countsAsTry).length)
  }

  /**
   * The same search in another form of the group, as a reload or a name that moved has left it.
   * @returns a selection that asks nobody again whom this one has asked
   */
  over(group: Group): Selection {
    const next = new Selection(group, this.call, this.#env)
    const { peers, backups } = group.upstream
    for (const { index, tenant } of this.#tried) {
      const same = [...peers, ...backups].find((peer) => peer.index === index && peer.tenant === tenant)
      if (same) next.#tried.push(same)
    }
    return next
  }

  /** Begins again with the primaries, those of its own track first, for a request that has waited. */
  again(): void {
    this.#backup = false
    this.fallen = false
    this.memo = undefined
    this.draws = 0
    this.#walk?.again()
  }

  /**
   * Picks the next peer and reserves it.
   * @returns the attempt, begun; undefined when nobody is eligible (see `denial`)
   */
  next(): Attempt | undefined {
    const { upstream, primary } = this.group
    // What the method reads of the call is read before the zone is held.
    primary.read?.(this)
    this.#shadow?.read()
    this.#sticky?.look(this.#env.now())
    let attempt: Attempt | undefined
    upstream.zone.enter()
    try {
      attempt = this.#next()
    } finally {
      upstream.zone.leave()
    }
    if (attempt !== undefined && this.#sticky !== undefined) this.#sticky.selected(attempt.peer!)
    if (this.#walk?.switched) this.#tellSwitch()
    return attempt
  }

  #tellSwitch(): void {
    this.#walk!.switched = false
    tellSwitch(this.group.upstream, this.#backup)
  }

  #next(): Attempt | undefined {
    const { upstream } = this.group
    this.now = this.#env.now()
    if (this.#sticky !== undefined) {
      const bound = this.#sticky.find((peer) => this.#mayBind(peer))
      if (bound !== undefined) return this.#bind(bound)
      this.#refused = this.#sticky.refused
      if (this.#refused) {
        this.#denial = 'no_live'
        return undefined
      }
    }
    const peer = this.#search()
    if (this.group.split !== undefined) this.#countTrack(peer)
    if (peer === undefined) {
      // Asked while the zone is held: a moment later a slot may be free again.
      this.#denial = this.#whyNobody()
      return undefined
    }
    const columns = upstream.zone.peers
    if (this.pick === 'explored' || this.pick === 'floor') columns.explored[peer.index]! += 1
    else if (this.pick === 'unmeasured') columns.unmeasured[peer.index]! += 1
    let pick = this.pick || upstream.method
    if (this.#backup) pick = 'backup'
    else if (upstream.single) pick = 'single'
    else if (this.fallen) pick = 'fallback'
    return this.#reserve(peer, pick)
  }

  /** Asks the method, in one list and then in the other. */
  #search(): Peer | undefined {
    const { primary, backup, upstream } = this.group
    const walk = this.#walk
    if (walk !== undefined) this.#backup = walk.from(upstream.zone, this.#backup, this.now)
    for (;;) {
      const peer = this.#ask(this.#backup ? backup! : primary)
      if (peer !== undefined) {
        // What the shadow would pick, while everybody is as ready as for the own method.
        if (!this.#backup) this.#shadow?.choose(peer)
        walk?.found(upstream.zone, this.#backup, this.now)
        return peer
      }
      if (walk === undefined ? this.#backup || backup === undefined : !walk.move()) return undefined
      this.#backup = !this.#backup
      this.memo = undefined
      this.draws = 0
    }
  }

  /** Whether a peer may be asked that the session is bound to: one that drains, too. */
  #mayBind(peer: Peer): boolean {
    const { upstream } = this.group
    if (!upstream.single && this.#tried.includes(peer)) return false
    return excluded(peer, upstream.isAlone(peer), this.now, true) === undefined
  }

  /** The method has no say, and nothing of its turns changes. */
  #bind(peer: Peer): Attempt {
    if (this.group.split !== undefined) this.#countTrack(undefined)
    this.drifted = this.group.balancerOf(peer)?.drifted?.(peer, this.now) ?? 0
    return this.#reserve(peer, 'sticky')
  }

  /** Each request once: as one of its track and, where somebody elsewhere was found for it, as one that went there. */
  #countTrack(peer: Peer | undefined): void {
    const track = this.group.upstream.tracks.get(this.call.track)
    if (!this.#sent) track?.add('split', 1)
    this.#sent = true
    if (!this.fallen || this.#gone || peer === undefined) return
    track?.add('fallbacks', 1)
    this.#gone = true
  }

  #ask(balancer: Balancer): Peer | undefined {
    this.pick = ''
    this.drifted = 0
    return balancer.pick(this)
  }

  /**
   * Begins an attempt at a peer that was not picked by the method: the one a sticky session names, or the same
   * again on a fresh connection.
   * @param pick how the choice was made, for `$upstream_pick`
   */
  reserve(peer: Peer, pick: string): Attempt {
    const { zone } = this.group.upstream
    zone.enter()
    try {
      return this.#reserve(peer, pick)
    } finally {
      zone.leave()
    }
  }

  #reserve(peer: Peer, pick: string): Attempt {
    const now = this.#env.now()
    const attempt = new Attempt(this.group.upstream, peer, now, pick)
    attempt.drifted = this.drifted
    this.drifted = 0
    if (this.#sticky !== undefined) this.#stick(attempt, this.#sticky)
    attempt.returning = this.#walk?.returning === true && !peer.options.backup && pick !== 'sticky'
    if (!this.#tried.includes(peer)) this.#tried.push(peer)
    begin(attempt, now)
    // Where the same peer is asked on a fresh connection the shadow stays with its pick.
    this.#shadow?.begin(attempt, now)
    return attempt
  }

  #stick(attempt: Attempt, { status, session, hint }: StickyAsk): void {
    attempt.sticky = status
    attempt.session = session
    if (session !== undefined) attempt.boundTo = hint
    if (status !== '') this.group.upstream.zone.add(stickyFields[status], 1)
  }

  /** Whether the peer may be picked now. A lone server may be asked again, as there is nobody else. */
  ready(peer: Peer): boolean {
    const { upstream } = this.group
    if (!usable(peer, upstream.isAlone(peer), this.now)) return false
    return upstream.single || this.#tried.length === 0 || !this.#tried.includes(peer)
  }

  /** Whether this request has been at the peer already. */
  tried(peer: Peer): boolean {
    return this.#tried.includes(peer)
  }

  /**
   * Why `next` found nobody: `overflow` when some peer is kept from this request by nothing but its `max_conns`,
   * else `no_live`.
   */
  get denial(): 'overflow' | 'no_live' {
    return this.#denial
  }

  /** For people: what the denial leaves open; empty where nothing does. */
  get denialDetail(): string {
    if (this.#refused) return 'the peer of its session is not ready'
    if (this.#denial !== 'overflow') return ''
    return this.#byLease ? 'max_conns reached by the lease of the fleet' : 'max_conns reached'
  }

  #whyNobody(): 'overflow' | 'no_live' {
    const busy = busyPeers(this.group, this.call.track, this.now, this)
    if (busy.length === 0) return 'no_live'
    this.#byLease = busy.some(fullByLease)
    return 'overflow'
  }
}
