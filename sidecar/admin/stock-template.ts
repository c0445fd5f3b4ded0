import type { Template, TemplateMetric } from './facts.ts'

/** Numbers that Angie's stock template gives to the states of a peer; any other state is 0. */
const stateNumbers: ReadonlyMap<string, string> = new Map([
  ['up', '1'],
  ['down', '2'],
  ['unavailable', '3'],
  ['recovering', '4'],
  ['unhealthy', '5'],
  ['checking', '6'],
  ['draining', '7'],
  ['busy', '8'],
])

const stateHelp =
  'State of the peer: 1 up, 2 down, 3 unavailable, 4 recovering, 5 unhealthy, 6 checking, 7 draining, 8 busy.'

type Row = readonly [path: string, type: 'counter' | 'gauge', help: string, name?: string]

const ssl = (at: string): Row[] => [
  [`${at}/ssl/handshaked`, 'counter', 'TLS handshakes that succeeded.'],
  [`${at}/ssl/reuses`, 'counter', 'TLS handshakes that took up an earlier session.'],
  [`${at}/ssl/timedout`, 'counter', 'TLS handshakes that took too long.'],
  [`${at}/ssl/failed`, 'counter', 'TLS handshakes that failed.'],
]

const data = (at: string): Row[] => [
  [`${at}/data/received`, 'counter', 'Bytes received.'],
  [`${at}/data/sent`, 'counter', 'Bytes sent.'],
]

const peer = (at: string): Row[] => [
  [`${at}/state`, 'gauge', stateHelp],
  [`${at}/selected/current`, 'gauge', 'Requests or sessions in progress at the peer.'],
  [`${at}/selected/total`, 'counter', 'Attempts made at the peer.'],
  [`${at}/responses/{code}`, 'counter', 'Responses of the peer by status.'],
  [`${at}/data/sent`, 'counter', 'Bytes sent to the peer.'],
  [`${at}/data/received`, 'counter', 'Bytes received from the peer.'],
  [`${at}/health/fails`, 'counter', 'Attempts at the peer that failed.'],
  [`${at}/health/unavailable`, 'counter', 'Times that the peer reached max_fails.'],
  [`${at}/health/downtime`, 'counter', 'Milliseconds that the peer was unavailable.'],
]

/**
 * Paths of the status tree with a label's name where a key stands. A metric is named like its path, without the
 * labels, unless the fourth column names it.
 */
const rows: readonly Row[] = [
  ['/connections/accepted', 'counter', 'Client connections accepted.'],
  ['/connections/dropped', 'counter', 'Client connections dropped.'],
  ['/connections/active', 'gauge', 'Client connections with a request in progress.'],
  ['/connections/idle', 'gauge', 'Client connections between requests.'],
  ['/slabs/{zone}/pages/used', 'gauge', 'Memory pages in use.'],
  ['/slabs/{zone}/pages/free', 'gauge', 'Memory pages free.'],
  ['/slabs/{zone}/slots/{size}/used', 'gauge', 'Memory slots in use.', 'angie_slabs_pages_slots_used'],
  ['/slabs/{zone}/slots/{size}/free', 'gauge', 'Memory slots free.', 'angie_slabs_pages_slots_free'],
  ['/slabs/{zone}/slots/{size}/reqs', 'counter', 'Slots asked for.', 'angie_slabs_pages_slots_reqs'],
  ['/slabs/{zone}/slots/{size}/fails', 'counter', 'Slots refused.', 'angie_slabs_pages_slots_fails'],
  ['/resolvers/{zone}/queries/{type}', 'counter', 'Look-ups by kind.'],
  ['/resolvers/{zone}/sent/{type}', 'counter', 'DNS queries sent by type.'],
  ['/resolvers/{zone}/responses/{status}', 'counter', 'Results of look-ups.'],
  ...ssl('/http/server_zones/{zone}'),
  ['/http/server_zones/{zone}/requests/total', 'counter', 'Requests received.'],
  ['/http/server_zones/{zone}/requests/processing', 'gauge', 'Requests in progress.'],
  ['/http/server_zones/{zone}/requests/discarded', 'counter', 'Requests that ended without a response.'],
  ['/http/server_zones/{zone}/responses/{code}', 'counter', 'Responses by status.'],
  ...data('/http/server_zones/{zone}'),
  ['/http/location_zones/{zone}/requests/total', 'counter', 'Requests received.'],
  ['/http/location_zones/{zone}/requests/discarded', 'counter', 'Requests that ended without a response.'],
  ['/http/location_zones/{zone}/responses/{code}', 'counter', 'Responses by status.'],
  ...data('/http/location_zones/{zone}'),
  ...peer('/http/upstreams/{upstream}/peers/{peer}'),
  ['/http/upstreams/{upstream}/keepalive', 'gauge', 'Idle connections kept.'],
  ['/http/caches/{zone}/{status}/responses', 'counter', 'Responses by cache status.'],
  ['/http/caches/{zone}/{status}/bytes', 'counter', 'Bytes by cache status.'],
  ['/http/caches/{zone}/{status}/responses_written', 'counter', 'Responses stored by cache status.'],
  ['/http/caches/{zone}/{status}/bytes_written', 'counter', 'Bytes stored by cache status.'],
  ['/http/caches/{zone}/size', 'gauge', 'Bytes that the cache holds.'],
  ['/http/caches/{zone}/shards/{path}/size', 'gauge', 'Bytes that a part of the cache holds.'],
  ['/http/limit_conns/{zone}/{status}', 'counter', 'Requests by result of limit_conn.'],
  ['/http/limit_reqs/{zone}/{status}', 'counter', 'Requests by result of limit_req.'],
  ...ssl('/stream/server_zones/{zone}'),
  ['/stream/server_zones/{zone}/connections/total', 'counter', 'Connections received.'],
  ['/stream/server_zones/{zone}/connections/processing', 'gauge', 'Connections in progress.'],
  ['/stream/server_zones/{zone}/connections/discarded', 'counter', 'Connections that made no session.'],
  ['/stream/server_zones/{zone}/connections/passed', 'counter', 'Connections handed to another listener.'],
  ['/stream/server_zones/{zone}/sessions/{status}', 'counter', 'Sessions by result.'],
  ...data('/stream/server_zones/{zone}'),
  ...peer('/stream/upstreams/{upstream}/peers/{peer}').filter(([path]) => !path.includes('{code}')),
]

function metric([path, type, help, name]: Row): TemplateMetric {
  const labels: string[] = []
  const pattern = path.replace(/\{(\w+)\}/g, (_, label: string) => {
    labels.push(`${label}="$${labels.length + 1}"`)
    // A peer on a Unix socket has slashes in its name.
    return label === 'peer' ? '(.+)' : '([^/]+)'
  })
  const words = name ?? `angie${path.replace(/\/\{\w+\}/g, '').replaceAll('/', '_')}`
  return {
    metric: labels.length > 0 ? `${words}{${labels.join(',')}}` : words,
    value: path.endsWith('/state') ? (raw) => stateNumbers.get(raw) ?? '0' : (raw) => raw,
    path: labels.length > 0 ? new RegExp(`^${pattern}$`) : path,
    type,
    help,
  }
}

/** The template `all`: the metrics that Angie's own configuration brings, under its names. */
export const stockTemplate: Template = { metrics: rows.map(metric) }
