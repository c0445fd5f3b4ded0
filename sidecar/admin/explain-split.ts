import { stableTrack } from '../../feedback/track.ts'
import type { UpstreamFacts } from './facts.ts'
import { leftToBackups } from './series.ts'
import { rounded } from './tree.ts'

/** How a group's requests are split, and what comes of that now. */
export interface SplitExplanation {
  /** Whose value may name a track; undefined where none does. */
  readonly variable: string | undefined
  /** What the percentages are taken of; undefined where each request is drawn by itself. */
  readonly key: string | undefined
  readonly tracks: readonly TrackExplanation[]
  /** Part of the requests, 0 to 1, that is left to the backups now, since no primary may have it. */
  readonly left: number
}

export interface TrackExplanation {
  readonly track: string
  /** Of the requests that the variable sends nowhere, as configured. */
  readonly percent: number
  /** What its peers get of them now, 0 to 1. */
  readonly share: number
  /** Requests that were sent to it, and those among them that went elsewhere; since the start. */
  readonly requests: number
  readonly fallbacks: number
}

/**
 * @param primary the primaries' shares now
 * @returns undefined where requests are not split
 */
export function explainSplit(
  { split, upstream }: UpstreamFacts,
  primary: readonly number[],
): SplitExplanation | undefined {
  if (split === undefined) return undefined
  const shares = new Map<string, number>()
  for (const [i, { options }] of upstream.peers.entries())
    shares.set(options.track, (shares.get(options.track) ?? 0) + (primary[i] ?? 0))
  const tracks = Array.from(split.percents, ([track, percent]): TrackExplanation => {
    const counted = upstream.tracks.get(track)
    const requests = counted?.get('split') ?? 0
    const fallbacks = counted?.get('fallbacks') ?? 0
    return { track, percent, share: rounded(shares.get(track) ?? 0), requests, fallbacks }
  })
  const { variable, key } = split
  return { variable, key, tracks, left: rounded(leftToBackups(primary)) }
}

/**
 * The same for people, a line each.
 * @param away whether requests go to the backups first
 */
export function* splitLines(
  { variable, key, tracks, left }: SplitExplanation,
  away: boolean,
): Generator<string> {
  const how = key === undefined ? 'by percentages' : `by percentages of the hash of ${key}`
  yield `split: ${variable === undefined ? '' : `by ${variable}, else `}${how}`
  for (const { track, percent, share, requests, fallbacks } of tracks) {
    const whole = 100 * share
    let what = `${percent} %`
    if (percent > 0 && share === 0 && !away) {
      what += track === stableTrack ? ', nobody is ready' : ', nobody is ready, so they go on'
    } else if (Math.abs(whole - percent) > 0.005) what += `, now ${Number(whole.toFixed(2))} %`
    const gone = fallbacks === 0 ? '' : `, ${fallbacks} of them went elsewhere`
    yield `  ${track}: ${what}; ${requests} requests${gone}`
  }
  if (left > 0) yield `  ${Number((100 * left).toFixed(2))} % are left to backups`
}
