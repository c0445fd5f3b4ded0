import type { Call } from './call.ts'
import { readNumber } from './numbers.ts'
import { loadReport } from './orca.ts'
import type { Attempt } from './outcome.ts'
import type { Peer } from './peer.ts'
import { type SignalReason, signalReasons } from './reasons.ts'
import type { ReportedValue, Upstream } from './upstream.ts'
import type { Zone } from './zone.ts'

/*
 * What `feedback` keeps of the values that peers report of themselves: a moving average, when the last one came, and
 * whether it counts. All that changes the zone is to be called with the zone held.
 */

/** A number needs no more characters. */
const maxLength = 64
/**
 * Values and their averages are kept within these bounds, or are 0, so that whatever is made of them stays finite. An
 * average that nothing but zeros are added to would come so close to 0 that its inverse is no number any more.
 */
const greatest = 1e100
const smallest = 1e-100
/**
 * For so long a peer whose value had expired must have reported anew before it counts, milliseconds: it may be an
 * instance that has only just started (the blackout period of gRPC's A58).
 */
const blackoutMs = 10_000

const reasonIndex = new Map(signalReasons.map((reason, index) => [reason, index]))

/** Reads a value as a variable gives it. @returns 0 or more and finite, or why it is not taken */
export function readValue(text: string): number | SignalReason {
  const bare = text.trim()
  if (bare === '') return 'absent'
  if (bare.length > maxLength) return 'too_long'
  // Several fields of one name: which of them is meant?
  if (bare.includes(',')) return 'duplicate'
  const value = readNumber(bare)
  if (typeof value === 'string') return value
  if (value < 0) return 'negative'
  return value < smallest ? 0 : Math.min(value, greatest)
}

/**
 * What a peer reports with an answer.
 * @param call whose last attempt it is
 */
export function reported(value: ReportedValue, attempt: Attempt, call: Call): number | SignalReason {
  const text = value.read(call)
  if (text === '' && value.orca) {
    // The report was not taken as a whole: then that is the reason.
    const report = loadReport(attempt)
    if (typeof report === 'string') return report
  }
  return readValue(text)
}

/** Counts a value that is not taken. */
export function ignore(zone: Zone, index: number, reason: SignalReason): void {
  const at = reasonIndex.get(reason)!
  zone.ignored[at]![index]! += 1
  zone.peers.ignoredLast[index] = at + 1
}

/** Whether what the peer has reported counts now. @param expire milliseconds; 0: for ever */
export function counts(zone: Zone, index: number, expire: number, now: number): boolean {
  const { reportAt, reportSince } = zone.peers
  const at = reportAt[index]!
  return at > 0 && (expire === 0 || now - at < expire) && now >= reportSince[index]!
}

/**
 * Takes a value in. The very first one of a peer counts at once, one after a gap of `expire` only after `blackoutMs`.
 * @param keep how much of the average stays, 0 to 1
 */
export function keepReport(
  upstream: Upstream,
  peer: Peer,
  value: number,
  keep: number,
  expire: number,
  now: number,
): void {
  const { report, reportAt, reportSince, reportMark } = upstream.zone.peers
  const { index } = peer
  const cohort = upstream.cohort(peer)
  const at = reportAt[index]!
  const first = at === 0
  const late = !first && expire > 0 && now - at >= expire
  if (first || late) {
    report[index] = value
    reportSince[index] = first ? now : now + blackoutMs
    // The mean and the median of all move: to be taken anew at the next choice.
    if (first) cohort.medianAt = 0
  } else {
    const average = report[index]! * keep + value * (1 - keep)
    report[index] = average < smallest ? 0 : average
  }
  reportAt[index] = now
  reportMark[index] = cohort.answers
}

/** What there is to tell of a peer's reports. */
export interface Reporting {
  /** Moving average; undefined before the first value. */
  readonly value: number | undefined
  /** Milliseconds since the last value was taken; undefined before the first. */
  readonly age: number | undefined
  /** Whether the value counts: it is not too old, nor too young after a gap. */
  readonly counts: boolean
  /** Why the last value that was not taken was not; undefined when all were. */
  readonly ignored: SignalReason | undefined
}

/** @returns undefined where the group's method asks for no reports */
export function reporting(peer: Peer, upstream: Upstream, now: number): Reporting | undefined {
  const { zone, index } = peer
  const asked = upstream.learning?.value
  if (asked === undefined) return undefined
  const { report, reportAt, ignoredLast } = zone.peers
  const ever = reportAt[index]! > 0
  return {
    value: ever ? report[index]! : undefined,
    age: ever ? now - reportAt[index]! : undefined,
    counts: counts(zone, index, asked.expire, now),
    ignored: signalReasons[ignoredLast[index]! - 1],
  }
}
