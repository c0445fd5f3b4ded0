import type { Peer } from './peer.ts'
import type { ProbeChange } from './probe-health.ts'
import type { Zone } from './zone.ts'

/*
 * What an agent on a peer asks for, by way of a probe that reads its orders. As with all that probes find, one thread
 * alone decides.
 */

/** What an agent on a peer asks for. What it does not mention is undefined and stays as it was. */
export interface PeerOrders {
  /** Part of the configured weight, 0 or more. */
  readonly weightFactor?: number | undefined
  /** Weight in place of the configured one, 0 or more. */
  readonly weight?: number | undefined
  /** Requests in progress at most; 0 takes the limit back. */
  readonly maxConns?: number | undefined
  readonly administrative?: 'ready' | 'drain' | 'maint' | undefined
  readonly operational?: 'up' | 'down' | undefined
}

/** Takes back whatever an agent may have asked for. */
export const noOrders: PeerOrders = {
  weightFactor: 1,
  maxConns: 0,
  administrative: 'ready',
  operational: 'up',
}

/** The column `agentState`: the administrative part is the rest of 3, and 3 more says down. */
const administrative = ['ready', 'drain', 'maint'] as const
const agentDown = administrative.length

/**
 * Does what an agent asks for. Its words come in pairs that undo each other and nothing else: `up` and `down`, and
 * `ready` with `drain` and `maint`. A weight of 0 is a way to say `drain`.
 */
export function obey(peer: Peer, orders: PeerOrders): ProbeChange | undefined {
  const { zone, index, options } = peer
  const before = agentWord(peer)
  zone.enter()
  const numbers = zone.peers
  const state = numbers.agentState[index]!
  const { administrative: asked, operational } = orders
  const place = asked === undefined ? state % agentDown : administrative.indexOf(asked)
  const down = operational === undefined ? state >= agentDown : operational === 'down'
  numbers.agentState[index] = place + (down ? agentDown : 0)
  if (orders.maxConns !== undefined) numbers.connsLimit[index] = orders.maxConns
  if (orders.weight !== undefined) weigh(peer, orders.weight / options.weight)
  else if (orders.weightFactor !== undefined) weigh(peer, orders.weightFactor)
  bar(peer)
  zone.leave()
  zone.wake()
  const after = agentWord(peer)
  return after === before ? undefined : { state: after, streak: 0, outMs: 0 }
}

/** What an agent has asked for that is still in force. */
export interface AgentOrders {
  readonly state: 'ready' | 'draining' | 'down'
  /** Part of the configured weight. */
  readonly weight: number
  /** Undefined: `max_conns` holds. */
  readonly max_conns: number | undefined
}

/** @returns undefined where no agent has asked for anything */
export function agentOrders(peer: Peer): AgentOrders | undefined {
  const { weightFactor, connsLimit } = peer.zone.peers
  const state = agentWord(peer)
  const weight = weightFactor[peer.index]!
  const limit = connsLimit[peer.index]!
  if (state === 'ready' && weight === 1 && limit === 0) return undefined
  return { state, weight, max_conns: limit || undefined }
}

/** What an agent has asked for, in the words of a peer's state. */
function agentWord({ zone, index }: Peer): 'ready' | 'draining' | 'down' {
  const state = zone.peers.agentState[index]!
  if (state >= agentDown || state % agentDown === 2) return 'down'
  return state % agentDown === 1 || zone.peers.weightFactor[index] === 0 ? 'draining' : 'ready'
}

/** What keeps a peer from requests for each word of an agent, as indexes in `bars` of health.ts. */
const barOfAgent = { ready: 0, draining: 2, down: 1 } as const
/** And for what probes found: healthy, checking, unhealthy. */
const barOfProbes = [0, 4, 3] as const

/**
 * Makes the column `barred` say what follows from all that agents and probes have said: an agent's word goes before
 * what probes found. To be called with the zone held.
 */
export function bar(peer: Peer): void {
  const { barred, probeHealth } = peer.zone.peers
  // The column has no other numbers.
  const found = probeHealth[peer.index]! as 0 | 1 | 2
  barred[peer.index] = barOfAgent[agentWord(peer)] || barOfProbes[found]
}

/** Sets what part of its weight a peer has. To be called with the zone held. */
export function weigh({ zone, index }: Peer, factor: number): void {
  if (zone.peers.weightFactor[index] === factor) return
  zone.peers.weightFactor[index] = factor
  zone.set('mostFactor', mostFactor(zone))
  settleTurns(zone)
}

/**
 * Cuts the turns down to one round of the weights as they are now: what is left of a weight of a thousand would
 * otherwise give the others hundreds of requests in a row.
 */
function settleTurns(zone: Zone): void {
  const { tenant, weightFactor, effectiveWeight, currentWeight } = zone.peers
  let round = 0
  for (let i = 0; i < zone.capacity; i++) if (tenant[i]! > 0) round += effectiveWeight[i]! * weightFactor[i]!
  for (let i = 0; i < zone.capacity; i++) {
    const turn = currentWeight[i]!
    if (Math.abs(turn) > round) currentWeight[i] = Math.sign(turn) * round
  }
}

/** The greatest factor of the zone's peers, which random draws are held against; 0 where all are 1. */
function mostFactor(zone: Zone): number {
  const { tenant, weightFactor } = zone.peers
  let most = 0
  let changed = false
  for (let i = 0; i < zone.capacity; i++) {
    if (tenant[i]! <= 0) continue
    const factor = weightFactor[i]!
    most = Math.max(most, factor)
    if (factor !== 1) changed = true
  }
  return changed ? most : 0
}
