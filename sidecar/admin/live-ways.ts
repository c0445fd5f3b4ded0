import { onBackups } from '../../feedback/backup-switch.ts'
import type { UpstreamFacts } from './facts.ts'
import { type NameFacts, nameText } from './resolver-facts.ts'
import { leftUntilReturn } from './status-groups.ts'

/*
 * What the live page is told of what a group has beside its method: the queue, sessions that stay with their peers, the
 * list that comes first, and names that are followed. Each is there only where the group has it. Times in milliseconds,
 * moments by the wall clock.
 */

/** What rarely changes of it. */
export interface WaysLayout {
  /** Most requests that wait in each thread, and for how long. */
  readonly queue: { readonly number: number; readonly timeout: number } | undefined
  readonly sticky: StickyLayout | undefined
  readonly backupSwitch: { readonly after: number | undefined } | undefined
  /** As DNS has them. */
  readonly names: readonly string[] | undefined
}

export interface StickyLayout {
  readonly mode: 'cookie' | 'route' | 'learn'
  readonly strict: boolean
  /** The table of learnt sessions. */
  readonly zone: string | undefined
  readonly capacity: number | undefined
  readonly timeout: number | undefined
}

export function waysLayout({ upstream, queue, sticky, backupSwitch, followed }: UpstreamFacts): WaysLayout {
  const { table, rules } = upstream.sessions ?? {}
  return {
    queue: queue && { number: queue.number, timeout: queue.timeout },
    sticky: sticky && {
      mode: sticky.mode,
      strict: sticky.strict,
      zone: table?.name,
      capacity: table?.slots,
      timeout: rules?.timeout,
    },
    backupSwitch: backupSwitch && { after: backupSwitch.after },
    names: followed.length > 0 ? followed.map(nameText) : undefined,
  }
}

/** The numbers of it, as lists without names. */
export interface WaysState {
  /** Waiting now; and since the start: came, left by their clients, waited too long, found it full, and time waited. */
  readonly queue: readonly number[] | undefined
  /** Picks that found it new, bound, and bound to a peer that could not; sessions known, and dropped for want of room. */
  readonly sticky: readonly (number | null)[] | undefined
  /** 1 where the backups come first; until the primaries are tried again; switches, and when the last one was. */
  readonly list: readonly (number | null)[] | undefined
  /** Of each name: how many addresses, their age, and why it is not found. */
  readonly names: readonly (readonly [number, number | null, string | null])[] | undefined
}

/** @param known names that are followed, by their text; those that others look up are not */
export function waysState(
  { upstream, queue, sticky, backupSwitch, followed }: UpstreamFacts,
  known: ReadonlyMap<string, NameFacts>,
  now: number,
): WaysState {
  const { zone, sessions } = upstream
  const since = zone.get('switchedWallAt')
  const { after } = backupSwitch ?? {}
  const returns =
    onBackups(zone) && after !== undefined
      ? Math.round(leftUntilReturn(zone.get('backSince'), after, now))
      : null
  return {
    queue: queue && [
      zone.get('queueWaiting'),
      zone.get('queued'),
      zone.get('queueDropped'),
      zone.get('queueTimedout'),
      zone.get('queueOverflows'),
      Math.round(zone.get('queueMs')),
    ],
    sticky: sticky && [
      zone.get('stickyNew'),
      zone.get('stickyHit'),
      zone.get('stickyMiss'),
      sessions?.table.size ?? null,
      sessions?.table.evicted ?? null,
    ],
    list: backupSwitch && [Number(onBackups(zone)), returns, zone.get('switches'), since || null],
    names: followed.length > 0 ? followed.map((name) => nameState(known.get(nameText(name)))) : undefined,
  }
}

/** What a peer of an unfriendly network may have written in it is no longer than this. */
const longestError = 200

function nameState(about: NameFacts | undefined): readonly [number, number | null, string | null] {
  if (about === undefined) return [0, null, null]
  const { addresses, ageMs, error } = about
  return [
    addresses.length,
    ageMs === undefined ? null : Math.round(ageMs),
    error?.slice(0, longestError) ?? null,
  ]
}
