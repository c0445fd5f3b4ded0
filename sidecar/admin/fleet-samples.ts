import type { FleetFacts, FleetGroupFacts, FleetPeerFacts } from '../../feedback/fleet/facts.ts'

/*
 * Where the numbers of the fleet in the table of metrics come from: by name, how they are read; undefined where there
 * is nothing to tell. What is not known is left out, since 0 would say that it is known.
 */

type Readings<F> = ReadonlyMap<string, (facts: F) => number | undefined>

/** Milliseconds in seconds. */
const seconds = (ms: number | undefined) => (ms === undefined ? undefined : ms / 1000)

/** Of the program. */
export const fleetNumbers: Readings<FleetFacts> = new Map([
  ['evenkeel_fleet_up', ({ up }: FleetFacts) => (up ? 1 : 0)],
  ['evenkeel_fleet_exchanges_total', ({ exchanges }) => exchanges],
  ['evenkeel_fleet_exchange_failures_total', ({ failures }) => failures],
  ['evenkeel_fleet_losses_total', ({ losses }) => losses],
  ['evenkeel_fleet_round_trip_seconds', ({ roundTripMs }) => seconds(roundTripMs)],
])

/** Of a group that is shared. */
export const fleetGroupNumbers: Readings<FleetGroupFacts> = new Map([
  ['evenkeel_upstream_fleet_members', ({ members }: FleetGroupFacts) => members || undefined],
  ['evenkeel_upstream_fleet_resets_total', ({ resets }) => resets],
  ['evenkeel_upstream_fleet_sessions_told_total', ({ sessions }) => sessions?.told],
  ['evenkeel_upstream_fleet_sessions_heard_total', ({ sessions }) => sessions?.heard],
  ['evenkeel_upstream_fleet_age_seconds', ({ age }) => seconds(age)],
])

/** Of a peer of which something has been heard. */
export const fleetPeerNumbers: Readings<FleetPeerFacts> = new Map([
  ['evenkeel_peer_fleet_in_flight', ({ conns }: FleetPeerFacts) => conns],
  ['evenkeel_peer_fleet_answers', ({ answers }) => answers],
  ['evenkeel_peer_fleet_failures', ({ answers, good }) => answers - good],
  ['evenkeel_peer_fleet_average_seconds', ({ average }) => seconds(average)],
  ['evenkeel_peer_fleet_stuck', ({ stuck }) => stuck],
  ['evenkeel_peer_fleet_stuck_age_seconds', ({ stuckAge }) => seconds(stuckAge)],
  ['evenkeel_peer_fleet_lease', ({ lease }) => lease],
])
