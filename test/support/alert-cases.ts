/* What must raise each alert, and what comes close and must not: series by the minute, in promtool's notation. */

/** Values of series, by the series. */
export type Given = Readonly<Record<string, string>>

export interface AlertCase {
  /** Of what it is. */
  readonly says: string
  readonly alert: string
  /** When one looks, minutes after the start. */
  readonly at: number
  readonly given: Given
  /** The labels that tell which one; empty: it is not raised. */
  readonly raised: readonly Readonly<Record<string, string>>[]
}

const minutes = 420
/** A counter that grows by so many a minute. */
const grows = (by: number, start = 0) => `${start}+${by}x${minutes}`
/** A gauge that stays. */
const stays = (value: number) => `${value}x${minutes}`
/** First one, then the other. */
const then = (first: string, count: number, second: string) => `${first}x${count - 1} ${second}`

const upstream = (name: string, labels: string) =>
  `evenkeel_upstream_${name}{instance="a",upstream="u",${labels}}`
const peerOf = (name: string, peer: string, more = '') =>
  `evenkeel_peer_${name}{instance="a",upstream="u",peer="${peer}",track="stable"${more}}`
const answers = (code: number, track = 'stable') =>
  upstream('responses_total', `track="${track}",code="${code}"`)
const excluded = (peer: string, reason: string) => peerOf('excluded', peer, `,reason="${reason}"`)
const processOf = (name: string) => `${name}{instance="a"}`

/** So many requests a minute, and errors among them, of a group; and the attempts at its one peer. */
const traffic = (requests: number, errors: number): Given => ({
  [answers(200)]: grows(requests - errors),
  [answers(503)]: grows(errors),
  'evenkeel_upstream_requests_total{instance="a",upstream="u"}': grows(requests),
})

/** Requests a minute of a group, all within one bucket at first, and from a minute on within another. */
const times = (before: string, after: string, from: number): Given =>
  Object.fromEntries(
    ['0.01', '0.05', '0.25', '1.0', '+Inf'].map((le) => {
      const at = (bound: string) => Number(le === '+Inf' ? 9 : le) >= Number(bound)
      const step = (inside: boolean) => (inside ? 120 : 0)
      const first = step(at(before))
      return [
        upstream('request_seconds_bucket', `track="stable",le="${le}"`),
        `0+${first}x${from} ${first * (from + 1)}+${step(at(after))}x${minutes - from}`,
      ]
    }),
  )

/** Both tracks have so many attempts a minute; errors and time are the canary's. */
const tracks = (requests: number, errors: number, slow = false): Given => ({
  [upstream('judged_attempts_total', 'track="stable"')]: grows(requests),
  [upstream('failed_attempts_total', 'track="stable"')]: grows(0),
  [upstream('judged_attempts_total', 'track="canary"')]: grows(requests),
  [upstream('failed_attempts_total', 'track="canary"')]: grows(errors),
  ...Object.fromEntries(
    ['stable', 'canary'].flatMap((track) =>
      ['0.1', '0.25', '+Inf'].map((le) => [
        `evenkeel_peer_response_seconds_bucket{instance="a",upstream="u",peer="p",track="${track}",le="${le}"}`,
        grows(slow && track === 'canary' && le === '0.1' ? 0 : requests),
      ]),
    ),
  ),
})

const failing = (attempts: number, failures: number, errors: number): Given => ({
  ...traffic(120, errors),
  [peerOf('attempts_total', 'a:1')]: grows(attempts),
  [peerOf('failures_total', 'a:1')]: grows(failures),
})

/** Two peers get so much of a hundred attempts a minute; each is meant to have half. */
const shared = (first: number): Given => ({
  ...traffic(100, 0),
  [peerOf('attempts_total', 'a:1')]: grows(first),
  [peerOf('attempts_total', 'b:1')]: grows(100 - first),
  [peerOf('share_ratio', 'a:1')]: stays(0.5),
  [peerOf('share_ratio', 'b:1')]: stays(0.5),
})

const denied = (reason: string, by: number): Given => ({
  ...traffic(120, 0),
  [upstream('denials_total', `reason="${reason}"`)]: grows(by),
})

const ignored = (by: number): Given => ({
  ...traffic(120, 0),
  [peerOf('attempts_total', 'a:1')]: grows(120),
  [peerOf('reports_ignored_total', 'a:1', ',reason="absent"')]: grows(by),
})

const bare = (name: string) => `evenkeel_upstream_${name}{instance="a",upstream="u"}`

const queue = (full: number, late: number): Given => ({
  ...traffic(120, 0),
  [bare('queue_overflows_total')]: grows(full),
  [bare('queue_timedout_total')]: grows(late),
})

/** A name that is followed: how many addresses it has, and whether it is found. */
const followed = (addresses: string, failing: string): Given => ({
  'evenkeel_resolver_name_addresses{instance="a",resolver="dns",name="db.internal"}': addresses,
  'evenkeel_resolver_name_failing{instance="a",resolver="dns",name="db.internal"}': failing,
})

const members = (a: number, b: number): Given => ({
  'evenkeel_upstream_fleet_members{instance="a",upstream="u"}': stays(a),
  'evenkeel_upstream_fleet_members{instance="b",upstream="u"}': stays(b),
})

const ofGroup = [{ upstream: 'u' }]
const ofPeer = [{ upstream: 'u', peer: 'a:1' }]
const ofTrack = [{ upstream: 'u', track: 'canary' }]
const ofInstance = [{ instance: 'a' }]
const ofName = [{ instance: 'a', resolver: 'dns', name: 'db.internal' }]

function one(
  alert: string,
  says: string,
  at: number,
  given: Given,
  raised: AlertCase['raised'] = [],
): AlertCase {
  return { alert, says, at, given, raised }
}

export const alertCases: readonly AlertCase[] = [
  one(
    'EvenkeelNoLivePeers',
    'all peers are out',
    3,
    { [excluded('a:1', 'unavailable')]: stays(1), [excluded('b:1', 'down')]: stays(1) },
    [{ upstream: 'u', instance: 'a' }],
  ),
  one('EvenkeelNoLivePeers', 'all peers are full', 3, {
    [excluded('a:1', 'busy')]: stays(1),
    [excluded('a:1', 'down')]: stays(0),
  }),
  one('EvenkeelNoLivePeers', 'one peer is left', 3, {
    [excluded('a:1', 'unhealthy')]: stays(1),
    [excluded('b:1', 'unhealthy')]: stays(0),
  }),
  one('EvenkeelErrorsFast', 'one request in twenty fails', 15, traffic(120, 6), ofGroup),
  one('EvenkeelErrorsFast', 'one in a thousand fails', 15, traffic(1000, 1)),
  one('EvenkeelErrorsFast', 'five requests an hour, all of which fail', 90, {
    [answers(200)]: stays(0),
    [answers(503)]: `0x5 1x11 2x11 3x11 4x11 5x11 6x11 7x11 8x11 9x${minutes}`,
  }),
  one('EvenkeelErrorsFast', 'the failing is over', 40, {
    [answers(200)]: grows(120),
    [answers(503)]: then('0+60', 20, `1200x${minutes}`),
  }),
  one('EvenkeelErrorsSlow', 'eight in a thousand fail for hours', 400, traffic(1000, 8), ofGroup),
  one('EvenkeelErrorsSlow', 'two in a thousand fail for hours', 400, traffic(1000, 2)),
  one('EvenkeelErrorsFast', 'eight in a thousand fail for hours', 400, traffic(1000, 8)),
  one(
    'EvenkeelSlowerThanUsual',
    'from 10 ms to a quarter of a second',
    330,
    { ...traffic(120, 0), ...times('0.01', '0.25', 300) },
    ofGroup,
  ),
  one('EvenkeelSlowerThanUsual', 'from 250 ms to 250 ms', 330, {
    ...traffic(120, 0),
    ...times('0.25', '0.25', 300),
  }),
  one('EvenkeelSlowerThanUsual', 'a minute after it began', 302, {
    ...traffic(120, 0),
    ...times('0.01', '0.25', 300),
  }),
  one('EvenkeelRetryBudgetSpent', 'one request in ten is refused a retry', 15, denied('budget', 12), ofGroup),
  one('EvenkeelRetryBudgetSpent', 'requests had all their tries', 15, denied('tries', 12)),
  one('EvenkeelOverflow', 'one request in ten finds all full', 15, denied('overflow', 12), ofGroup),
  one('EvenkeelOverflow', 'one in a thousand does', 15, { ...denied('overflow', 1), ...traffic(1000, 0) }),
  one('EvenkeelQueueFails', 'one request in twenty finds it full', 15, queue(6, 0), ofGroup),
  one('EvenkeelQueueFails', 'one in twenty waits in vain', 15, queue(0, 6), ofGroup),
  one('EvenkeelQueueFails', 'one in a hundred and fifty does', 15, {
    ...queue(0.4, 0.4),
    ...traffic(120, 0),
  }),
  one(
    'EvenkeelSessionsDropped',
    'some are dropped every minute',
    15,
    { [bare('sticky_sessions_evicted_total')]: grows(2) },
    ofGroup,
  ),
  one('EvenkeelSessionsDropped', 'some were dropped half an hour ago', 60, {
    [bare('sticky_sessions_evicted_total')]: then('0', 20, `50x${minutes}`),
  }),
  one('EvenkeelOnBackups', 'they have had it for long', 20, { [bare('on_backups')]: stays(1) }, ofGroup),
  one('EvenkeelOnBackups', 'they have it now and then', 60, {
    [bare('on_backups')]: `1x9 0 1x9 0 1x9 0 1x9 0 1x9 0 1x9 0x10`,
  }),
  one('EvenkeelChangedByHand', 'since the morning', 380, { [bare('changes_in_force')]: stays(2) }, ofGroup),
  one('EvenkeelChangedByHand', 'for some hours', 300, { [bare('changes_in_force')]: stays(2) }),
  one('EvenkeelReportsIgnored', 'no answer has a report', 30, ignored(120), ofGroup),
  one('EvenkeelReportsIgnored', 'one in four has none', 30, ignored(30)),
  one('EvenkeelPeerOut', 'a peer is set aside', 10, { [excluded('a:1', 'unavailable')]: stays(1) }, ofPeer),
  one(
    'EvenkeelPeerOut',
    'now by max_fails, now by probes',
    30,
    {
      [excluded('a:1', 'unavailable')]: `1 1 0 0 1 1 0 0 1 1 0 0 1 1 0 0 1 1 0 0 1 1 0 0 1 1 0 0 1 1 0 0`,
      [excluded('a:1', 'unhealthy')]: `0 0 1 1 0 0 1 1 0 0 1 1 0 0 1 1 0 0 1 1 0 0 1 1 0 0 1 1 0 0 1 1`,
    },
    ofPeer,
  ),
  one('EvenkeelPeerOut', 'a peer is set aside one minute in four', 30, {
    [excluded('a:1', 'unavailable')]: `0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1`,
  }),
  one('EvenkeelPeerOut', 'a peer is down as configured', 30, { [excluded('a:1', 'down')]: stays(1) }),
  one('EvenkeelHiddenFailures', 'every other attempt fails, and no request', 20, failing(60, 30, 0), ofPeer),
  one('EvenkeelHiddenFailures', 'clients see it as well', 20, failing(60, 30, 30)),
  one('EvenkeelHiddenFailures', 'one in a hundred attempts fails', 20, failing(100, 1, 0)),
  one('EvenkeelHiddenFailures', 'a peer is only looked at', 20, failing(1, 1, 0)),
  one('EvenkeelShareOff', 'nine tenths in the place of half', 30, shared(90), [
    { upstream: 'u', peer: 'a:1' },
    { upstream: 'u', peer: 'b:1' },
  ]),
  one('EvenkeelShareOff', 'six tenths in the place of half', 30, shared(60)),
  one('EvenkeelCanaryErrors', 'five in a hundred against none', 25, tracks(100, 5), ofTrack),
  one('EvenkeelCanaryErrors', 'as many as stable', 25, tracks(100, 0)),
  one('EvenkeelCanaryErrors', 'one of five requests', 25, tracks(1, 0.2)),
  one('EvenkeelCanaryErrors', 'what chance explains', 25, tracks(12, 0.24)),
  one('EvenkeelCanarySlower', 'most take more than 100 ms', 40, tracks(100, 0, true), ofTrack),
  one('EvenkeelCanarySlower', 'as fast as stable', 40, tracks(100, 0)),
  one('EvenkeelCanarySlower', 'one request a minute', 40, tracks(1, 0, true)),
  one('EvenkeelNotScraped', 'no answer', 7, { 'up{job="evenkeel",instance="a"}': stays(0) }, [
    { job: 'evenkeel', instance: 'a' },
  ]),
  one('EvenkeelNotScraped', 'another job does not answer', 7, { 'up{job="other",instance="a"}': stays(0) }),
  one('EvenkeelNotReady', 'not ready for long', 15, { [processOf('evenkeel_ready')]: stays(0) }, ofInstance),
  one('EvenkeelNotReady', 'a drain', 15, { [processOf('evenkeel_ready')]: then('1', 12, '0x3') }),
  one(
    'EvenkeelReloadFailed',
    'the last one failed',
    8,
    { [processOf('evenkeel_config_last_reload_successful')]: stays(0) },
    ofInstance,
  ),
  one('EvenkeelReloadFailed', 'the one after it was well', 8, {
    [processOf('evenkeel_config_last_reload_successful')]: then('0', 4, `1x${minutes}`),
  }),
  one(
    'EvenkeelThreadsReplaced',
    'one has died',
    12,
    { [processOf('evenkeel_threads_replaced_total')]: then('0', 10, `1x${minutes}`) },
    ofInstance,
  ),
  one('EvenkeelThreadsReplaced', 'it was an hour ago', 80, {
    [processOf('evenkeel_threads_replaced_total')]: then('0', 10, `1x${minutes}`),
  }),
  one(
    'EvenkeelConnectionsDropped',
    'some every minute',
    12,
    { [processOf('evenkeel_connections_dropped_total')]: grows(3) },
    ofInstance,
  ),
  one('EvenkeelConnectionsDropped', 'some, once', 20, {
    [processOf('evenkeel_connections_dropped_total')]: then('0', 5, `9x${minutes}`),
  }),
  one(
    'EvenkeelDatagramsDropped',
    'many every minute',
    20,
    { [processOf('evenkeel_datagrams_dropped_total')]: grows(600) },
    ofInstance,
  ),
  one('EvenkeelDatagramsDropped', 'a few every minute', 20, {
    [processOf('evenkeel_datagrams_dropped_total')]: grows(6),
  }),
  one(
    'EvenkeelLoopLag',
    'a fifth of a second',
    12,
    { [processOf('nodejs_eventloop_lag_p99_seconds')]: stays(0.2) },
    ofInstance,
  ),
  one('EvenkeelLoopLag', 'ten milliseconds', 12, {
    [processOf('nodejs_eventloop_lag_p99_seconds')]: stays(0.01),
  }),
  one('EvenkeelNameLost', 'it has no addresses', 5, followed(stays(0), stays(1)), ofName),
  one('EvenkeelNameLost', 'the last ones are kept', 5, followed(stays(2), stays(1))),
  one('EvenkeelNameNotFound', 'the last addresses are kept', 15, followed(stays(2), stays(1)), ofName),
  one('EvenkeelNameNotFound', 'it has lost them: that is another alert', 15, followed(stays(0), stays(1))),
  one('EvenkeelNameNotFound', 'it was not found for a minute', 15, followed(stays(2), `0x5 1 0x${minutes}`)),
  one('EvenkeelFleetLost', 'Redis is away', 4, { [processOf('evenkeel_fleet_up')]: stays(0) }, ofInstance),
  one('EvenkeelFleetLost', 'it is there', 4, { [processOf('evenkeel_fleet_up')]: stays(1) }),
  one('EvenkeelFleetSplit', 'one sees fewer than the other', 7, members(2, 1), ofGroup),
  one('EvenkeelFleetSplit', 'all see the same', 7, members(2, 2)),
  one(
    'EvenkeelFleetReset',
    'thrice in an hour',
    30,
    { 'evenkeel_upstream_fleet_resets_total{instance="a",upstream="u"}': `0x5 1x5 2x5 3x${minutes}` },
    ofGroup,
  ),
  one('EvenkeelFleetReset', 'once', 30, {
    'evenkeel_upstream_fleet_resets_total{instance="a",upstream="u"}': `0x25 1x${minutes}`,
  }),
]
