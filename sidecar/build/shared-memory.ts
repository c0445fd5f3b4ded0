import type { Peer } from '../../feedback/peer.ts'
import type { ServerZone, SharedServerZone } from '../../feedback/server-zone.ts'
import type { SharedSessions } from '../../feedback/sessions/sessions.ts'
import { type SharedTrack, Track } from '../../feedback/track.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import type { SharedZone, Zone } from '../../feedback/zone.ts'
import type { LiveGroup } from './groups.ts'
import type { ServerZoneKind } from './memory.ts'
import type { Plan } from './plans.ts'

interface Seat {
  readonly index: number
  readonly tenant: number
}

/** A zone, and the slots of its peers in the order of the plan. */
export interface SharedSeats {
  readonly zone: SharedZone
  readonly tracks: readonly SharedTrack[]
  readonly seats: readonly Seat[]
}

/** A group's zone, and that of the method that is tried there. */
export interface SharedGroup extends SharedSeats {
  readonly shadow: SharedSeats | undefined
  readonly sessions: SharedSessions | undefined
}

/** What another thread needs to join; plain data. */
export interface SharedMemory {
  /** By lower-case name of the group. */
  readonly groups: ReadonlyMap<string, SharedGroup>
  readonly serverZones: Readonly<Record<ServerZoneKind, ReadonlyMap<string, SharedServerZone>>>
}

/** What a running configuration has that can be shared. */
export function shareMemory(
  plans: readonly Plan[],
  running: {
    readonly groups: ReadonlyMap<string, LiveGroup>
    readonly serverZones: ReadonlyMap<string, ServerZone>
    readonly locationZones: ReadonlyMap<string, ServerZone>
    readonly streamZones: ReadonlyMap<string, ServerZone>
  },
): SharedMemory {
  const groups = new Map<string, SharedGroup>()
  for (const plan of plans) {
    const key = plan.name.toLowerCase()
    const { upstream } = running.groups.get(key)!.balancing
    const { zone, tracks, shadow } = upstream
    const seats = seatsOf(plan, upstream)
    groups.set(key, {
      ...sharedOf(zone, tracks),
      seats,
      shadow: shadow && sharedShadow(shadow.upstream),
      sessions: upstream.sessions?.table.share(),
    })
  }
  const shared = (zones: ReadonlyMap<string, ServerZone>) =>
    new Map(Array.from(zones, ([name, zone]) => [name, zone.share()]))
  return {
    groups,
    serverZones: {
      server: shared(running.serverZones),
      location: shared(running.locationZones),
      stream: shared(running.streamZones),
    },
  }
}

/** In the order of the plan. */
export function seatsOf({ wanted }: Plan, { peers, backups }: Upstream): Seat[] {
  const lists = { false: peers.values(), true: backups.values() }
  return wanted.map(({ options }) => seatOf(lists[`${options.backup}`].next().value!))
}

function sharedShadow({ zone, tracks, peers }: Upstream): SharedSeats {
  return { ...sharedOf(zone, tracks), seats: peers.map(seatOf) }
}

function sharedOf(zone: Zone, tracks: ReadonlyMap<string, Track>): Omit<SharedSeats, 'seats'> {
  return { zone: zone.share(), tracks: Array.from(tracks.values(), (track) => track.share()) }
}

function seatOf({ index, tenant }: Peer): Seat {
  return { index, tenant }
}

/** The same tracks in another thread. */
export function tracksFrom(shared: readonly SharedTrack[]): ReadonlyMap<string, Track> {
  return new Map(shared.map((track) => [track.name, new Track(track.name, track)]))
}
