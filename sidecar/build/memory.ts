import { isDeepStrictEqual } from 'node:util'
import { forgetSwitch } from '../../feedback/backup-switch.ts'
import { type Adopted, adopt, type Wanted } from '../../feedback/carry.ts'
import { monotonic } from '../../feedback/clock.ts'
import { Peer } from '../../feedback/peer.ts'
import { ServerZone, type SharedServerZone } from '../../feedback/server-zone.ts'
import { Sessions, type SharedSessions } from '../../feedback/sessions/sessions.ts'
import { forgetPicks } from '../../feedback/shadow.ts'
import { type SharedTrack, Track, tracksOf } from '../../feedback/track.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import { type SharedZone, Zone } from '../../feedback/zone.ts'
import { sizeBytes } from '../config/units.ts'
import type { LiveGroup } from './groups.ts'
import type { Plan } from './plans.ts'
import { learnOf } from './sticky.ts'

export type ServerZoneKind = 'server' | 'location' | 'stream'

/** Where the numbers of a configuration lie: one thread makes the place, the others join it there. */
export interface Memory {
  /** Whether the peers of a group that runs now are where they would be seated again. */
  holds(group: LiveGroup): boolean
  /**
   * Peers of a group, in their zone.
   * @param old the group of that name that runs now
   */
  seat(plan: Plan, old: LiveGroup | undefined): Adopted
  /**
   * The group's tracks.
   * @param old the group of that name that runs now
   */
  tracks(plan: Plan, old: LiveGroup | undefined): ReadonlyMap<string, Track>
  /**
   * Twins of a group's primaries, in a zone of their own, for the method that is tried there.
   * @param old what such a method has now, where it is the same one
   * @param anew whether what it has picked is counted anew
   */
  shadow(plan: Plan, old: Upstream | undefined, anew: boolean): SeatedShadow
  /**
   * The sessions that a group learns; undefined where it does not.
   * @param old the group of that name that runs now: what it has under the same name of a table is kept
   */
  sessions(plan: Plan, old: LiveGroup | undefined): Sessions | undefined
  /** @param old the zone of that kind and name that is counted in now */
  serverZone(kind: ServerZoneKind, name: string, old: ServerZone | undefined): ServerZone
}

/**
 * Memory of the thread that reads the configuration.
 * @param threads how many others work on it; 0: this one alone
 */
export function ownMemory(threads: number): Memory {
  return {
    holds: () => true,
    seat(plan, old) {
      const adopted = adopt(old?.balancing.upstream, plan.wanted, plan.name, monotonic(), threads)
      if (plan.block.backup_switch === undefined || adopted.backups.length === 0) forgetSwitch(adopted.zone)
      return adopted
    },
    tracks: (plan, old) =>
      tracksOf(
        plan.wanted.map(({ options }) => options.track),
        old?.balancing.upstream.tracks,
      ),
    shadow(plan, old, anew) {
      const wanted = primariesOf(plan)
      const { zone, peers, removed } = adopt(old, wanted, plan.name, monotonic(), threads)
      if (anew) forgetPicks(zone)
      const tracks = new Map<string, Track>()
      for (const { options } of wanted)
        tracks.set(options.track, old?.tracks.get(options.track) ?? new Track(options.track))
      return { zone, peers, removed, tracks }
    },
    sessions(plan, old) {
      const learn = learnOf(plan.block)
      if (learn === undefined) return undefined
      const { name, size } = learn.zone
      const slots = Sessions.slotsOf(sizeBytes(size) ?? 0)
      const before = old?.balancing.upstream.sessions?.table
      if (before?.name !== name) return new Sessions(name, slots, threads)
      if (before.slots === slots) return before
      const table = new Sessions(name, slots, threads)
      table.merge(before.all())
      return table
    },
    serverZone: (_kind, name, old) => old ?? new ServerZone(name, Math.max(1, threads)),
  }
}

/** Where the twins of a group's primaries are. */
export interface SeatedShadow extends Omit<Adopted, 'backups'> {
  /** For what is usual in each; no sample is kept in them. */
  readonly tracks: ReadonlyMap<string, Track>
}

function primariesOf({ wanted }: Plan): Wanted[] {
  return wanted.filter(({ options }) => !options.backup)
}

interface Seat {
  readonly index: number
  readonly tenant: number
}

/** A zone, and the slots of its peers in the order of the plan. */
interface SharedSeats {
  readonly zone: SharedZone
  readonly tracks: readonly SharedTrack[]
  readonly seats: readonly Seat[]
}

/** A group's zone, and that of the method that is tried there. */
interface SharedGroup extends SharedSeats {
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
function seatsOf({ wanted }: Plan, { peers, backups }: Upstream): Seat[] {
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

function tracksFrom(shared: readonly SharedTrack[]): ReadonlyMap<string, Track> {
  return new Map(shared.map((track) => [track.name, new Track(track.name, track)]))
}

/** The memory that a thread has joined, over all reloads. */
export class JoinedMemory implements Memory {
  readonly #thread: number
  readonly #zones = new Map<number, Zone>()
  /** Where zones have moved last, also those that are not known here yet: nobody will say so again. */
  readonly #moves = new Map<number, SharedZone>()
  readonly #follow: () => void
  #shared: SharedMemory | undefined

  /**
   * @param thread which of those that share the memory, from 0
   * @param follow brings zones that have moved where they are now, by `move`
   */
  constructor(thread: number, follow: () => void) {
    this.#thread = thread
    this.#follow = follow
  }

  /** How many zones are known. */
  get zones(): number {
    return this.#zones.size
  }

  /** Takes what the next configuration is to be built in. Zones that it has not move no more, and are let go. */
  use(shared: SharedMemory): void {
    this.#shared = shared
    const ids = new Set<number>()
    for (const { zone, shadow } of shared.groups.values())
      for (const each of [zone, shadow?.zone]) if (each !== undefined) ids.add(each.id)
    for (const [id, zone] of this.#zones) {
      if (ids.has(id)) continue
      // Calls that are under way still write to it, where it is now.
      zone.enter()
      zone.leave()
      this.#zones.delete(id)
      this.#moves.delete(id)
    }
  }

  /** A zone lies elsewhere from now on. */
  move(shared: SharedZone): void {
    this.#zones.get(shared.id)?.move(shared)
    this.#moves.set(shared.id, shared)
  }

  holds({ plan, balancing }: LiveGroup): boolean {
    const { zone, seats } = this.#group(plan)
    const { upstream } = balancing
    // A peer that left and came back between two configurations of this thread is another tenant.
    return zone.id === upstream.zone.id && isDeepStrictEqual(seats, seatsOf(plan, upstream))
  }

  seat(plan: Plan, old: LiveGroup | undefined): Adopted {
    const { zone, peers: all } = this.#sit(plan.wanted, this.#group(plan))
    const { peers = [], backups = [] } = old?.balancing.upstream ?? {}
    const stays = (peer: Peer) =>
      all.some(({ index, tenant }) => index === peer.index && tenant === peer.tenant)
    return {
      zone,
      peers: all.filter(({ options }) => !options.backup),
      backups: all.filter(({ options }) => options.backup),
      removed: [...peers, ...backups].filter((peer) => !stays(peer)),
    }
  }

  shadow(plan: Plan): SeatedShadow {
    const { shadow } = this.#group(plan)
    if (shadow === undefined) throw new Error(`the shadow of upstream "${plan.name}" has no memory`)
    // Their slots are given back by the thread that has read the configuration.
    return { ...this.#sit(primariesOf(plan), shadow), removed: [], tracks: tracksFrom(shadow.tracks) }
  }

  #group(plan: Plan): SharedGroup {
    const group = this.#shared?.groups.get(plan.name.toLowerCase())
    if (group === undefined) throw new Error(`upstream "${plan.name}" has no memory`)
    return group
  }

  #sit(wanted: readonly Wanted[], shared: SharedSeats): { readonly zone: Zone; readonly peers: Peer[] } {
    const zone = this.#zone(shared.zone)
    // Who picks makes room for as many peers as the zone holds: it has to be where they are.
    zone.enter()
    zone.leave()
    const peers = wanted.map(({ server, name, address, options }, i) => {
      const { index, tenant } = shared.seats[i]!
      return new Peer(zone, index, server, name, address, options, tenant)
    })
    return { zone, peers }
  }

  tracks(plan: Plan): ReadonlyMap<string, Track> {
    return tracksFrom(this.#group(plan).tracks)
  }

  sessions(plan: Plan): Sessions | undefined {
    const { sessions } = this.#group(plan)
    return sessions && Sessions.attach(sessions)
  }

  #zone(shared: SharedZone): Zone {
    let zone = this.#zones.get(shared.id)
    if (zone === undefined) {
      zone = Zone.attach(this.#moves.get(shared.id) ?? shared, this.#thread)
      zone.follow = this.#follow
      this.#zones.set(shared.id, zone)
    }
    return zone
  }

  serverZone(kind: ServerZoneKind, name: string, old: ServerZone | undefined): ServerZone {
    const shared = this.#shared?.serverZones[kind].get(name)
    return old ?? new ServerZone(name, 1, this.#thread, shared)
  }
}
