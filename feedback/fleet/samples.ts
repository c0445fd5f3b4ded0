import { randomBytes } from 'node:crypto'
import { drawn } from '../pooled.ts'
import { type Minute, reservoirMinutes, reservoirSize } from '../reservoir.ts'
import { sampled } from '../sampled.ts'
import type { Upstream } from '../upstream.ts'
import type { FleetSamples } from './facts.ts'
import type { GroupKeys } from './keys.ts'
import { hearSamples, tellSamples } from './sample-scripts.ts'
import { instanceOf, packMinute, readMinute, sampleField } from './sample-wire.ts'
import type { Script } from './script.ts'

/** A group whose samples are shared. */
export interface SampledGroup {
  readonly upstream: Upstream
  readonly keys: GroupKeys
  /** Instances that share it, as far as is known. */
  members(): number
}

/** What was told of a minute. */
interface Told {
  /** Attempts by track. */
  readonly attempts: Map<string, number>
  /** Whether the minute was over: then nothing comes any more. */
  over: boolean
}

export interface SamplesEnv {
  /** Monotonic, and wall clock, milliseconds. */
  now(): number
  wall(): number
  /** 0 to 1. */
  random(): number
  /** As a fleet's. */
  after(ms: number, run: () => void): () => void
  /** As a link's. */
  run(script: Script, keys: readonly string[], args: readonly (string | number | Buffer)[]): Promise<unknown>
}

/** How often what is new is told, milliseconds, and by how much of it sooner or later. */
const tellEvery = 3000
const jitter = 0.1
/** So many minutes of a group are told at a time at most: after a loss there may be an hour of them. */
const minutesAtOnce = 4
/** Times of a minute and track that all instances together tell, and that each one may whatever their number. */
const timesOfAll = 2000
const timesOfOne = 100
/** How long an answer may take in all, milliseconds, and how many fields of a minute are read. */
const patience = 2000
const fieldsOfMinute = 4096

const minuteMs = 60_000
/** Another program on this machine may have the same name. */
const program = randomBytes(4).toString('hex')

/**
 * Tells the other instances how attempts ended here, for the comparison of tracks, and asks for what they have told. All
 * go by their own wall clocks: a few seconds between them do not matter, since both tracks are off by the same. An
 * instance that is minutes off tells of other minutes than it should.
 */
export class Samples {
  readonly #env: SamplesEnv
  readonly #id: string
  /** By lower-case name. */
  #groups = new Map<string, SampledGroup>()
  /** What was told of each minute, by group. */
  readonly #told = new Map<string, Map<number, Told>>()
  #cancel: (() => void) | undefined
  #telling: Promise<void> | undefined

  /** @param name of this instance; the same again after a reload, so that nothing is there twice */
  constructor(name: string, env: SamplesEnv) {
    this.#env = env
    this.#id = `${name}~${program}`
  }

  /** Shares the samples of these groups from now on, and of no others. */
  use(groups: Iterable<SampledGroup>): void {
    this.#groups = new Map(Array.from(groups, (group) => [group.upstream.name.toLowerCase(), group]))
    for (const name of this.#told.keys()) if (!this.#groups.has(name)) this.#told.delete(name)
  }

  start(): void {
    const { after, random } = this.#env
    this.#cancel?.()
    this.#cancel = after(tellEvery * (1 - jitter + 2 * jitter * random()), () => {
      this.start()
      void this.tell()
    })
  }

  /** Redis was lost, and what was told may be lost with it: it is told anew. */
  forget(): void {
    this.#told.clear()
  }

  /** Tells what is new. Never rejects. */
  tell(): Promise<void> {
    this.#telling ??= this.#tellAll().finally(() => {
      this.#telling = undefined
    })
    return this.#telling
  }

  /** Tells what is new, and no more after that. Never rejects. */
  async stop(): Promise<void> {
    this.#cancel?.()
    await this.#telling
    await this.tell()
    this.#groups.clear()
  }

  async #tellAll(): Promise<void> {
    try {
      for (const [name, group] of this.#groups) await this.#tellGroup(name, group)
    } catch {
      // The next time will do; whoever asks for samples is told that there is no Redis.
    }
  }

  async #tellGroup(name: string, { upstream, keys, members }: SampledGroup): Promise<void> {
    const most = Math.min(reservoirSize, Math.max(timesOfOne, Math.ceil(timesOfAll / Math.max(1, members()))))
    const told = this.#toldOf(name)
    const { minutes, now } = this.#news(told, upstream)
    for (const [minute, news] of minutes) {
      const args: (string | number | Buffer)[] = [this.#keep(minute)]
      for (const [track, found] of news) {
        const times = drawn(found.times, most, this.#env.random)
        args.push(sampleField(track, this.#id), packMinute({ ...found, times }))
      }
      await this.#env.run(tellSamples, [keys.samples + minute], args)
      const { attempts } = told.get(minute) ?? { attempts: new Map<string, number>() }
      for (const [track, found] of news) attempts.set(track, found.attempts)
      told.set(minute, { attempts, over: minute < now })
    }
  }

  /** Some minutes, the latest first, of which something has not been told, with what is known of them by track. */
  #news(
    told: Map<number, Told>,
    upstream: Upstream,
  ): { readonly minutes: [minute: number, ReadonlyMap<string, Minute>][]; readonly now: number } {
    const now = Math.floor(this.#env.wall() / minuteMs)
    const from = now - reservoirMinutes + 1
    for (const minute of told.keys()) if (minute < from) told.delete(minute)
    const minutes: [number, Map<string, Minute>][] = []
    for (let minute = now; minute >= from && minutes.length < minutesAtOnce; minute--) {
      const known = told.get(minute)
      if (known?.over) continue
      const news = new Map<string, Minute>()
      for (const track of upstream.tracks.keys()) {
        const [found] = sampled(upstream, track, minute, minute)
        if (found !== undefined && found.attempts !== known?.attempts.get(track)) news.set(track, found)
      }
      if (news.size > 0) minutes.push([minute, news])
      else if (minute < now) told.set(minute, { attempts: new Map(), over: true })
    }
    return { minutes, now }
  }

  #toldOf(name: string): Map<number, Told> {
    let told = this.#told.get(name)
    if (told === undefined) {
      told = new Map()
      this.#told.set(name, told)
    }
    return told
  }

  /** For how long a minute is of use to anybody, and a little longer, milliseconds. */
  #keep(minute: number): number {
    const end = (minute + reservoirMinutes + 2) * minuteMs
    return Math.max(minuteMs, Math.round(end - this.#env.wall()))
  }

  /**
   * What the others have told. Never rejects.
   * @returns undefined where the group is not shared
   */
  async hear(
    upstream: Upstream,
    tracks: readonly string[],
    from: number,
    to: number,
  ): Promise<FleetSamples | undefined> {
    const group = this.#groups.get(upstream.name.toLowerCase())
    if (group === undefined) return undefined
    const parts = new Map(tracks.map((track): [string, Minute[]] => [track, []]))
    const ids = new Set<string>()
    const end = this.#env.now() + patience
    let lack: string | undefined
    // From the latest on: where not all can be read it is the oldest that is missing, of both tracks.
    for (let minute = to; minute >= from && lack === undefined; minute--) {
      if (this.#env.now() > end) lack = `not all was read within ${patience / 1000} s`
      else lack = await this.#hearMinute(group.keys, minute, parts, ids)
    }
    return { parts, instances: ids.size, lack }
  }

  /** @returns what went wrong */
  async #hearMinute(
    keys: GroupKeys,
    minute: number,
    parts: ReadonlyMap<string, Minute[]>,
    ids: Set<string>,
  ): Promise<string | undefined> {
    const fields = new Map<string, Buffer>()
    const begins = Array.from(parts.keys(), (track) => sampleField(track, ''))
    try {
      let cursor = '0'
      do {
        const answer = await this.#env.run(
          hearSamples,
          [keys.samples + minute],
          [cursor, this.#id, ...begins],
        )
        if (!Array.isArray(answer)) throw new TypeError('not an answer with samples')
        cursor = String(answer[0])
        for (let i = 1; i + 1 < answer.length; i += 2) fields.set(String(answer[i]), answer[i + 1])
      } while (cursor !== '0' && fields.size < fieldsOfMinute)
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
    for (const [field, bytes] of fields) {
      const read = readMinute(minute, bytes)
      if (read === undefined) continue
      ids.add(instanceOf(field))
      for (const [track, list] of parts) if (field.startsWith(sampleField(track, ''))) list.push(read)
    }
    return undefined
  }
}
