import type { Call } from './call.ts'
import { loseWeight } from './health.ts'
import { holdConn } from './held.ts'
import { learnBegin, learnConnect, learnEnd, learnHeader, learnProbe } from './learn.ts'
import { connectLesson, endLesson, headerLesson } from './lesson.ts'
import { Attempt } from './outcome.ts'
import type { Peer } from './peer.ts'
import type { Upstream } from './upstream.ts'
import type { Zone } from './zone.ts'

/*
 * A method that is tried beside a group's own: it picks whenever that one picks, and nothing is sent. All that it goes by
 * and changes lies in a zone of its own, with a twin of each primary:
 *
 * - It learns, by its own rules, from what was really asked and answered, since there is nothing else to learn from.
 * - In flight are its own picks. Each stays at the twin that was picked for as long as the real attempt lasts, wherever
 *   that is: nobody knows how long the peer would have taken.
 * - Whom it may pick, and what failures, agents and a slow start leave of a weight, is what it is in the group.
 *
 * Locks are taken in one order: the group's zone, then the shadow's.
 */

/** What a shadow method has of one attempt. */
export interface ShadowAttempt {
  readonly shadow: Shadow
  /** The attempt as the shadow's own at the twin of the peer that was asked: what is learnt of it is kept there. */
  readonly learner: Attempt
  /** The twin that it would have been at instead; undefined where the method was not asked. */
  readonly held: Peer | undefined
}

/** The state of a group's shadow method. */
export class Shadow {
  /** The group as the shadow has it: twins of the primaries, in the same order, in a zone of their own. */
  readonly upstream: Upstream
  readonly #peers: readonly Peer[]
  /** By index in the zone of the group and of the shadow. */
  readonly #twins: readonly (Peer | undefined)[]
  readonly #originals: readonly (Peer | undefined)[]
  /** Primaries that have a slow start, with their twins. */
  readonly #slow: readonly (readonly [Peer, Peer])[]

  /** @param peers the group's primaries */
  constructor(upstream: Upstream, peers: readonly Peer[]) {
    this.upstream = upstream
    this.#peers = peers
    const twins: (Peer | undefined)[] = []
    const originals: (Peer | undefined)[] = []
    for (const [i, twin] of upstream.peers.entries()) {
      twins[peers[i]!.index] = twin
      originals[twin.index] = peers[i]!
    }
    this.#twins = twins
    this.#originals = originals
    this.#slow = peers.flatMap((peer, i) =>
      peer.options.slow_start > 0 ? [[peer, upstream.peers[i]!] as const] : [],
    )
  }

  /** Undefined for a peer that is none of the primaries. */
  twin(peer: Peer): Peer | undefined {
    return peer.options.backup ? undefined : this.#twins[peer.index]
  }

  /** The peer that a twin stands for. */
  original(twin: Peer): Peer {
    return this.#originals[twin.index]!
  }

  /** What the group knows of its peers' weights and ramps, and of what is stuck there at other instances, holds here too. */
  heed(): void {
    const [first] = this.#peers
    if (first === undefined) return
    const from = first.zone
    const to = this.upstream.zone
    for (const [peer, { index }] of this.#slow) to.peers.slowAt[index] = from.peers.slowAt[peer.index]!
    const stuck = from.get('stuckPeers')
    if (stuck > 0 || to.get('stuckPeers') > 0) {
      to.set('stuckPeers', stuck)
      this.#copy('stuckCount')
      this.#copy('stuckStart')
    }
    const most = from.get('mostFactor')
    if (most > 0 || to.get('mostFactor') > 0) {
      to.set('mostFactor', most)
      this.#copy('weightFactor')
    }
  }

  #copy(field: 'stuckCount' | 'stuckStart' | 'weightFactor'): void {
    const { peers, zone } = this.upstream
    const column = zone.peers[field]
    for (const { index } of peers) {
      const { zone: from, index: at } = this.#originals[index]!
      column[index] = from.peers[field][at]!
    }
  }

  /**
   * Counts what both methods have picked. To be called with both zones held.
   * @param peer the one that is asked
   * @param twin of the one that it would have been
   */
  compare(peer: Peer, twin: Peer): void {
    const { zone } = this.upstream
    const picked = usual(peer)
    const other = usual(this.original(twin))
    zone.peers.selected[twin.index]! += 1
    // A pair of which one has never answered has no times to compare.
    if (picked === 0 || other === 0) return
    zone.add('shadowPicks', 1)
    if (this.#twins[peer.index] === twin) zone.add('shadowSame', 1)
    zone.add('pickedMs', picked)
    zone.add('shadowMs', other)
  }

  /**
   * An attempt has begun. To be called with the group's zone held.
   * @param held the twin of the peer that the shadow would have asked instead; undefined: it was not asked
   * @param drifted see `Attempt.drifted`; what the shadow has of the peer that is asked
   */
  begin(attempt: Attempt, held: Peer | undefined, drifted: number, now: number): void {
    const twin = attempt.peer && this.twin(attempt.peer)
    if (twin === undefined) return
    const learner = new Attempt(this.upstream, twin, now, attempt.pick)
    learner.drifted = drifted
    attempt.shadow = { shadow: this, learner, held }
    const { zone } = this.upstream
    zone.enter()
    try {
      if (held !== undefined) holdConn(zone, held.index, 1)
      learnBegin(learner, now)
    } finally {
      zone.leave()
    }
  }

  /** Learns from a probe's answer where its own `account` asks about probes; see `learnProbe` of learn.ts. */
  probed(attempt: Attempt, call: Call, now: number): void {
    const twin = attempt.peer && this.twin(attempt.peer)
    if (twin === undefined) return
    const learner = new Attempt(this.upstream, twin, attempt.startedAt, attempt.pick)
    reflect(attempt, learner)
    learnProbe(learner, call, now)
  }
}

/** Counts what both methods pick from now on anew. */
export function forgetPicks(zone: Zone): void {
  zone.enter()
  for (const field of ['shadowPicks', 'shadowSame', 'pickedMs', 'shadowMs'] as const) zone.set(field, 0)
  zone.peers.selected.fill(0)
  zone.leave()
}

/** The header of an attempt has come, and goes to the client. Holds the shadow's zone itself. */
export function shadowMeasured(attempt: Attempt, call: Call | undefined, now: number): void {
  const { shadow } = attempt
  if (shadow === undefined) return
  const { learner } = shadow
  reflect(attempt, learner)
  const lesson = headerLesson(learner, call, now)
  const { zone } = learner.upstream
  zone.enter()
  try {
    learnHeader(learner, lesson, now)
  } finally {
    zone.leave()
  }
}

/** The connection of an attempt of `stream` is there. Holds the shadow's zone itself. */
export function shadowConnected(attempt: Attempt, call: Call | undefined, now: number): void {
  const { shadow } = attempt
  if (shadow === undefined) return
  const { learner } = shadow
  reflect(attempt, learner)
  const lesson = connectLesson(learner, call)
  const { zone } = learner.upstream
  zone.enter()
  try {
    learnConnect(learner, lesson, now)
  } finally {
    zone.leave()
  }
}

/** An attempt has ended. Holds the shadow's zone itself. */
export function shadowEnded(attempt: Attempt, call: Call | undefined, now: number): void {
  const { shadow } = attempt
  if (shadow === undefined) return
  attempt.shadow = undefined
  const { learner, held } = shadow
  reflect(attempt, learner)
  const lesson = endLesson(learner, call, now)
  const { zone } = learner.upstream
  zone.enter()
  try {
    if (held !== undefined) holdConn(zone, held.index, -1)
    if (attempt.failed && learner.peer) loseWeight(learner.peer)
    learnEnd(learner, lesson, now)
  } finally {
    zone.leave()
  }
}

/** What is known of the attempt so far. */
function reflect(attempt: Attempt, learner: Attempt): void {
  learner.peerStatus = attempt.peerStatus
  learner.headers = attempt.headers
  learner.trailers = attempt.trailers
  learner.connectMs = attempt.connectMs
  learner.headerMs = attempt.headerMs
  learner.responseMs = attempt.responseMs
  learner.ending = attempt.ending
  learner.reason = attempt.reason
  learner.failed = attempt.failed
  learner.next = attempt.next
  learner.report = attempt.report
}

/** What the peer's answers take on average, milliseconds; 0: nobody knows. */
function usual({ zone, index }: Peer): number {
  return zone.peers.responseTime[index]! || zone.peers.headerTime[index]!
}
