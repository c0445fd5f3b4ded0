import { groupIndex } from './fields.ts'
import type { Peer } from './peer.ts'
import type { Zone } from './zone.ts'

/** What is kept of peers together, in this order, among the fields of a group too; see fields.ts for what each means. */
export const cohortFields = ['answers', 'lastAverage', 'median', 'medianAt', 'reporting'] as const

const first = groupIndex[cohortFields[0]]
for (const [place, field] of cohortFields.entries())
  if (groupIndex[field] !== first + place)
    throw new Error(`"${field}" is not where it has to be among a group's numbers`)

/**
 * Peers that a method compares with one another, and what is usual among them: all of a group or, where its requests
 * are split, those of one track. A track that is slow as a whole must not look to its own peers as if each of them were,
 * and one that has few requests must not be forgotten at the pace of those that others have.
 *
 * Its numbers are to be changed with the zone held.
 */
export class Cohort {
  /** Primaries and backups in configuration order. */
  readonly peers: readonly Peer[]
  readonly backups: readonly Peer[]
  readonly #zone: Zone
  readonly #own: Float64Array | undefined
  /** Where its numbers begin. */
  readonly #first: number

  /** @param own where its numbers lie; undefined: they are the group's own, in its zone */
  constructor(zone: Zone, peers: readonly Peer[], backups: readonly Peer[], own?: Float64Array) {
    this.peers = peers
    this.backups = backups
    this.#zone = zone
    this.#own = own
    this.#first = own === undefined ? first : 0
  }

  /** A zone that grows has its numbers elsewhere afterwards. */
  get #numbers(): Float64Array {
    return this.#own ?? this.#zone.group
  }

  get answers(): number {
    return this.#numbers[this.#first]!
  }
  set answers(count: number) {
    this.#numbers[this.#first] = count
  }

  get lastAverage(): number {
    return this.#numbers[this.#first + 1]!
  }
  set lastAverage(average: number) {
    this.#numbers[this.#first + 1] = average
  }

  get median(): number {
    return this.#numbers[this.#first + 2]!
  }
  set median(middle: number) {
    this.#numbers[this.#first + 2] = middle
  }

  get medianAt(): number {
    return this.#numbers[this.#first + 3]!
  }
  set medianAt(now: number) {
    this.#numbers[this.#first + 3] = now
  }

  get reporting(): number {
    return this.#numbers[this.#first + 4]!
  }
  set reporting(count: number) {
    this.#numbers[this.#first + 4] = count
  }
}
