import { mayReturn, onBackups, switchTo } from '../../feedback/backup-switch.ts'
import type { Zone } from '../../feedback/zone.ts'

/** What `backup_switch` says. */
export interface SwitchRules {
  /** So long after a switch the primaries are tried again, milliseconds; undefined: they are not. */
  readonly after: number | undefined
}

/**
 * One request's way through the two lists of a group with `backup_switch`: it begins in the one in which somebody was
 * found last, goes on to the other, and ends there.
 */
export class ListWalk {
  /** Whether this request is to find out whether the primaries work again; others stay with the backups meanwhile. */
  returning = false
  /** Whether a choice of this request has made the other list the first, and nobody has been told. */
  switched = false
  readonly #rules: SwitchRules
  #begun = false
  #moved = false

  constructor(rules: SwitchRules) {
    this.#rules = rules
  }

  /** @returns whether to look among the backups; `backups` where it has begun already */
  from(zone: Zone, backups: boolean, now: number): boolean {
    if (this.#begun) return backups
    this.#begun = true
    if (!onBackups(zone)) return false
    this.returning = mayReturn(zone, this.#rules.after, now)
    return !this.returning
  }

  /** Nobody is ready in the list. @returns whether there is another one to look in */
  move(): boolean {
    if (this.#moved) return false
    this.#moved = true
    return true
  }

  /** Somebody was found in a list. */
  found(zone: Zone, backups: boolean, now: number): void {
    // Whether a primary works shows by its answer.
    if (this.returning && !backups) return
    if (switchTo(zone, backups, now)) this.switched = true
  }

  /** Begins again, for a request that has waited. */
  again(): void {
    this.#begun = false
    this.#moved = false
  }
}
