import { isLocal, peerId } from '../feedback/fleet/peer-id.ts'
import type { Upstream } from '../feedback/upstream.ts'
import { Dissent } from './dissent.ts'
import type { LiveProbe } from './live-probe.ts'
import type { Entry } from './patient.ts'
import { type ProbeRecord, recordField } from './record.ts'
import type { Schedule } from './schedule.ts'

/** A probe of a peer that is asked once for all instances. */
export interface Slot {
  /** Of its record. */
  readonly field: string
  /** More than one where the group lists the same address twice; the first is asked. */
  entries: Entry[]
  /** Key of the schedule that it is asked by. */
  schedule: string
  /** The record that was heard last. */
  known: ProbeRecord | undefined
  /** Whether that was over the connection that is there now. */
  heardOn: boolean
  /** Whether its turn is being claimed. */
  claiming: boolean
  /** The job that was judged here alone, since its result could not be told; should it have been told, it is old. */
  judged: string
  /** Whether it comes up to ask what another's failure is worth. */
  second: boolean
  /** What this instance's own failures are worth. */
  readonly dissent: Dissent
}

/** What one schedule asks. */
export interface Chunk {
  readonly probe: LiveProbe
  readonly slots: Slot[]
}

/** Peers that one job asks, about. */
const chunkSize = 50

/** What instances ask together, by the ways to it. */
export class Slots {
  readonly schedules: readonly Schedule[]
  readonly #byField = new Map<Upstream, Map<string, Slot>>()
  readonly #byEntry = new Map<Entry, Slot>()
  readonly #chunks = new Map<string, Chunk>()

  /** @param before in the place of which these come: what was heard goes on */
  constructor(entries: readonly Entry[], before: Slots | undefined) {
    const known = new Map([...(before?.all() ?? [])].map((slot) => [slot.entries[0]!.key, slot]))
    const schedules = new Map<string, Schedule>()
    for (const [probe, all] of Map.groupBy(entries, (entry) => entry.probe)) {
      for (const [local, some] of Map.groupBy(all, ({ patient }) => isLocal(patient.peer.address))) {
        // A power of two changes seldom as peers come and go.
        const chunks = 2 ** Math.max(0, Math.ceil(Math.log2(some.length / chunkSize)))
        for (const entry of some) {
          const peer = peerId(entry.patient.peer)
          const id = scheduleId(probe, hash(peer) % chunks, chunks)
          const key = local ? `local ${id}` : id
          schedules.set(key, { key, id, every: Math.max(1, Math.round(probe.interval)), local })
          this.#add(entry, recordField(probe, peer), key, known.get(entry.key))
        }
      }
    }
    this.schedules = [...schedules.values()]
  }

  #add(entry: Entry, field: string, schedule: string, before: Slot | undefined): void {
    const { probe, patient } = entry
    const fields = this.#byField.get(patient.upstream) ?? new Map<string, Slot>()
    this.#byField.set(patient.upstream, fields)
    let slot = fields.get(field)
    if (slot === undefined) {
      // What was heard of another question of that name says nothing of this one. The very same entry goes on, with a
      // claim or a question that is under way.
      const same = before?.field === field ? before : undefined
      slot = same?.entries[0] === entry ? same : fresh(field, same)
      slot.entries = []
      slot.schedule = schedule
      fields.set(field, slot)
      const chunk = this.#chunks.get(schedule) ?? { probe, slots: [] }
      chunk.slots.push(slot)
      this.#chunks.set(schedule, chunk)
    }
    slot.entries.push(entry)
    this.#byEntry.set(entry, slot)
  }

  all(): Iterable<Slot> {
    return new Set(this.#byEntry.values())
  }

  upstreams(): Iterable<Upstream> {
    return this.#byField.keys()
  }

  of(entry: Entry): Slot | undefined {
    return this.#byEntry.get(entry)
  }

  at(upstream: Upstream, field: string): Slot | undefined {
    return this.#byField.get(upstream)?.get(field)
  }

  chunk(schedule: string): Chunk | undefined {
    return this.#chunks.get(schedule)
  }
}

/** @param before the one whose place it takes: what was heard goes on, and what it was about to do does not */
function fresh(field: string, before: Slot | undefined): Slot {
  const { known, heardOn = false, judged = '', dissent = new Dissent() } = before ?? {}
  return {
    field,
    entries: [],
    schedule: '',
    known,
    heardOn,
    claiming: false,
    judged,
    second: false,
    dissent,
  }
}

/** The same for all instances and over restarts. Group names have no case; nothing in it means anything to BullMQ. */
function scheduleId({ upstream, name, definition }: LiveProbe, chunk: number, chunks: number): string {
  return [upstream.name.toLowerCase(), name, definition, `${chunk}-${chunks}`]
    .map(encodeURIComponent)
    .join('/')
}

/** FNV-1a, 32 bits, with its bits mixed once more since the lowest ones are all that counts. */
export function hash(text: string): number {
  let sum = 0x811c9dc5
  for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 0x01000193)
  sum = Math.imul(sum ^ (sum >>> 16), 0x7feb352d)
  return (sum ^ (sum >>> 15)) >>> 0
}
