import { heardBudget } from '../budget.ts'
import { peerStateChannel } from '../channels.ts'
import type { Peer } from '../peer.ts'
import type { Upstream } from '../upstream.ts'
import { anyWaiting } from '../waiting.ts'
import type { FleetPeerFacts } from './facts.ts'
import { type Entry, enter, leaving, lookAt, skip } from './gather.ts'
import { hearPeer } from './hear.ts'
import { allowed, isCommon, lease, leased, unlease } from './held-lease.ts'
import { fairLease } from './leases.ts'
import { peerFacts } from './peer-facts.ts'
import { peerId } from './peer-id.ts'
import type { Heard, Sent, Telling, Update } from './told.ts'

/**
 * What one instance has told of a group and heard of it. It begins with nothing: what was counted before is not told,
 * and what the others had told before is where differences are counted from. The same again whenever an exchange was
 * lost: nobody knows then whether it counted, so it is not told again, and the next answer is only a new beginning.
 */
export class Ledger {
  #upstream: Upstream
  readonly #ttl: number
  #entries = new Map<string, Entry>()
  /** The same by the peers' places in the zone. */
  readonly #byIndex = new Map<number, Entry>()
  /** Peers that are gone and have to be taken out. */
  readonly #left = new Set<string>()
  #requests: number
  #retries: number
  /** The group's totals at the last answer; undefined while there is nothing to count from. */
  #totals: { readonly requests: number; readonly retries: number } | undefined
  #epoch = ''
  #version = 0
  #members = 0
  /** Most that were known in this epoch, or at the end of the one before: they may only not have been heard yet. */
  #mostMembers = 0
  #at = 0
  /** From the answer before to the last one, by the server's clock. */
  #gap = 0
  #resets = 0
  /** When the last answer came; undefined before the first. */
  #heardAt: number | undefined
  #cut = true

  /** @param ttl for so long of a new state not all may have been heard, milliseconds */
  constructor(upstream: Upstream, ttl = 0) {
    this.#upstream = upstream
    this.#ttl = ttl
    this.#requests = upstream.zone.get('requests')
    this.#retries = upstream.zone.get('retries')
    this.use(upstream)
  }

  get upstream(): Upstream {
    return this.#upstream
  }
  get epoch(): string {
    return this.#epoch
  }
  get version(): number {
    return this.#version
  }
  /** Instances that share the group; 0 before the first answer. */
  get members(): number {
    return this.#members
  }
  get resets(): number {
    return this.#resets
  }
  /** Monotonic milliseconds of the last answer; undefined before the first. */
  get heardAt(): number | undefined {
    return this.#heardAt
  }

  /** Goes on with the group as a reload has made it. */
  use(upstream: Upstream): void {
    this.#upstream = upstream
    const before = this.#entries
    this.#entries = new Map()
    this.#byIndex.clear()
    for (const peer of [...upstream.peers, ...upstream.backups]) {
      let name = peerId(peer)
      // A server may stand in a group several times.
      for (let n = 2; this.#entries.has(name); n++) name = `${peerId(peer)} #${n}`
      const known = before.get(name)
      const same = known?.peer.index === peer.index && known.peer.tenant === peer.tenant
      // Everything is to be heard again, that of the new one too.
      if (!same) this.#version = 0
      const entry = same ? { ...known, peer } : enter(peer)
      this.#entries.set(name, entry)
      this.#byIndex.set(peer.index, entry)
      before.delete(name)
      this.#left.delete(name)
      if (isCommon(peer)) continue
      peer.zone.enter()
      unlease(peer)
      peer.zone.leave()
    }
    for (const [name, { sent }] of before) if (sent !== 'nothing') this.#left.add(name)
  }

  /**
   * What there is to tell. It counts as told from now on, whatever becomes of it.
   * @param now monotonic milliseconds
   */
  gather(now: number): Telling {
    const { zone } = this.#upstream
    const updates: { name: string; update: Update }[] = []
    zone.enter()
    try {
      const requests = zone.get('requests') - this.#requests
      const retries = zone.get('retries') - this.#retries
      this.#requests += requests
      this.#retries += retries
      // Who has not heard of anybody yet leaves half to somebody who may begin together with it.
      const members = this.#members || 2
      // Whoever waits has asked, however long ago.
      const asked = requests > 0 || anyWaiting(zone)
      const circumstances = { members, asked, at: this.#at, gap: this.#gap, now }
      for (const [name, entry] of this.#entries) {
        const update = lookAt(entry, this.#upstream, circumstances)
        if (update !== undefined) updates.push({ name, update })
      }
      for (const name of this.#left) updates.push({ name, update: leaving })
      return { updates, requests, retries }
    } finally {
      zone.leave()
    }
  }

  /**
   * What is sent of it: with that, what is known of the shared state.
   * @param id names the instance
   * @param ttl milliseconds
   */
  send(telling: Telling, id: string, ttl = this.#ttl): Sent {
    const known = { epoch: this.#epoch, version: this.#version, at: this.#at, members: this.#mostMembers }
    return { ...telling, id, ttl, ...known }
  }

  /**
   * The others' answer.
   * @param telling what was told
   * @param at the middle of the exchange, monotonic milliseconds
   */
  hear(telling: Telling, heard: Heard, at: number, now: number): void {
    const known = !heard.fresh && this.#totals !== undefined && heard.epoch === this.#epoch
    if (this.#epoch !== '' && heard.epoch !== this.#epoch) this.#resets += 1
    const told = new Map(
      telling.updates.map(({ name, update }, i) => [name, { update, lease: heard.leases[i]! }]),
    )
    if (known) {
      const { requests, retries } = this.#totals!
      const others = (sum: number, before: number, own: number) => Math.max(0, sum - before - own)
      heardBudget(
        this.#upstream,
        others(heard.requests, requests, telling.requests),
        others(heard.retries, retries, telling.retries),
        now,
      )
    }
    const set: Peer[] = []
    const { zone } = this.#upstream
    zone.enter()
    try {
      for (const [name, entry] of this.#entries) {
        const own = told.get(name)
        if (own) {
          entry.sent = own.update
          if (own.update.limit > 0) lease(entry.peer, allowed(own.update, own.lease, heard.peers.get(name)))
        } else if (heard.fresh) entry.sent = 'nothing'
        const record = heard.peers.get(name)
        if (heard.fresh) entry.heard = undefined
        if (record === undefined) continue
        // What was told meanwhile may have counted or not: no difference is right.
        if (!known) entry.heard = undefined
        if (
          hearPeer(entry, record, this.#upstream, {
            own: own?.update,
            shift: at - heard.at,
            serverAt: heard.at,
            now,
          })
        )
          set.push(entry.peer)
        entry.heard = record
      }
      this.#countStuck()
    } finally {
      zone.leave()
    }
    // A lease may have become larger.
    zone.wake()
    for (const peer of set) {
      const fails = peer.options.max_fails
      peerStateChannel.publish({
        upstream: this.#upstream,
        peer,
        state: 'unavailable',
        fails,
        downtimeMs: 0,
        heard: true,
      })
    }
    for (const [name, { update }] of told) if (update.leaves) this.#left.delete(name)
    this.#totals = { requests: heard.requests, retries: heard.retries }
    const young = heard.epoch === this.#epoch || this.#at < this.#ttl
    this.#mostMembers = Math.max(young ? this.#mostMembers : this.#members, heard.members)
    this.#gap = heard.epoch === this.#epoch ? Math.max(0, heard.at - this.#at) : 0
    this.#epoch = heard.epoch
    this.#version = heard.version
    this.#members = heard.members
    this.#at = heard.at
    this.#heardAt = now
    this.#cut = false
  }

  /** Nobody can be told anything now, and later it would be taken for new. */
  skip(): void {
    const { zone } = this.#upstream
    zone.enter()
    this.#requests = zone.get('requests')
    this.#retries = zone.get('retries')
    for (const entry of this.#entries.values()) skip(entry)
    zone.leave()
  }

  /** No answer came, or none in time. */
  lose(telling: Telling): void {
    this.#totals = undefined
    for (const { name } of telling.updates) {
      const entry = this.#entries.get(name)
      if (entry) entry.sent = 'unknown'
    }
  }

  /**
   * Redis is lost: of a limit that is the fleet's this instance takes a fair part from now on, be that more or less than
   * it has leased. Who loses it alone thereby has at most that beyond what the others have leased.
   */
  takeFair(): void {
    if (this.#heardAt === undefined) return
    const members = this.#at < this.#ttl ? this.#mostMembers : this.#members
    const { zone } = this.#upstream
    zone.enter()
    for (const { peer } of this.#entries.values()) {
      if (isCommon(peer)) lease(peer, fairLease(peer.options.max_conns, members))
    }
    zone.leave()
    zone.wake()
  }

  /** Whether there is a limit that is the fleet's, and nothing of it is leased yet. */
  get without(): boolean {
    const peers = Array.from(this.#entries.values(), ({ peer }) => peer)
    return peers.filter(isCommon).some((peer) => (leased(peer) ?? 0) === 0)
  }

  /**
   * Nothing has been heard for `ttl`: what others told counts no more, and of a limit that is the fleet's this instance
   * takes a fair part, since its lease has gone to others by now.
   */
  cutOff(): void {
    if (this.#cut) return
    this.#cut = true
    this.#totals = undefined
    const { zone } = this.#upstream
    zone.enter()
    for (const entry of this.#entries.values()) {
      const { index } = entry.peer
      zone.peers.stuckCount[index] = 0
      zone.peers.stuckStart[index] = 0
      entry.heard = undefined
      entry.sent = 'nothing'
    }
    zone.set('stuckPeers', 0)
    zone.leave()
    this.takeFair()
    this.#version = 0
  }

  /**
   * The group is shared no more: its numbers are this instance's own again.
   * @param shared whether it soon is again, by another fleet: until then no more of a limit is taken than now
   */
  end(shared: boolean): void {
    const { zone } = this.#upstream
    this.cutOff()
    if (shared) return
    zone.enter()
    for (const { peer } of this.#entries.values()) unlease(peer)
    zone.leave()
    zone.wake()
  }

  /** @returns undefined where nothing has been heard of the peer */
  about(peer: Peer, now: number): FleetPeerFacts | undefined {
    const entry = this.#byIndex.get(peer.index)
    return entry?.heard && peerFacts(entry.peer, entry.heard, now)
  }

  /** Whether the other instances have none of its peers, as when two apps use one name. */
  get alone(): boolean {
    if (this.#members < 2) return false
    const heard = [...this.#entries.values()].map((entry) => entry.heard)
    return heard.length > 0 && heard.every((record) => record?.members === 1)
  }

  #countStuck(): void {
    const { zone } = this.#upstream
    let count = 0
    for (const { peer } of this.#entries.values()) if (zone.peers.stuckCount[peer.index]! > 0) count += 1
    zone.set('stuckPeers', count)
  }
}
