import type { Metric, MetricLabel } from './metrics-table.ts'

/** A metric of the program as a whole. */
function program(name: string, type: Metric['type'], help: string, from: string): Metric {
  return { name: `evenkeel_${name}`, type, help, labels: [], from }
}

/** A metric of each resolver, or of each name that it follows. */
function resolver(name: string, type: Metric['type'], help: string, ...more: readonly MetricLabel[]): Metric {
  return {
    name: `evenkeel_resolver_${name}`,
    type,
    help,
    labels: ['resolver', ...more],
    from: 'resolvers',
  }
}

/** A metric of each `status_zone` of servers that speak TLS to clients; those of `stream` are `stream/NAME`. */
function tls(name: string, help: string): Metric {
  return { name: `evenkeel_tls_${name}`, type: 'counter', help, labels: ['zone'], from: 'status_zone' }
}

/** Of the program as a whole, of the zones of its servers, and of the resolvers that it has. */
export const programMetrics: readonly Metric[] = [
  program('connections_accepted_total', 'counter', 'Client connections accepted.', 'listeners'),
  program('connections_dropped_total', 'counter', 'Client connections closed for a limit.', 'listeners'),
  program('datagrams_dropped_total', 'counter', 'UDP datagrams that were not passed on.', 'listeners'),
  program(
    'connections_active',
    'gauge',
    'Client connections with a request or a session in progress.',
    'listeners',
  ),
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

  tls('handshakes_total', 'TLS handshakes of clients that succeeded.'),
  tls('handshakes_reused_total', 'Those of them that took up an earlier session.'),
  tls('handshakes_timedout_total', 'TLS handshakes of clients that took too long.'),
  tls('handshakes_failed_total', 'TLS handshakes of clients that failed.'),

  resolver('queries_total', 'counter', 'Names that were looked up, by what was looked for.', 'type'),
  resolver('sent_total', 'counter', 'Messages sent to DNS servers, by type of record.', 'type'),
  resolver('responses_total', 'counter', 'How those ended.', 'status'),
  resolver('name_addresses', 'gauge', 'Addresses that the name has now.', 'name'),
  resolver(
    'name_failing',
    'gauge',
    'Whether the last look-up did not find the name; its last addresses are kept, unless it is no more.',
    'name',
  ),
  resolver(
    'name_age_seconds',
    'gauge',
    'Time since the addresses of the name were last heard; absent before.',
    'name',
  ),
]
