import { isDeepStrictEqual } from 'node:util'
import type { Adopted, Wanted } from '../../feedback/carry.ts'
import { Peer } from '../../feedback/peer.ts'
import { ServerZone } from '../../feedback/server-zone.ts'
import { Sessions } from '../../feedback/sessions/sessions.ts'
import type { Track } from '../../feedback/track.ts'
import { type SharedZone, Zone } from '../../feedback/zone.ts'
import type { LiveGroup } from './groups.ts'
import { type Memory, primariesOf, type SeatedShadow, type ServerZoneKind } from './memory.ts'
import type { Plan } from './plans.ts'
import {
  type SharedGroup,
  type SharedMemory,
  type SharedSeats,
  seatsOf,
  tracksFrom,
} from './shared-memory.ts'

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
