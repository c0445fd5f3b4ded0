import { forgetSwitch } from '../../feedback/backup-switch.ts'
import { type Adopted, adopt, type Wanted } from '../../feedback/carry.ts'
import { monotonic } from '../../feedback/clock.ts'
import { ServerZone } from '../../feedback/server-zone.ts'
import { Sessions } from '../../feedback/sessions/sessions.ts'
import { forgetPicks } from '../../feedback/shadow.ts'
import { Track, tracksOf } from '../../feedback/track.ts'
import type { Upstream } from '../../feedback/upstream.ts'
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

/** Memory of groups that come and go in great number: without room for peers that they do not have. */
export function scantMemory(): Memory {
  return {
    ...ownMemory(0),
    seat: ({ wanted, name }, old) =>
      adopt(old?.balancing.upstream, wanted, name, monotonic(), 0, wanted.length),
  }
}

/** Where the twins of a group's primaries are. */
export interface SeatedShadow extends Omit<Adopted, 'backups'> {
  /** For what is usual in each; no sample is kept in them. */
  readonly tracks: ReadonlyMap<string, Track>
}

/** What is wanted of them, without the backups. */
export function primariesOf({ wanted }: Plan): Wanted[] {
  return wanted.filter(({ options }) => !options.backup)
}
