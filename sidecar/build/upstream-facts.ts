import { onBackups } from '../../feedback/backup-switch.ts'
import { usable } from '../../feedback/health.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import type { BudgetFacts, ProbeFacts, ShadowFacts, SplitFacts, UpstreamFacts } from '../admin/facts.ts'
import { exclusion } from '../balance/eligible.ts'
import type { Group } from '../balance/group.ts'
import { balancerOf } from '../balance/shadow.ts'
import type { LiveGroup } from './groups.ts'
import type { Running } from './running.ts'
import { waysOf } from './ways.ts'

/** Who knows what probes have found. */
interface Asking {
  about(peer: Peer): readonly ProbeFacts[]
}

/**
 * What the admin server shows of the groups: those that run, and removed ones whose last calls have not ended.
 * @param asking undefined in a thread that asks no peers
 */
export function upstreamFacts(
  running: Running,
  removed: Iterable<LiveGroup>,
  asking?: Asking,
): UpstreamFacts[] {
  const facts: UpstreamFacts[] = []
  for (const group of running.groups.values()) facts.push(factsOf(group, running, asking))
  for (const group of removed) {
    if (group.balancing.upstream.zone.retired.length > 0) facts.push(factsOf(group, undefined, asking))
  }
  return facts
}

function factsOf(group: LiveGroup, running: Running | undefined, asking: Asking | undefined): UpstreamFacts {
  const { balancing } = group
  const { upstream, primary, backup } = balancing
  return {
    upstream,
    shares(now) {
      const ready = (peer: Peer) => usable(peer, upstream.isAlone(peer), now)
      const first = primary.shares(ready, now)
      const second = backup?.shares(ready, now) ?? []
      // The primaries' turn comes after that of the backups, if nobody is ready there.
      const away = onBackups(upstream.zone) && second.some((share) => share > 0)
      return { primary: away ? first.map(() => 0) : first, backup: second }
    },
    exclusion: (peer, now) => exclusion(peer, upstream, now),
    expected: (peer, now) => balancing.balancerOf(peer)?.expected?.(peer, now),
    heedsStuck: primary.heedsStuck ?? false,
    split: splitFacts(balancing),
    shadow: shadowFacts(balancing),
    budgets: () => (running ? budgetsOf(running, upstream) : []),
    probed: running?.probes.some((probe) => probe.upstream === upstream) ?? false,
    probes: (peer) => asking?.about(peer) ?? [],
    ...waysOf(group),
  }
}

function splitFacts({ split }: Group): SplitFacts | undefined {
  if (split === undefined) return undefined
  const { variable, key } = split.rule
  return { variable: variable?.text, percents: split.percents, key: key?.text }
}

function shadowFacts({ shadow, upstream }: Group): ShadowFacts | undefined {
  if (shadow === undefined) return undefined
  const { words, state } = shadow
  const { zone, method } = state.upstream
  return {
    method,
    words,
    get picks() {
      return zone.get('shadowPicks')
    },
    get same() {
      return zone.get('shadowSame')
    },
    get pickedMs() {
      return zone.get('pickedMs')
    },
    get shadowMs() {
      return zone.get('shadowMs')
    },
    picksOf(peer) {
      const twin = state.twin(peer)
      return twin === undefined ? 0 : zone.peers.selected[twin.index]!
    },
    shares(now) {
      state.heed()
      const ready = (twin: Peer) => {
        const peer = state.original(twin)
        return usable(peer, upstream.isAlone(peer), now)
      }
      return shadow.balancer.shares(ready, now)
    },
    expected(peer, now) {
      const twin = state.twin(peer)
      return twin && balancerOf(shadow, twin)?.expected?.(twin, now)
    },
  }
}

function budgetsOf(running: Running, { name, kind }: Upstream): BudgetFacts[] {
  return kind === 'http' ? [...requestBudgets(running, name)] : [...sessionBudgets(running, name)]
}

function* requestBudgets({ routes }: Running, upstream: string): Generator<BudgetFacts> {
  for (const { content, settings, location } of routes) {
    if (content.kind !== 'proxy' || content.pass.group !== upstream) continue
    const { budget } = settings.retry
    if (budget) yield { location, ...budget }
  }
}

/** A server that listens at several addresses has the same at each. */
function* sessionBudgets({ streams }: Running, upstream: string): Generator<BudgetFacts> {
  for (const [servers, over] of [
    [streams.tcp, ''],
    [streams.udp, ' udp'],
  ] as const) {
    for (const { address, content, settings } of servers.values()) {
      if (content.kind !== 'proxy' || content.group !== upstream) continue
      const { budget } = settings.retry
      if (budget) yield { location: `${address}${over}`, ...budget }
    }
  }
}
