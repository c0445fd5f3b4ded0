import type { LiveGroup } from './build/groups.ts'

/** Groups that the configuration no longer has and that still carry calls. */
export class RemovedGroups {
  readonly #groups = new Set<LiveGroup>()

  /** Those whose calls have all ended are forgotten: nobody else may ever ask for them. */
  letGo(): void {
    for (const group of this.#groups) {
      if (group.balancing.upstream.zone.retired.length === 0) this.#groups.delete(group)
    }
  }

  /** Takes those that are there no longer. */
  add(before: ReadonlyMap<string, LiveGroup> | undefined, now: ReadonlyMap<string, LiveGroup>): void {
    for (const [name, group] of before ?? []) if (!now.has(name)) this.#groups.add(group)
  }

  /** As they are now. */
  get all(): Iterable<LiveGroup> {
    this.letGo()
    return this.#groups
  }
}
