import type { FleetFacts, FleetGroupFacts, FleetPeerFacts } from '../../feedback/fleet/facts.ts'
import { type Entry, rounded } from './tree.ts'

/*
 * What instances share, in the status tree: under keys named `fleet`, where there is a fleet. Times in milliseconds.
 * What is not known is left out.
 */

/** Of the program. */
export function* fleetEntries(facts: FleetFacts): Generator<Entry> {
  yield ['group', facts.group]
  yield ['name', facts.name]
  yield ['id', facts.id]
  yield ['servers', facts.servers.join(' ')]
  yield ['up', facts.up]
  yield ['since', new Date(facts.since)]
  if (facts.error !== undefined) yield ['error', facts.error]
  yield ['required', facts.required]
  yield ['interval', facts.interval]
  yield ['ttl', facts.ttl]
  yield ['exchanges', facts.exchanges]
  yield ['failures', facts.failures]
  yield ['losses', facts.losses]
  if (facts.roundTripMs !== undefined) yield ['round_trip', rounded(facts.roundTripMs)]
}

/** Of a group. */
export function* fleetGroupEntries({ members, age, resets, sessions }: FleetGroupFacts): Generator<Entry> {
  if (members > 0) yield ['members', members]
  if (age !== undefined) yield ['age', Math.round(age)]
  yield ['resets', resets]
  if (sessions !== undefined) yield ['sessions', () => Object.entries(sessions)]
}

/** Of a peer. */
export function* fleetPeerEntries(facts: FleetPeerFacts): Generator<Entry> {
  yield ['members', facts.members]
  yield ['current', facts.conns]
  yield ['answers', facts.answers]
  yield ['good', facts.good]
  if (facts.average !== undefined) yield ['avg', rounded(facts.average)]
  yield ['stuck', facts.stuck]
  yield ['stuck_age', rounded(facts.stuckAge)]
  if (facts.lease !== undefined) yield ['lease', facts.lease]
  yield ['unavailable', facts.ejections]
}
