import type { FleetGroupFacts } from '../../feedback/fleet/facts.ts'
import { denialReasons } from '../../feedback/reasons.ts'
import type { Track } from '../../feedback/track.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import type { Zone } from '../../feedback/zone.ts'
import { type Exposition, escapeLabel } from './exposition.ts'
import type { ShadowFacts } from './facts.ts'
import { fleetGroupNumbers } from './fleet-samples.ts'
import { latencyBounds } from './latency-bounds.ts'

/*
 * Where the numbers of a group in the table of metrics (feedback/metrics-table.ts) come from: by name,
 * how the samples are read. Name, type, help and labels are the table's.
 */

/** What is told of a group. */
export interface GroupSeries {
  readonly upstream: Upstream
  /** Undefined where the group is not shared. */
  readonly fleet: FleetGroupFacts | undefined
  /** Undefined where no method is tried. */
  readonly shadow: ShadowFacts | undefined
}

/** Adds the samples of a group: none, where there is nothing to tell. */
export type GroupSampler = (out: Exposition, name: string, group: GroupSeries) => void

/** One sample a group. @param read undefined leaves the group out */
function sampleOf(read: (group: GroupSeries) => number | undefined): GroupSampler {
  return (out, name, group) => {
    const value = read(group)
    if (value !== undefined) out.sample(name, `{upstream="${escapeLabel(group.upstream.name)}"}`, value)
  }
}

const ofGroup = (read: (zone: Zone) => number) => sampleOf(({ upstream }) => read(upstream.zone))
const ofShadow = (read: (shadow: ShadowFacts) => number) => sampleOf(({ shadow }) => shadow && read(shadow))

export const groupSamplers: ReadonlyMap<string, GroupSampler> = new Map([
  ['evenkeel_upstream_requests_total', ofGroup((zone) => zone.get('requests'))],
  ['evenkeel_upstream_attempts_total', ofGroup((zone) => zone.get('tries'))],
  ['evenkeel_upstream_retries_total', ofGroup((zone) => zone.get('retries'))],
  ['evenkeel_upstream_retries_waiting', ofGroup((zone) => zone.get('retriesWaiting'))],
  ['evenkeel_upstream_idle_connections', ofGroup((zone) => zone.get('keepalive'))],
  ['evenkeel_upstream_denials_total', denials],
  ['evenkeel_upstream_responses_total', answers],
  ['evenkeel_upstream_request_seconds', requestTimes],
  ['evenkeel_upstream_rescued_total', ofTrack((track) => track.get('rescued'))],
  ['evenkeel_upstream_hidden_failures_total', ofTrack((track) => track.get('hidden'))],
  ['evenkeel_upstream_judged_attempts_total', ofTrack((track) => track.get('judged'))],
  ['evenkeel_upstream_failed_attempts_total', ofTrack((track) => track.get('bad'))],
  ['evenkeel_upstream_split_total', ofTrack((track) => track.get('split'))],
  ['evenkeel_upstream_split_fallbacks_total', ofTrack((track) => track.get('fallbacks'))],
  ['evenkeel_upstream_shadow_picks_total', ofShadow(({ picks }) => picks)],
  ['evenkeel_upstream_shadow_same_total', ofShadow(({ same }) => same)],
  ['evenkeel_upstream_picked_expected_seconds_total', ofShadow(({ pickedMs }) => pickedMs / 1000)],
  ['evenkeel_upstream_shadow_expected_seconds_total', ofShadow(({ shadowMs }) => shadowMs / 1000)],
  ...Array.from(fleetGroupNumbers, ([name, read]): [string, GroupSampler] => [
    name,
    sampleOf(({ fleet }) => fleet && read(fleet)),
  ]),
])

/** One sample a track of the group. */
function ofTrack(read: (track: Track) => number): GroupSampler {
  return (out, name, { upstream }) => {
    for (const track of upstream.tracks.values()) out.sample(name, trackLabels(upstream, track), read(track))
  }
}

function trackLabels(upstream: Upstream, track: Track): string {
  return `{upstream="${escapeLabel(upstream.name)}",track="${escapeLabel(track.name)}"}`
}

/** Statuses that are told from the start, so that rates see the first of them: success, and what alerts look for. */
const awaited = [200, 499, 500, 502, 503, 504]

/** Any other status could come, so of those only what was seen is told. */
function answers(out: Exposition, name: string, { upstream }: GroupSeries): void {
  for (const track of upstream.tracks.values()) {
    const labels = trackLabels(upstream, track).slice(0, -1)
    const { responses } = track
    for (const code of awaited) out.sample(name, `${labels},code="${code}"}`, responses.get(code) ?? 0)
    for (const [code, count] of responses) {
      if (!awaited.includes(code)) out.sample(name, `${labels},code="${code === 0 ? 'xxx' : code}"}`, count)
    }
  }
}

function requestTimes(out: Exposition, name: string, { upstream }: GroupSeries): void {
  for (const track of upstream.tracks.values()) {
    const labels = trackLabels(upstream, track).slice(0, -1)
    const seconds = track.get('requestMs') / 1000
    out.histogram(
      name,
      labels,
      latencyBounds,
      (at) => track.duration(at),
      seconds,
      (at) => track.exemplar(at),
    )
  }
}

function denials(out: Exposition, name: string, { upstream }: GroupSeries): void {
  const labels = `{upstream="${escapeLabel(upstream.name)}",reason="`
  for (const [d, reason] of denialReasons.entries())
    out.sample(name, `${labels}${reason}"}`, upstream.zone.denials[d]!)
}
