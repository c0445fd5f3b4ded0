import { cohortFields } from './cohort.ts'
import { type Exemplar, exemplarSize, readExemplar, writeExemplar } from './exemplar.ts'
import { latencyBucketsMs } from './fields.ts'
import { bucketOf } from './histogram.ts'
import { Reservoir } from './reservoir.ts'

/** The track of peers whose line names none. */
export const stableTrack = 'stable'

/** Statuses 100 to 599 have a counter each; every other one shares the last. */
const codes = 501
const buckets = latencyBucketsMs.length + 1
const counters = ['split', 'fallbacks', 'requestMs', 'rescued', 'hidden', 'judged', 'bad'] as const
type Counter = (typeof counters)[number]
const counterIndex = Object.fromEntries(counters.map((name, i) => [name, i])) as {
  // The list and the type's keys are the same list.
  readonly [C in Counter]: number
}

/** What another thread needs to count in the same track; can be posted to it. */
export interface SharedTrack {
  readonly name: string
  readonly buffer: SharedArrayBuffer
  /** Undefined where the group has one track only: there is nothing to compare. */
  readonly reservoir: SharedArrayBuffer | undefined
}

/**
 * What is known of one track of a group: how its requests ended for their clients, and where there are several tracks a
 * sample of how attempts ended. It outlives reloads as long as the group has the track. Whoever writes holds the lock of
 * the group's zone.
 */
export class Track {
  readonly name: string
  readonly buffer: SharedArrayBuffer
  /** What is usual among its peers, where they are compared with each other alone; see cohort.ts. */
  readonly cohort: Float64Array
  #reservoir: Reservoir | undefined
  readonly #counters: Float64Array
  readonly #responses: Float64Array
  readonly #durations: Float64Array
  readonly #exemplars: Float64Array

  constructor(name: string, shared?: SharedTrack) {
    this.name = name
    const sizes = [counters.length, codes, buckets, exemplarSize * buckets, cohortFields.length]
    this.buffer = shared?.buffer ?? new SharedArrayBuffer(8 * sizes.reduce((sum, size) => sum + size, 0))
    let offset = 0
    const take = (length: number) => {
      const view = new Float64Array(this.buffer, offset, length)
      offset += 8 * length
      return view
    }
    this.#counters = take(counters.length)
    this.#responses = take(codes)
    this.#durations = take(buckets)
    this.#exemplars = take(exemplarSize * buckets)
    this.cohort = take(cohortFields.length)
    if (shared?.reservoir) this.#reservoir = new Reservoir(shared.reservoir)
  }

  /** For another thread. */
  share(): SharedTrack {
    return { name: this.name, buffer: this.buffer, reservoir: this.#reservoir?.buffer }
  }

  /** Undefined while the group has, and had, no other track. */
  get reservoir(): Reservoir | undefined {
    return this.#reservoir
  }

  /** From now on samples are kept. */
  sample(): void {
    this.#reservoir ??= new Reservoir()
  }

  /**
   * A number of its own: requests that the split sent here, those of them that went elsewhere since nobody was ready,
   * time of all, those that ended well after failed attempts, and those attempts; attempts that said something of the
   * track, and the bad ones among them.
   */
  get(counter: Counter): number {
    return this.#counters[counterIndex[counter]]!
  }

  add(counter: Counter, amount: number): void {
    this.#counters[counterIndex[counter]]! += amount
  }

  /**
   * Counts a request as its client saw it end.
   * @param status 499 where the client left before the end
   * @param ms undefined for a tunnel, whose length says nothing
   * @param exemplar undefined where it was not traced
   * @param bounds of the buckets, always the same of one track; see `wholeBounds`
   */
  answered(
    status: number,
    ms: number | undefined,
    exemplar: Exemplar | undefined,
    bounds: readonly number[] = latencyBucketsMs,
  ): void {
    const known = status >= 100 && status <= 599
    this.#responses[known ? status - 100 : codes - 1]! += 1
    if (ms === undefined) return
    const bucket = bucketOf(ms, bounds)
    this.#durations[bucket]! += 1
    this.add('requestMs', ms)
    if (exemplar) writeExemplar(this.#exemplars, exemplarSize * bucket, exemplar)
  }

  /** Requests by the status their clients got, in order; 0 stands for what is no status. Those that never were are left out. */
  get responses(): ReadonlyMap<number, number> {
    const found = new Map<number, number>()
    for (let at = 0; at < codes; at++) {
      const count = this.#responses[at]!
      if (count > 0) found.set(at < codes - 1 ? at + 100 : 0, count)
    }
    return found
  }

  /** How many requests took a time of a bucket, by its place; the last is for longer ones. */
  duration(bucket: number): number {
    return this.#durations[bucket]!
  }

  exemplar(bucket: number): Exemplar | undefined {
    return readExemplar(this.#exemplars, exemplarSize * bucket)
  }
}

/**
 * The tracks of a group.
 * @param names of its peers' tracks, repeated ones too
 * @param before those that it had
 */
export function tracksOf(
  names: Iterable<string>,
  before: ReadonlyMap<string, Track> = new Map(),
): ReadonlyMap<string, Track> {
  const tracks = new Map<string, Track>()
  for (const name of names) if (!tracks.has(name)) tracks.set(name, before.get(name) ?? new Track(name))
  if (tracks.size > 1) for (const track of tracks.values()) track.sample()
  return tracks
}
