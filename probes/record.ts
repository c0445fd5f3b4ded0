import type { Orders } from './probe.ts'

/**
 * What a group's shared state says of one probe of one peer. All instances judge by it, whoever asked. Times are
 * milliseconds of the server's clock.
 */
export interface ProbeRecord {
  /** Results ever, and failures among them. */
  readonly seq: number
  readonly fails: number
  /** Passes in a row; below 0: failures in a row. */
  readonly streak: number
  /** What the streak before that had come to; 0: there was none, or it is too long ago. */
  readonly before: number
  /** When the last result came. */
  readonly at: number
  /** How long it took, milliseconds. */
  readonly tookMs: number
  /** Id of the instance that asked. */
  readonly by: string
  /** On what occasion. */
  readonly job: string
  /** What was seen, for people; a peer may have written it. */
  readonly detail: string
  /** All that an agent has asked for lately. */
  readonly orders: Orders | undefined
}

/**
 * Names the record of a probe of a peer in the group's state. What is asked is part of it: the answer to another
 * question says nothing.
 * @param peer its name in the fleet
 */
export function recordField(
  { name, definition }: { readonly name: string; readonly definition: string },
  peer: string,
): string {
  return `r${name}\0${definition}\0${peer}`
}

/**
 * Reads a record as the scripts in turns.ts write it.
 * @returns undefined for anything else, and where there has been no result yet
 */
export function readRecord(text: string): ProbeRecord | undefined {
  const [head = '', , detail, orders] = text.split('\n', 4)
  const [seq, fails, streak, before, at, tookMs, by = '-', job] = head.split(' ')
  const numbers = [seq, fails, streak, before, at, tookMs].map(Number)
  // More than any count or moment is what another program has written.
  const right = numbers.every((number) => Math.abs(number) < 2 ** 52) && numbers[0]! > 0
  if (job === undefined || detail === undefined || !right) return undefined
  return {
    seq: numbers[0]!,
    fails: numbers[1]!,
    streak: numbers[2]!,
    before: numbers[3]!,
    at: numbers[4]!,
    tookMs: numbers[5]!,
    by,
    job,
    detail: String(parsed(detail) ?? ''),
    orders: readOrders(parsed(orders ?? '')),
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Takes of what another program has written only what an agent can ask for. */
function readOrders(value: unknown): Orders | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { weightFactor, weight, maxConns, administrative, operational } = value as Record<string, unknown>
  const number = (one: unknown) => (typeof one === 'number' && one >= 0 ? one : undefined)
  const orders: Orders = {
    weightFactor: number(weightFactor),
    weight: number(weight),
    maxConns: number(maxConns),
    administrative: (['ready', 'drain', 'maint'] as const).find((word) => word === administrative),
    operational: (['up', 'down'] as const).find((word) => word === operational),
  }
  return Object.values(orders).some((one) => one !== undefined) ? orders : undefined
}

/** Results that are older than this say nothing any more, milliseconds: a peer whose probes lie idle is unknown. */
export function trustedFor(interval: number): number {
  return Math.max(3 * interval, 10_000)
}

/** What of a record is news to an instance. */
export interface News {
  /** Results that were not counted before, 1 or more, and failures among them. */
  readonly results: number
  readonly failures: number
  /** Streaks to judge by, in order: two where the first was begun and ended unheard. */
  readonly streaks: readonly number[]
}

/**
 * What is new in a record.
 * @param known the one that was heard before; undefined: none yet
 * @param heardOn whether `known` was heard over the same connection: then nothing older can be news
 * @returns undefined where it has been counted before
 */
export function newsOf(
  record: ProbeRecord,
  known: ProbeRecord | undefined,
  heardOn: boolean,
): News | undefined {
  const { seq, fails, streak, before } = record
  if (known && seq === known.seq && record.at === known.at) return undefined
  if (known && heardOn && seq <= known.seq && record.at <= known.at) return undefined
  // A record that was lost begins anew.
  const goesOn = known !== undefined && seq > known.seq && fails >= known.fails
  const begunAt = seq - Math.abs(streak)
  const streaks = before !== 0 && (!goesOn || begunAt > known.seq) ? [before, streak] : [streak]
  const results = goesOn ? seq - known.seq : 1
  return { results, failures: goesOn ? Math.min(results, fails - known.fails) : streak < 0 ? 1 : 0, streaks }
}
