import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { ServerZone } from '../../../feedback/server-zone.ts'
import type { Template } from '../../../sidecar/admin/facts.ts'
import { prometheusResponse } from '../../../sidecar/admin/prometheus.ts'
import { type MetricLine, template } from '../../../sidecar/admin/template.ts'
import { read } from './checker.ts'
import { facts, group, resolver, wall } from './facts.ts'

const identity = () => (raw: string) => raw

function backend() {
  const made = group('backend', { 'unix:/run/a': {}, '127.0.0.1:81': { down: true } })
  const { zone, peers } = made.upstream
  zone.statuses[100]![peers[0]!.index] = 3
  zone.peers.selected[peers[0]!.index] = 3
  zone.peers.selectedWallAt[peers[0]!.index] = wall
  return made
}

/** What a template of these lines prints. */
async function print(
  lines: readonly MetricLine[],
  compile: (text: string) => (raw: string) => string = identity,
): Promise<string> {
  const templates = new Map<string, Template>([['own', template(lines, compile)]])
  const { body, status } = await prometheusResponse(
    facts({ groups: [backend()], templates: () => templates }),
    'own',
    'GET',
  )
  assert.equal(status, 200)
  return body.toString()
}

test('the built-in template tells the state under the names that Angie gives', async () => {
  const { body, headers } = await prometheusResponse(facts({ groups: [backend()] }), 'all', 'GET')
  const text = body.toString()
  assert.equal(text.split('\n')[0], '# Angie Prometheus template "all"')
  assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
  assert.equal(headers['cache-control'], 'no-cache')
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const unix = 'upstream="backend",peer="unix:/run/a"'
  const tcp = 'upstream="backend",peer="127.0.0.1:81"'
  assert.deepEqual(samples, [
    'angie_connections_accepted 7',
    'angie_connections_dropped 1',
    'angie_connections_active 2',
    'angie_connections_idle 3',
    `angie_http_upstreams_peers_state{${unix}} 1`,
    `angie_http_upstreams_peers_state{${tcp}} 2`,
    `angie_http_upstreams_peers_selected_current{${unix}} 0`,
    `angie_http_upstreams_peers_selected_current{${tcp}} 0`,
    `angie_http_upstreams_peers_selected_total{${unix}} 3`,
    `angie_http_upstreams_peers_selected_total{${tcp}} 0`,
    `angie_http_upstreams_peers_responses{${unix},code="200"} 3`,
    `angie_http_upstreams_peers_data_sent{${unix}} 0`,
    `angie_http_upstreams_peers_data_sent{${tcp}} 0`,
    `angie_http_upstreams_peers_data_received{${unix}} 0`,
    `angie_http_upstreams_peers_data_received{${tcp}} 0`,
    `angie_http_upstreams_peers_health_fails{${unix}} 0`,
    `angie_http_upstreams_peers_health_fails{${tcp}} 0`,
    `angie_http_upstreams_peers_health_unavailable{${unix}} 0`,
    `angie_http_upstreams_peers_health_unavailable{${tcp}} 0`,
    `angie_http_upstreams_peers_health_downtime{${unix}} 0`,
    `angie_http_upstreams_peers_health_downtime{${tcp}} 0`,
    'angie_http_upstreams_keepalive{upstream="backend"} 0',
  ])
  assert.match(text, /\n# HELP angie_connections_idle .+\n# TYPE angie_connections_idle gauge\n/)
})

test('the built-in template tells streams and resolvers too, without what they do not have', async () => {
  const db = group('stream/db', { 'a:1': { drain: true } }, { kind: 'stream' })
  db.upstream.zone.peers.selected[0] = 4
  const zone = new ServerZone('front')
  zone.begin()
  zone.endSession(Object.assign(new Call(), { status: 502, requestLength: 5 }))
  const from = facts({
    groups: [db],
    streamZones: () => new Map([['front', zone]]),
    resolvers: () => [resolver({ zone: 'dns' })],
  })
  const { body } = await prometheusResponse(from, 'all', 'GET')
  const samples = body
    .toString()
    .split('\n')
    .filter((line) => /^angie_(?:stream|resolvers)/.test(line))
  const peer = '{upstream="db",peer="a:1"}'
  assert.deepEqual(samples, [
    'angie_resolvers_queries{zone="dns",type="name"} 7',
    'angie_resolvers_queries{zone="dns",type="srv"} 2',
    'angie_resolvers_queries{zone="dns",type="addr"} 0',
    'angie_resolvers_sent{zone="dns",type="a"} 7',
    'angie_resolvers_sent{zone="dns",type="aaaa"} 6',
    'angie_resolvers_sent{zone="dns",type="srv"} 2',
    'angie_resolvers_sent{zone="dns",type="ptr"} 0',
    'angie_resolvers_responses{zone="dns",status="success"} 9',
    'angie_resolvers_responses{zone="dns",status="timedout"} 1',
    'angie_resolvers_responses{zone="dns",status="format_error"} 0',
    'angie_resolvers_responses{zone="dns",status="server_failure"} 3',
    'angie_resolvers_responses{zone="dns",status="not_found"} 2',
    'angie_resolvers_responses{zone="dns",status="unimplemented"} 0',
    'angie_resolvers_responses{zone="dns",status="refused"} 0',
    'angie_resolvers_responses{zone="dns",status="other"} 0',
    'angie_stream_server_zones_connections_total{zone="front"} 1',
    'angie_stream_server_zones_connections_processing{zone="front"} 0',
    'angie_stream_server_zones_connections_discarded{zone="front"} 0',
    'angie_stream_server_zones_connections_passed{zone="front"} 0',
    'angie_stream_server_zones_sessions{zone="front",status="success"} 0',
    'angie_stream_server_zones_sessions{zone="front",status="invalid"} 0',
    'angie_stream_server_zones_sessions{zone="front",status="forbidden"} 0',
    'angie_stream_server_zones_sessions{zone="front",status="internal_error"} 0',
    'angie_stream_server_zones_sessions{zone="front",status="bad_gateway"} 1',
    'angie_stream_server_zones_sessions{zone="front",status="service_unavailable"} 0',
    'angie_stream_server_zones_data_received{zone="front"} 5',
    'angie_stream_server_zones_data_sent{zone="front"} 0',
    `angie_stream_upstreams_peers_state${peer} 7`,
    `angie_stream_upstreams_peers_selected_current${peer} 0`,
    `angie_stream_upstreams_peers_selected_total${peer} 4`,
    `angie_stream_upstreams_peers_data_sent${peer} 0`,
    `angie_stream_upstreams_peers_data_received${peer} 0`,
    `angie_stream_upstreams_peers_health_fails${peer} 0`,
    `angie_stream_upstreams_peers_health_unavailable${peer} 0`,
    `angie_stream_upstreams_peers_health_downtime${peer} 0`,
  ])
})

test('a template prints values by exact path, by pattern, and how many members an object has', async () => {
  assert.equal(
    await print([
      {
        metric: 'accepted',
        value: '$p8s_value',
        path: '/connections/accepted',
        type: 'counter',
        help: 'a\\b',
      },
      { metric: 'peers{group="$1"}', value: '$p8s_value', path: '~^/http/upstreams/([^/]+)/peers/$' },
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the form of a variable with a letter after it
      { metric: 'backup{p="${2}"}', value: '$p8s_value', path: '~^/http/upstreams/(.+)/peers/(.+)/backup$' },
      { metric: 'last{g="$g"}', value: '$p8s_value', path: '~upstreams/(?<g>\\w+)/peers/.*/selected/last$' },
    ]),
    [
      '# Angie Prometheus template "own"',
      '# HELP accepted a\\\\b',
      '# TYPE accepted counter',
      'accepted 7',
      'peers{group="backend"} 2',
      'backup{p="unix:/run/a"} 0',
      'backup{p="127.0.0.1:81"} 0',
      'last{g="backend"} 1796003689',
      '',
    ].join('\n'),
  )
})

test('a value goes to the first metric that asks for its path', async () => {
  assert.equal(
    await print([
      { metric: 'first', value: '$p8s_value', path: '~accepted$' },
      { metric: 'second', value: '$p8s_value', path: '/connections/accepted' },
    ]),
    '# Angie Prometheus template "own"\nfirst 7\n',
  )
})

test('a value may be mapped; what maps to nothing or to no number is left out, with its header', async () => {
  const states: Readonly<Record<string, string>> = { up: '1', down: '' }
  const path = '~^/http/upstreams/[^/]+/peers/(.+)/state$'
  const text = await print(
    [
      { metric: 'state{p="$1"}', value: '$state', path },
      { metric: 'version', value: '$p8s_value', path: '/angie/version', help: 'no number' },
      { metric: 'fixed', value: '$hostnumber' },
    ],
    (name) => (raw) => (name === '$state' ? (states[raw] ?? '') : '12'),
  )
  assert.equal(text, '# Angie Prometheus template "own"\nstate{p="unix:/run/a"} 1\nfixed 12\n')
})

test('several lines of one name share one header', async () => {
  const text = await print([
    { metric: 'c{k="a"}', value: '$p8s_value', path: '/connections/accepted', type: 'counter', help: 'x' },
    { metric: 'c{k="d"}', value: '$p8s_value', path: '/connections/dropped', type: 'counter', help: 'x' },
  ])
  assert.equal(text.match(/# TYPE/g)?.length, 1)
})

test('a pattern with a capital letter is compared without case, as in Angie', async () => {
  const text = await print([{ metric: 'x', value: '$p8s_value', path: '~^/Connections/IDLE$' }])
  assert.match(text, /\nx 3\n/)
})

test('wrong lines are refused in the words of Angie', async () => {
  const wrong = (line: MetricLine, message: string) => {
    assert.throws(() => template([line], identity), { message })
  }
  wrong(
    { metric: 'a$1', value: '$p8s_value' },
    'invalid metric name: "a$1" - only labels can contain variables',
  )
  wrong({ metric: 'a', value: '1' }, `metric value "1" isn't a variable`)
  wrong({ metric: 'a', value: '$p8s_value', path: '' }, 'empty metric matching path')
  wrong({ metric: 'a', value: '$p8s_value', path: '~' }, 'empty regex in metric matching path')
  wrong({ metric: 'a{b="$c"}', value: '$p8s_value', path: '/x' }, 'unknown "c" variable')
  wrong(
    { metric: 'a', value: '$p8s_value', path: '~(' },
    'invalid regular expression in metric matching path "~("',
  )
})

test('an own template named all stands before the built-in one; an unknown one is not found', async () => {
  const templates = new Map([
    ['all', template([{ metric: 'mine', value: '$p8s_value', path: '/angie/generation' }], identity)],
  ])
  const from = facts({ templates: () => templates })
  const whole = await prometheusResponse(from, 'all', 'GET')
  assert.equal(whole.body.toString(), '# Angie Prometheus template "all"\nmine 1\n')
  assert.equal((await prometheusResponse(from, 'nope', 'GET')).status, 404)
  assert.equal((await prometheusResponse(from, 'all', 'DELETE')).status, 405)
  const head = await prometheusResponse(from, 'all', 'HEAD')
  assert.equal(head.body.length, 0)
  assert.equal(head.headers['content-length'], String(whole.body.length))
})

test('what the built-in template prints has no series twice', async () => {
  const from = facts({ groups: [backend(), group('other', { a: {} })] })
  const text = (await prometheusResponse(from, 'all', 'GET')).body.toString()
  // Angie names counters without `_total`, which the reader would refuse; as gauges the rest is checked.
  read(text.replaceAll(/^(# TYPE \S+) counter$/gm, '$1 gauge'))
})
