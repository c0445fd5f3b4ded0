import { onBackups } from '../../feedback/backup-switch.ts'
import { denialReasons } from '../../feedback/reasons.ts'
import type { Facts, StickyFacts, SwitchFacts, UpstreamFacts } from './facts.ts'
import { fleetGroupEntries } from './status-fleet.ts'
import { changeEntries, peers } from './status-peers.ts'
import { type Entry, rounded } from './tree.ts'

/** The groups of a kind in the status tree, by their names as written. Times in milliseconds. */
export function* groups(facts: Facts, kind: 'http' | 'stream'): Generator<Entry> {
  for (const group of facts.upstreams()) {
    const { upstream } = group
    if (upstream.kind !== kind) continue
    const { zone } = upstream
    yield [
      upstream.label,
      function* () {
        yield ['peers', () => peers(group, facts)]
        if (kind === 'http') yield ['keepalive', zone.get('keepalive')]
        if (group.queue) yield ['queue', () => queueEntries(group)]
        const { backupSwitch } = group
        if (backupSwitch) yield ['backup_switch', () => switchEntries(group, backupSwitch, facts.clock.now())]
        yield ['evenkeel', () => extras(group, facts)]
        const shared = facts.fleet()?.upstream(upstream)
        if (shared) yield ['fleet', () => fleetGroupEntries(shared)]
      },
    ]
  }
}

function queueEntries({ upstream: { zone } }: UpstreamFacts): Entry[] {
  return [
    ['queued', zone.get('queued')],
    ['waiting', zone.get('queueWaiting')],
    ['dropped', zone.get('queueDropped')],
    ['timedout', zone.get('queueTimedout')],
    ['overflows', zone.get('queueOverflows')],
  ]
}

/** Which list takes requests first, 0 the primaries, and how long it is until the primaries are tried again. */
function* switchEntries(
  { upstream: { zone } }: UpstreamFacts,
  { after }: SwitchFacts,
  now: number,
): Generator<Entry> {
  const active = Number(onBackups(zone))
  yield ['active', active]
  if (active && after !== undefined)
    yield ['timeout', Math.round(leftUntilReturn(zone.get('backSince'), after, now))]
}

/** Milliseconds until the primaries may be tried again; 0: with the next request. */
export function leftUntilReturn(since: number, after: number, now: number): number {
  return Math.max(0, after - (now - since))
}

function* extras(group: UpstreamFacts, facts: Facts): Generator<Entry> {
  const { upstream, queue, sticky, backupSwitch } = group
  const { zone, method, kind } = upstream
  yield ['method', method]
  yield [kind === 'stream' ? 'sessions' : 'requests', zone.get('requests')]
  yield ['tries', zone.get('tries')]
  yield ['retries', zone.get('retries')]
  yield ['retries_waiting', zone.get('retriesWaiting')]
  yield [
    'denials',
    function* () {
      for (const [d, reason] of denialReasons.entries()) {
        const count = zone.denials[d]!
        if (count > 0) yield [reason, count]
      }
    },
  ]
  if (queue) {
    const { number, timeout } = queue
    yield [
      'queue',
      () => [
        ['limit', number],
        ['threads', facts.threads().running],
        ['timeout', timeout],
        ['waited', rounded(zone.get('queueMs'))],
      ],
    ]
  }
  const removed = (facts.runtime()?.list() ?? []).filter((change) => {
    return change.kind === 'removed' && change.upstream === upstream.name
  })
  // What was changed of the others stands at each of them.
  if (removed.length > 0)
    yield ['removed', () => removed.map((change): Entry => [change.target, () => changeEntries(change)])]
  if (backupSwitch) yield ['backup_switch', () => switches(group)]
  if (sticky) yield ['sticky', () => stickyEntries(group, sticky)]
}

function* switches({ upstream: { zone } }: UpstreamFacts): Generator<Entry> {
  yield ['list', onBackups(zone) ? 'backups' : 'primaries']
  yield ['switches', zone.get('switches')]
  const last = zone.get('switchedWallAt')
  if (last > 0) yield ['last', new Date(last)]
}

/** How sessions are bound, what became of attempts by that, and the sessions that were learnt. */
function* stickyEntries({ upstream }: UpstreamFacts, { mode, strict }: StickyFacts): Generator<Entry> {
  const { zone, sessions } = upstream
  yield ['mode', mode]
  yield ['strict', strict]
  yield ['new', zone.get('stickyNew')]
  yield ['hit', zone.get('stickyHit')]
  yield ['miss', zone.get('stickyMiss')]
  if (sessions === undefined) return
  const { table, rules } = sessions
  yield [
    'sessions',
    () => [
      ['zone', table.name],
      ['known', table.size],
      ['capacity', table.slots],
      ['timeout', rules.timeout],
      ['created', table.created],
      ['rebound', table.rebound],
      ['evicted', table.evicted],
    ],
  ]
}
