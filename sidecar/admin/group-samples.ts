import { onBackups } from '../../feedback/backup-switch.ts'
import type { GroupField } from '../../feedback/fields.ts'
import type { FleetGroupFacts } from '../../feedback/fleet/facts.ts'
import { denialReasons } from '../../feedback/reasons.ts'
import type { Sessions } from '../../feedback/sessions/sessions.ts'
import type { Track } from '../../feedback/track.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import type { Zone } from '../../feedback/zone.ts'
import { type Exposition, escapeLabel } from './exposition.ts'
import type { Facts, UpstreamFacts } from './facts.ts'
import { fleetGroupNumbers } from './fleet-samples.ts'
import { latencyBounds, sessionBounds } from './latency-bounds.ts'
import { deeds, type RuntimeFacts } from './runtime-facts.ts'

/*
 * Where the numbers of a group in the table of metrics (feedback/metrics-table.ts) come from: by name,
 * how the samples are read. Name, type, help and labels are the table's.
 */

/** What is told of a group. */
export interface GroupSeries
  extends Pick<UpstreamFacts, 'upstream' | 'shadow' | 'queue' | 'sticky' | 'backupSwitch'> {
  /** Undefined where the group is not shared. */
  readonly fleet: FleetGroupFacts | undefined
  /** Undefined where another thread knows of changes. */
  readonly runtime: RuntimeFacts | undefined
}

/** The series of a group now. */
export function groupSeries(group: UpstreamFacts, facts: Facts): GroupSeries {
  const { upstream, shadow, queue, sticky, backupSwitch } = group
  const fleet = facts.fleet()?.upstream(upstream)
  return { upstream, shadow, queue, sticky, backupSwitch, fleet, runtime: facts.runtime() }
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
const ofShadow = (read: (shadow: NonNullable<GroupSeries['shadow']>) => number) =>
  sampleOf(({ shadow }) => shadow && read(shadow))
/** Only where the directive stands, or something is left of it. */
const ofQueue = (field: GroupField, scale = 1) =>
  sampleOf(({ upstream: { zone }, queue }) =>
    queue || zone.get('queueWaiting') > 0 ? zone.get(field) / scale : undefined,
  )
const ofSessions = (read: (table: Sessions) => number) =>
  sampleOf(({ upstream: { sessions } }) => sessions && read(sessions.table))
const ofSwitch = (read: (zone: Zone) => number) =>
  sampleOf(({ upstream, backupSwitch }) => backupSwitch && read(upstream.zone))

/** What there is of groups of one kind only. */
function only(kind: 'http' | 'stream', read: GroupSampler): GroupSampler {
  return (out, name, group) => {
    if (group.upstream.kind === kind) read(out, name, group)
  }
}

export const groupSamplers: ReadonlyMap<string, GroupSampler> = new Map([
  ['evenkeel_upstream_requests_total', ofGroup((zone) => zone.get('requests'))],
  ['evenkeel_upstream_attempts_total', ofGroup((zone) => zone.get('tries'))],
  ['evenkeel_upstream_retries_total', ofGroup((zone) => zone.get('retries'))],
  ['evenkeel_upstream_retries_waiting', ofGroup((zone) => zone.get('retriesWaiting'))],
  [
    'evenkeel_upstream_idle_connections',
    only(
      'http',
      ofGroup((zone) => zone.get('keepalive')),
    ),
  ],
  ['evenkeel_upstream_denials_total', denials],
  ['evenkeel_upstream_responses_total', answers],
  ['evenkeel_upstream_request_seconds', only('http', wholeTimes(latencyBounds))],
  ['evenkeel_upstream_session_seconds', only('stream', wholeTimes(sessionBounds))],
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
  ['evenkeel_upstream_queue_waiting', ofQueue('queueWaiting')],
  ['evenkeel_upstream_queue_entered_total', ofQueue('queued')],
  ['evenkeel_upstream_queue_dropped_total', ofQueue('queueDropped')],
  ['evenkeel_upstream_queue_timedout_total', ofQueue('queueTimedout')],
  ['evenkeel_upstream_queue_overflows_total', ofQueue('queueOverflows')],
  ['evenkeel_upstream_queue_wait_seconds_total', ofQueue('queueMs', 1000)],
  ['evenkeel_upstream_sticky_picks_total', stickyPicks],
  ['evenkeel_upstream_sticky_sessions', ofSessions(({ size }) => size)],
  ['evenkeel_upstream_sticky_sessions_max', ofSessions(({ slots }) => slots)],
  ['evenkeel_upstream_sticky_sessions_created_total', ofSessions(({ created }) => created)],
  ['evenkeel_upstream_sticky_sessions_rebound_total', ofSessions(({ rebound }) => rebound)],
  ['evenkeel_upstream_sticky_sessions_evicted_total', ofSessions(({ evicted }) => evicted)],
  ['evenkeel_upstream_on_backups', ofSwitch((zone) => Number(onBackups(zone)))],
  ['evenkeel_upstream_backup_switches_total', ofSwitch((zone) => zone.get('switches'))],
  [
    'evenkeel_upstream_changes_in_force',
    sampleOf(
      ({ upstream, runtime }) => runtime?.list().filter((change) => change.upstream === upstream.name).length,
    ),
  ],
  ['evenkeel_upstream_changes_total', changes],
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
const awaited = { http: [200, 499, 500, 502, 503, 504], stream: [200, 502] } as const

/** Any other status could come, so of those only what was seen is told. */
function answers(out: Exposition, name: string, { upstream }: GroupSeries): void {
  for (const track of upstream.tracks.values()) {
    const labels = trackLabels(upstream, track).slice(0, -1)
    const { responses } = track
    const told: readonly number[] = awaited[upstream.kind]
    for (const code of told) out.sample(name, `${labels},code="${code}"}`, responses.get(code) ?? 0)
    for (const [code, count] of responses) {
      if (!told.includes(code)) out.sample(name, `${labels},code="${code === 0 ? 'xxx' : code}"}`, count)
    }
  }
}

function wholeTimes(bounds: readonly number[]): GroupSampler {
  return (out, name, { upstream }) => {
    for (const track of upstream.tracks.values()) {
      const labels = trackLabels(upstream, track).slice(0, -1)
      const seconds = track.get('requestMs') / 1000
      out.histogram(
        name,
        labels,
        bounds,
        (at) => track.duration(at),
        seconds,
        (at) => track.exemplar(at),
      )
    }
  }
}

function stickyPicks(out: Exposition, name: string, { upstream, sticky }: GroupSeries): void {
  if (sticky === undefined) return
  const { zone } = upstream
  const labels = `{upstream="${escapeLabel(upstream.name)}",status="`
  out.sample(name, `${labels}new"}`, zone.get('stickyNew'))
  out.sample(name, `${labels}hit"}`, zone.get('stickyHit'))
  out.sample(name, `${labels}miss"}`, zone.get('stickyMiss'))
}

/** Every word is told from the start, so that rates see the first. */
function changes(out: Exposition, name: string, { upstream, runtime }: GroupSeries): void {
  if (runtime === undefined) return
  const counted = new Map<string, number>()
  for (const one of runtime.counts()) if (one.upstream === upstream.name) counted.set(one.deed, one.count)
  const labels = `{upstream="${escapeLabel(upstream.name)}",change="`
  for (const deed of deeds) out.sample(name, `${labels}${deed}"}`, counted.get(deed) ?? 0)
}

function denials(out: Exposition, name: string, { upstream }: GroupSeries): void {
  const labels = `{upstream="${escapeLabel(upstream.name)}",reason="`
  for (const [d, reason] of denialReasons.entries())
    out.sample(name, `${labels}${reason}"}`, upstream.zone.denials[d]!)
}
