import type { Peer } from './peer.ts'
import type { ExclusionReason } from './reasons.ts'

/** A peer's state in nginx's words. */
export const peerStates = [
  'draining',
  'down',
  'unhealthy',
  'checking',
  'unavailable',
  'busy',
  'recovering',
  'up',
] as const
export type PeerState = (typeof peerStates)[number]

/** What the column `barred` says, by its number: what probes, agents and people have decided of a peer. */
const bars = [undefined, 'down', 'draining', 'unhealthy', 'checking'] as const

/*
 * Passive health: pure decisions over a peer's numbers in its zone. Failures add up until a success of an attempt
 * that was chosen `fail_timeout` or more after the latest failure: a quiet period that slides, not a fixed window.
 * A peer whose failures reached `max_fails` is set aside; every `fail_timeout` one attempt is let through
 * (half-open), since the choice itself moves `checkedAt`. Times are compared exactly, without rounding to seconds.
 */

/** Whether its failures have reached `max_fails`. 0 switches that off. */
export function failing(peer: Peer): boolean {
  const limit = peer.options.max_fails
  return limit > 0 && peer.zone.peers.fails[peer.index]! >= limit
}

/**
 * Why the peer may not be chosen now; undefined when it may.
 * @param single whether it is alone in its group: then its failures do not count, since there is nobody else
 * @param now monotonic milliseconds
 * @param bound whether the request is of a session that is bound to it: draining does not matter then
 */
export function exclusion(
  peer: Peer,
  single: boolean,
  now: number,
  bound = false,
): ExclusionReason | undefined {
  const { options, index } = peer
  if (options.down) return 'down'
  // A request from before a reload still has the old list before it.
  if (peer.retired || (options.drain && !bound)) return 'draining'
  const numbers = peer.zone.peers
  const bar = bars[numbers.barred[index]!]
  if (bar !== undefined && !(bound && bar === 'draining')) return bar
  if (!single && options.max_fails > 0 && numbers.fails[index]! >= options.max_fails) {
    if (now < numbers.checkedAt[index]! + options.fail_timeout) return 'unavailable'
  }
  return full(peer) ? 'busy' : undefined
}

/** Whether it has as many requests in progress as it may have. */
export function full(peer: Peer): boolean {
  const most = connsLimit(peer)
  if (most === 0) return false
  const { conns, lease } = peer.zone.peers
  const count = conns[peer.index]!
  if (count >= most) return true
  if (peer.options.max_conns_scope !== 'fleet') return false
  const leased = lease[peer.index]!
  return leased > 0 && count >= leased - 1
}

/** Whether it is its lease alone that makes it full: all instances together may have more. */
export function fullByLease(peer: Peer): boolean {
  return full(peer) && peer.zone.peers.conns[peer.index]! < connsLimit(peer)
}

/** Most requests in progress at once: what an agent has set, or else what is configured; 0 is unlimited. */
export function connsLimit({ options, zone, index }: Peer): number {
  return zone.peers.connsLimit[index]! || options.max_conns
}

/** Whether the peer may be chosen now, as far as its own state says. See `exclusion`. */
export function usable(peer: Peer, single: boolean, now: number): boolean {
  return exclusion(peer, single, now) === undefined
}

/** How much of its weight the peer has while it comes back under `slow_start`: 0 to 1; 1 outside the ramp. */
export function throttle(peer: Peer, now: number): number {
  const since = peer.zone.peers.slowAt[peer.index]!
  if (since === 0) return 1
  const part = (now - since) / peer.options.slow_start
  // A reload may have taken slow_start away in the middle of a ramp: the part is then infinite or not a number.
  return part < 1 ? Math.max(0, part) : 1
}

/**
 * Counts a failed attempt against the peer.
 * @returns whether this failure set the peer aside; never for a peer that is alone
 */
export function fail(peer: Peer, single: boolean, now: number): boolean {
  const { options, index } = peer
  const numbers = peer.zone.peers
  const fails = numbers.fails[index]! + 1
  numbers.fails[index] = fails
  numbers.failsTotal[index]! += 1
  numbers.recoverAt[index] = now + options.fail_timeout
  numbers.checkedAt[index] = now
  if (options.max_fails === 0) return false
  if (options.slow_start > 0) numbers.slowAt[index] = fails < options.max_fails ? stepBack(peer, now) : 0
  else loseWeight(peer)
  // A failure of the half-open attempt finds the counter beyond the limit and is no new ejection.
  if (fails !== options.max_fails) return false
  numbers.unavailable[index]! += 1
  markDown(peer, now)
  return !single
}

/** A failure costs a peer its part of the weight, unless it has a slow start, which has its own way back. */
export function loseWeight({ options, zone, index }: Peer): void {
  if (options.slow_start > 0 || options.max_fails === 0) return
  const { effectiveWeight } = zone.peers
  const loss = Math.floor(options.weight / options.max_fails)
  effectiveWeight[index] = Math.max(0, effectiveWeight[index]! - loss)
}

/**
 * Sets the peer aside as if its failures had reached `max_fails`, since others have found that they do.
 * @param single whether it is alone in its group; then nothing is done
 * @returns whether it was set aside by this
 */
export function setAside(peer: Peer, single: boolean, now: number): boolean {
  const { options, index } = peer
  if (single || options.max_fails === 0 || failing(peer)) return false
  const numbers = peer.zone.peers
  numbers.fails[index] = options.max_fails
  numbers.recoverAt[index] = now + options.fail_timeout
  numbers.checkedAt[index] = now
  if (options.slow_start > 0) numbers.slowAt[index] = 0
  numbers.unavailable[index]! += 1
  markDown(peer, now)
  return true
}

/** Where the ramp stands after a failure that did not set the peer aside: `slow_start / max_fails` further back. */
function stepBack(peer: Peer, now: number): number {
  const { slow_start, max_fails } = peer.options
  const since = peer.zone.peers.slowAt[peer.index]!
  const start = since === 0 || now - since >= slow_start ? now - slow_start : since
  // At worst the ramp begins anew: its start is never to come. 0 would say that there is no ramp.
  return Math.min(now, start + slow_start / max_fails) || Number.MIN_VALUE
}

/**
 * Notes since when the peer is unavailable, by both clocks: the one serves spans, the other
 * people.
 */
export function markDown(peer: Peer, now: number): void {
  const numbers = peer.zone.peers
  if (numbers.downstartWallAt[peer.index]! > 0) return
  numbers.downAt[peer.index] = now
  numbers.downstartWallAt[peer.index] = Date.now()
}

/**
 * Counts an attempt that says that the peer works. Only one that was chosen after the quiet time clears anything: an
 * answer to a request from before the failure says nothing of the peer's present state.
 * @param chosenAt when the attempt was chosen; by default the last choice of the peer
 * @returns whether this success took back a peer that had been unavailable
 */
export function succeed(
  peer: Peer,
  now: number,
  chosenAt: number = peer.zone.peers.checkedAt[peer.index]!,
): boolean {
  const { options, index } = peer
  const numbers = peer.zone.peers
  if (chosenAt < numbers.recoverAt[index]!) return false
  if (options.slow_start > 0 && failing(peer)) numbers.slowAt[index] = now || Number.MIN_VALUE
  numbers.fails[index] = 0
  return markUp(peer, now)
}

/** Ends the span of unavailability. @returns whether there was one */
export function markUp(peer: Peer, now: number): boolean {
  const numbers = peer.zone.peers
  if (numbers.downstartWallAt[peer.index] === 0) return false
  numbers.downtimeMs[peer.index]! += now - numbers.downAt[peer.index]!
  numbers.downAt[peer.index] = 0
  numbers.downstartWallAt[peer.index] = 0
  return true
}

/**
 * Takes back a peer whose failures have set it aside, or soon would, since somebody says that it works. A slow start
 * begins as it does after any recovery.
 */
export function forgive(peer: Peer, now: number): void {
  const { options, index } = peer
  const numbers = peer.zone.peers
  if (options.slow_start === 0) numbers.effectiveWeight[index] = options.weight
  else if (failing(peer)) numbers.slowAt[index] = now || Number.MIN_VALUE
  numbers.fails[index] = 0
  numbers.recoverAt[index] = 0
  markUp(peer, now)
}

/**
 * Takes back a choice that came to nothing, as when the client went away. Where it was the half-open attempt of a
 * peer that is set aside, the next request may try at once instead of waiting for another `fail_timeout`.
 */
export function unchoose(peer: Peer, chosenAt: number): void {
  if (!failing(peer)) return
  const { index, options } = peer
  const numbers = peer.zone.peers
  // A later choice or a failure has its own claim on the time that must pass.
  if (numbers.checkedAt[index] !== chosenAt || chosenAt < numbers.recoverAt[index]!) return
  numbers.checkedAt[index] = numbers.recoverAt[index]! - options.fail_timeout
}

/** How long the peer has been unavailable in all, the running span included; milliseconds. */
export function downtime(peer: Peer, now: number): number {
  const numbers = peer.zone.peers
  const ended = numbers.downtimeMs[peer.index]!
  if (numbers.downstartWallAt[peer.index]! === 0) return ended
  // Whoever reads many peers does so by the moment at which it began: a span may be younger than that.
  return ended + Math.max(0, now - numbers.downAt[peer.index]!)
}

/**
 * The state to show: the first that holds. `unavailable` stays until a success, also where the peer is tried again
 * meanwhile or, alone in its group, serves every request.
 */
export function peerState(peer: Peer, now: number): PeerState {
  const { options, index } = peer
  const numbers = peer.zone.peers
  if (peer.retired) return 'draining'
  if (options.down) return 'down'
  if (options.drain) return 'draining'
  const bar = bars[numbers.barred[index]!]
  if (bar !== undefined) return bar
  if (numbers.downstartWallAt[index]! > 0) return 'unavailable'
  if (full(peer)) return 'busy'
  if (throttle(peer, now) < 1) return 'recovering'
  return 'up'
}
