import { type ListSwitchEvent, listSwitchChannel } from './channels.ts'
import type { Upstream } from './upstream.ts'
import type { Zone } from './zone.ts'

/*
 * `backup_switch`: requests stay with the list of peers, primaries or backups, in which somebody was found last. The list
 * stands in the zone, so that all threads go by it and a reload keeps it. What changes it is to be called with the zone
 * held; what tells of it, afterwards.
 */

/** Whether requests go to the backups first. */
export function onBackups(zone: Zone): boolean {
  return zone.get('activeList') === 1
}

/** Somebody was found in a list. @returns whether requests went to the other one first until now */
export function switchTo(zone: Zone, backups: boolean, now: number): boolean {
  if (onBackups(zone) === backups) return false
  zone.set('activeList', backups ? 1 : 0)
  zone.add('switches', 1)
  zone.set('switchedWallAt', Date.now())
  zone.set('backSince', backups ? now : 0)
  return true
}

/**
 * Whether this request is to find out whether the primaries work again: the first one after so long. The time begins anew
 * with it, and until it has an answer from a primary all others stay with the backups.
 * @param after milliseconds; undefined: nobody ever looks
 */
export function mayReturn(zone: Zone, after: number | undefined, now: number): boolean {
  if (after === undefined || now - zone.get('backSince') < after) return false
  zone.set('backSince', now)
  return true
}

/** Requests go by the primaries again: to be called where the configuration has no such directive any more. */
export function forgetSwitch(zone: Zone): void {
  if (!onBackups(zone)) return
  zone.enter()
  zone.set('activeList', 0)
  zone.set('backSince', 0)
  zone.leave()
}

/** A primary has answered a request that was to find that out. Holds the zone itself. */
export function returned(upstream: Upstream, now: number): void {
  const { zone } = upstream
  zone.enter()
  const changed = switchTo(zone, false, now)
  zone.leave()
  if (changed) tellSwitch(upstream, false)
}

/** Tells people. Not to be called with the zone held. */
export function tellSwitch(upstream: Upstream, backups: boolean): void {
  listSwitchChannel.publish({ upstream, to: backups ? 'backups' : 'primaries' } satisfies ListSwitchEvent)
}
