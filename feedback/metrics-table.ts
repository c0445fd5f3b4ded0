/** A label of a metric. None is ever controlled by a client. */
export const metricLabels = ['upstream', 'peer', 'track', 'reason', 'code'] as const
export type MetricLabel = (typeof metricLabels)[number]

/** One metric of `/metrics`, as the page, the docs and the dashboards know it. */
export interface Metric {
  /** With `_total` where it is a counter. */
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly MetricLabel[]
  /** Where its number comes from, in the words of `fields.ts`; for the docs. */
  readonly from: string
}

const ofPeer = ['upstream', 'peer', 'track'] as const
const ofGroup = ['upstream'] as const

/** A metric of each peer. */
function peer(
  name: string,
  type: Metric['type'],
  help: string,
  from: string,
  ...more: readonly MetricLabel[]
): Metric {
  return { name: `evenkeel_peer_${name}`, type, help, labels: [...ofPeer, ...more], from }
}

/** A metric of each group. */
function group(
  name: string,
  type: Metric['type'],
  help: string,
  from: string,
  ...more: readonly MetricLabel[]
): Metric {
  return { name: `evenkeel_upstream_${name}`, type, help, labels: [...ofGroup, ...more], from }
}

/** A metric of the program as a whole. */
function program(name: string, type: Metric['type'], help: string, from: string): Metric {
  return { name: `evenkeel_${name}`, type, help, labels: [], from }
}

/** Every metric of our own. Those of the process itself (memory, event loop) come from prom-client beside them. */
export const metricsTable: readonly Metric[] = [
  program('connections_accepted_total', 'counter', 'Client connections accepted.', 'listeners'),
  program('connections_dropped_total', 'counter', 'Client connections closed for a limit.', 'listeners'),
  program('connections_active', 'gauge', 'Client connections with a request in progress.', 'listeners'),
  program('connections_idle', 'gauge', 'Client connections between requests.', 'listeners'),
  program('threads', 'gauge', 'Threads that serve clients.', 'threads'),
  program('threads_replaced_total', 'counter', 'Threads that died and were replaced.', 'threads'),
  program('ready', 'gauge', 'Whether /readyz says 200.', 'program'),
  program('config_generation', 'gauge', 'Configurations loaded since the start.', 'program'),
  program(
    'config_loaded_timestamp_seconds',
    'gauge',
    'When the running configuration was loaded.',
    'program',
  ),
  program(
    'config_last_reload_successful',
    'gauge',
    'Whether the last reload succeeded; 1 before the first.',
    'program',
  ),
  program('fleet_up', 'gauge', 'Whether Redis answers; absent without a fleet.', 'fleet'),
  program('fleet_exchanges_total', 'counter', 'Exchanges with the fleet that succeeded.', 'fleet'),
  program('fleet_exchange_failures_total', 'counter', 'Exchanges with the fleet that did not.', 'fleet'),
  program('fleet_losses_total', 'counter', 'Times that Redis was lost.', 'fleet'),
  program('fleet_round_trip_seconds', 'gauge', 'Time that the last exchange took.', 'fleet'),

  group('requests_total', 'counter', 'Requests that asked the group for a peer.', 'requests'),
  group('attempts_total', 'counter', 'Attempts begun at peers of the group.', 'tries'),
  group('retries_total', 'counter', 'Attempts after the first one of a request.', 'retries'),
  group('retries_waiting', 'gauge', 'Retries that wait for their back-off.', 'retriesWaiting'),
  group('idle_connections', 'gauge', 'Idle connections kept to peers of the group.', 'keepalive'),
  group(
    'denials_total',
    'counter',
    'Times that a request got no attempt, or no further one, by reason.',
    'denials',
    'reason',
  ),
  group(
    'responses_total',
    'counter',
    'Requests by the status they ended with, 499 where the client left before the end; xxx is outside 100 to 599.',
    'track',
    'track',
    'code',
  ),
  group(
    'request_seconds',
    'histogram',
    'Time of a whole request with all its attempts, tunnels left out.',
    'track',
    'track',
  ),
  group(
    'rescued_total',
    'counter',
    'Requests whose clients got an answer that is no error after an attempt had failed.',
    'track',
    'track',
  ),
  group('hidden_failures_total', 'counter', 'Failed attempts of those requests.', 'track', 'track'),
  group(
    'judged_attempts_total',
    'counter',
    'Attempts that said something of their track: clients that left, and kept connections whose request was sent again, left out.',
    'track',
    'track',
  ),
  group(
    'failed_attempts_total',
    'counter',
    'Those among them that failed or were answered 500 and above, whatever a retry made of them.',
    'track',
    'track',
  ),
  group('split_total', 'counter', 'Requests that the split sent to the track.', 'track', 'track'),
  group(
    'split_fallbacks_total',
    'counter',
    'Requests among those that went to stable or a backup, since no peer of the track could be asked.',
    'track',
    'track',
  ),
  group(
    'shadow_picks_total',
    'counter',
    "Pairs of picks, the method's and its shadow's, of which both peers' average times are known.",
    'shadowPicks',
  ),
  group('shadow_same_total', 'counter', 'Pairs among these that fell on the same peer.', 'shadowSame'),
  group(
    'picked_expected_seconds_total',
    'counter',
    'Average times of the peers that were picked, summed over them.',
    'pickedMs',
  ),
  group(
    'shadow_expected_seconds_total',
    'counter',
    'Average times of the peers that the shadow would have picked, summed over them.',
    'shadowMs',
  ),
  group('fleet_members', 'gauge', 'Instances that share the group; absent while not known.', 'fleet'),
  group('fleet_resets_total', 'counter', 'Times that the shared state was lost and begun anew.', 'fleet'),
  group('fleet_age_seconds', 'gauge', 'Time since the last exchange that succeeded.', 'fleet'),

  peer('attempts_total', 'counter', 'Attempts begun, first ones and retries.', 'selected'),
  peer('succeeded_total', 'counter', 'Attempts that ended plainly well.', 'succeeded'),
  peer(
    'attempt_reasons_total',
    'counter',
    'Attempts that did not end plainly well, retried ones too, by reason.',
    'reasons',
    'reason',
  ),
  peer(
    'responses_total',
    'counter',
    'Answers of the peer by status, those of retried attempts too; xxx is outside 100 to 599.',
    'statuses',
    'code',
  ),
  peer('failures_total', 'counter', 'Attempts that count against the peer.', 'failsTotal'),
  peer('sent_bytes_total', 'counter', 'Bytes sent to the peer.', 'bytesSent'),
  peer('received_bytes_total', 'counter', 'Bytes received from the peer.', 'bytesReceived'),
  peer('unavailable_total', 'counter', 'Times that failures reached max_fails.', 'unavailable'),
  peer('reuses_total', 'counter', 'Attempts made on a kept connection.', 'reuses'),
  peer('connects_total', 'counter', 'Connections opened for attempts.', 'connects'),
  peer('connect_seconds_total', 'counter', 'Time that opening them took.', 'connectMs'),
  peer(
    'ramp_ratio',
    'gauge',
    'Part of its weight that slow_start leaves the peer; 1 when it is over.',
    'slowAt',
  ),
  peer('probe_seconds', 'gauge', 'Time that the last probe of this instance took; absent before.', 'probeMs'),
  peer('probe_age_seconds', 'gauge', 'Time since the last probe ended; absent before.', 'probeWallAt'),
  peer('probes_total', 'counter', 'Probes that have ended.', 'probes'),
  peer('probe_failures_total', 'counter', 'Probes that did not pass.', 'probeFails'),
  peer('unhealthy_total', 'counter', 'Times that probes found the peer unhealthy.', 'unhealthy'),
  peer(
    'downtime_seconds_total',
    'counter',
    'Time that the peer was unavailable, the running span included.',
    'downtimeMs, downAt',
  ),
  peer('explored_total', 'counter', 'Picks made by exploration or by the floor.', 'explored'),
  peer('unmeasured_total', 'counter', 'Picks made while there was no average.', 'unmeasured'),
  peer('in_flight', 'gauge', 'Requests in progress at the peer.', 'conns'),
  peer(
    'max_conns',
    'gauge',
    'Most requests that may be in progress at the peer; absent where unlimited.',
    'configuration',
  ),
  peer('weight', 'gauge', 'Configured weight.', 'configuration'),
  peer(
    'agent_weight_ratio',
    'gauge',
    'Part of its weight that an agent leaves the peer; 1 where none has asked.',
    'weightFactor',
  ),
  peer('share_ratio', 'gauge', 'Chance that the next request goes to the peer.', 'balancer'),
  peer(
    'excluded',
    'gauge',
    'Whether the peer gets no request for this reason.',
    'fails, checkedAt, conns, barred, configuration',
    'reason',
  ),
  peer('average_seconds', 'gauge', 'Moving average that the method goes by.', 'avg'),
  peer('header_average_seconds', 'gauge', 'Moving average of times to the header.', 'headerTime'),
  peer(
    'response_average_seconds',
    'gauge',
    'Moving average of times to the last byte of complete answers.',
    'responseTime',
  ),
  peer(
    'success_ratio',
    'gauge',
    'Moving average of success, 1, and failure, 0, that the method goes by.',
    'ok',
  ),
  peer(
    'reported_value',
    'gauge',
    'Moving average of the values that the peer reports; absent while it does not count.',
    'report',
  ),
  peer(
    'report_age_seconds',
    'gauge',
    'Time since the peer reported a value that was taken; absent before.',
    'reportAt',
  ),
  peer(
    'reports_ignored_total',
    'counter',
    'Answers that were to bring a value and brought none that could be taken, by reason.',
    'ignored',
    'reason',
  ),
  peer('expected_seconds', 'gauge', 'Time that the method expects an answer to take now.', 'balancer'),
  peer(
    'waiting_age_seconds',
    'gauge',
    'Time that attempts without an answer yet have waited, added up.',
    'waiting, startSum',
  ),
  peer(
    'header_seconds',
    'histogram',
    'Time from the start of an attempt to the header of its answer.',
    'headerHistogram, headerSum',
  ),
  peer(
    'response_seconds',
    'histogram',
    'Time from the start of an attempt to the last byte of its answer.',
    'responseHistogram, responseSum',
  ),
  peer(
    'shadow_picks_total',
    'counter',
    'All picks of the shadow method, with times known or not; absent without one.',
    'selected',
  ),
  peer('fleet_in_flight', 'gauge', 'Requests in progress at the peer from all instances.', 'fleet'),
  peer('fleet_answers', 'gauge', 'Answers that all instances had since the shared state began.', 'fleet'),
  peer('fleet_failures', 'gauge', 'Answers among those that were failures.', 'fleet'),
  peer('fleet_average_seconds', 'gauge', 'Weighted average of what instances have as averages.', 'fleet'),
  peer('fleet_stuck', 'gauge', 'Attempts of other instances that are stuck at the peer.', 'fleet'),
  peer('fleet_stuck_age_seconds', 'gauge', 'Time that those have waited, added up.', 'fleet'),
  peer(
    'fleet_lease',
    'gauge',
    'Requests in progress that this instance may have of a max_conns of the fleet.',
    'fleet',
  ),
]
