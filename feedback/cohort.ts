import { groupIndex } from './fields.ts'
import type { Peer } from './peer.ts'
import type { Zone } from './zone.ts'

/** What is kept of peers together; see fields.ts for what each means. */
export const cohortFields = ['answers', 'lastAverage', 'median', 'medianAt', 'reporting'] as const
export type CohortField = (typeof cohortFields)[number]

type Places = { readonly [F in CohortField]: number }

const { answers, lastAverage, median, medianAt, reporting } = groupIndex
const inZone: Places = { answers, lastAverage, median, medianAt, reporting }
const inTrack: Places = { answers: 0, lastAverage: 1, median: 2, medianAt: 3, reporting: 4 }

/**
 * Peers that a method compares with one another, and what is usual among them: all of a group or, where its requests
 * are split, those of one track. A track that is slow as a whole must not look to its own peers as if each of them were,
 * and one that has few requests must not be forgotten at the pace of those that others have.
 */
export class Cohort {
  /** Primaries and backups in configuration order. */
  readonly peers: readonly Peer[]
  readonly backups: readonly Peer[]
  readonly #zone: Zone
  readonly #own: Float64Array | undefined
  readonly #places: Places

  /** @param own where its numbers lie; undefined: they are the group's own, in its zone */
  constructor(zone: Zone, peers: readonly Peer[], backups: readonly Peer[], own?: Float64Array) {
    this.peers = peers
    this.backups = backups
    this.#zone = zone
    this.#own = own
    this.#places = own === undefined ? inZone : inTrack
  }

  get(field: CohortField): number {
    return (this.#own ?? this.#zone.group)[this.#places[field]]!
  }

  /** To be called with the zone held. */
  set(field: CohortField, value: number): void {
    const numbers = this.#own ?? this.#zone.group
    numbers[this.#places[field]] = value
  }
}
