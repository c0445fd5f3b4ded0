import type { Metric, MetricLabel } from './metrics-table.ts'

const ofPeer = ['upstream', 'peer', 'track'] as const

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

/** Of single peers. What is said of requests holds for sessions where the group is one of `stream`. */
export const peerMetrics: readonly Metric[] = [
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
  peer(
    'grpc_responses_total',
    'counter',
    'Calls of gRPC by the status that the peer ended them with, those of retried attempts too.',
    'grpcStatuses',
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
  peer('in_flight', 'gauge', 'Requests, or sessions, in progress at the peer.', 'conns'),
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
  peer(
    'connect_average_seconds',
    'gauge',
    'Moving average of times to the connection of sessions of stream.',
    'connectTime',
  ),
  peer(
    'header_average_seconds',
    'gauge',
    'Moving average of times to the header, in stream to the first byte.',
    'headerTime',
  ),
  peer(
    'response_average_seconds',
    'gauge',
    'Moving average of times to the last byte of complete answers.',
    'responseTime',
  ),
  peer(
    'session_average_seconds',
    'gauge',
    'Moving average of the lengths of sessions of stream.',
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
    'Time from the start of an attempt to the header of its answer, in stream to the first byte.',
    'headerHistogram, headerSum',
  ),
  peer(
    'response_seconds',
    'histogram',
    'Time from the start of an attempt to the last byte of its answer.',
    'responseHistogram, responseSum',
  ),
  peer(
    'session_seconds',
    'histogram',
    'How long sessions of stream lasted that ended in order.',
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
