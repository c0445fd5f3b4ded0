// Load reports: in which fields and forms peers may say how they are, and who gets to see it.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, beforeEach, test } from 'node:test'
import { type Backend, backend, type Exchange } from '../../support/backend.ts'
import { ask, dial } from '../../support/client.ts'
import { type Lab, lab } from '../../support/invariants.ts'
import { chunk, type Fields, headText } from '../../support/message.ts'
import { orcaMessage } from '../../support/orca.ts'

/** What each of the four peers adds to the head and to the trailers of its answers. */
const heads: Fields[] = [{}, {}, {}, {}]
const trailers: Fields[] = [{}, {}, {}, {}]
const list: Backend[] = []
let front: Lab

async function answer(x: Exchange, i: number): Promise<void> {
  await x.body()
  await x.send(headText('HTTP/1.1 200 OK', { 'Transfer-Encoding': 'chunked', ...heads[i]! }))
  x.done()
  const fields = Object.entries(trailers[i]!).map(([name, value]) => `${name}: ${value}\r\n`)
  await x.send(Buffer.concat([chunk('ABCD'[i]!), Buffer.from(`0\r\n${fields.join('')}\r\n`)]))
}

before(async () => {
  for (const i of [0, 1, 2, 3]) list.push(await backend((x) => answer(x, i)))
  const servers = list.map(({ address }) => `server ${address};`).join(' ')
  const first = `server ${list[0]!.address};`
  front = await lab(
    `log_format reports '$orca_cpu_utilization|$orca_rps|$orca_named_queue_length|$orca_utilization_disk|$upstream_addr';
     access_log reports.log reports;
     keepalive_requests 100000;
     upstream early { feedback $orca_application_utilization inverse factor=0; ${servers} }
     upstream late { feedback $orca_application_utilization inverse factor=0 last_byte; ${servers} }
     upstream named { feedback $orca_named_room; ${servers} }
     upstream one { feedback $orca_cpu_utilization; ${first} }
     server { listen 127.0.0.1:PORT;
       location ~ ^/(?<group>\\w+)$ { proxy_pass http://$group; }
       location = /passed { load_report pass; proxy_pass http://one; }
     }`,
    list,
  )
})
after(async () => {
  await front.sidecar.stop()
  for (const one of list) await one.stop()
})
beforeEach(() => {
  heads.fill({})
  trailers.fill({})
  return front.begin()
})

async function shares(group: string, requests: number): Promise<number[]> {
  const counts = [0, 0, 0, 0]
  let left = requests
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      using client = await dial(front.port)
      while (left-- > 0) counts['ABCD'.indexOf((await client.ask(`/${group}`)).text)]! += 1
    }),
  )
  return counts.map((count) => (100 * count) / requests)
}

function close(found: readonly number[], expected: readonly number[], points: number): void {
  const text = `${found.map((one) => one.toFixed(1)).join(' ')} and not ${expected.join(' ')}`
  for (const [i, one] of expected.entries()) assert.ok(Math.abs(found[i]! - one) <= points, text)
}

for (const group of ['early', 'late']) {
  test(`a text, JSON, the binary form and trailers steer alike: ${group}`, async () => {
    heads[0] = { 'endpoint-load-metrics': 'TEXT application_utilization=0.1, named_metrics.a=1' }
    heads[1] = { 'endpoint-load-metrics': 'JSON {"applicationUtilization": 0.2}' }
    heads[2] = {
      'endpoint-load-metrics-bin': orcaMessage({ application_utilization: 0.4 }).toString('base64'),
    }
    trailers[3] = { 'endpoint-load-metrics': 'TEXT application_utilization=0.8' }
    await shares(group, 60)
    close(await shares(group, 1600), [53.3, 26.7, 13.3, 6.7], 4)
  })
}

test('a number that a peer has named itself can be gone by', async () => {
  for (const i of [0, 1, 2, 3]) {
    heads[i] = { 'endpoint-load-metrics': `cpu_utilization=0.9,named_metrics.room=${[5, 3, 1, 1][i]}` }
  }
  await shares('named', 60)
  close(await shares('named', 1000), [50, 30, 10, 10], 5)
})

test('what is wrong with a report is told by reason, and the answer is passed on', async () => {
  const wrong: readonly (readonly [string, Fields])[] = [
    ['not_a_number', { 'endpoint-load-metrics': 'cpu_utilization=NaN' }],
    ['infinite', { 'endpoint-load-metrics': 'cpu_utilization=0.5,eps=inf' }],
    ['unknown_field', { 'endpoint-load-metrics': 'cpu_utilization=0.5,cpu=1' }],
    ['malformed', { 'endpoint-load-metrics': 'JSON {' }],
    ['duplicate', { 'endpoint-load-metrics': 'cpu_utilization=0.5', 'endpoint-load-metrics-bin': '' }],
    ['absent', {}],
  ]
  for (const [, fields] of wrong) {
    heads[0] = fields
    assert.equal((await ask(front.port, '/one')).text, 'A')
  }
  const at = `/status/http/upstreams/one/peers/${list[0]!.address}/evenkeel/report`
  const { ignored, value } = await front.sidecar.json<{ ignored: Record<string, number>; value?: number }>(at)
  assert.deepEqual(ignored, Object.fromEntries(wrong.map(([reason]) => [reason, 1]).sort(byList)))
  assert.equal(value, undefined)
})

const order = ['absent', 'malformed', 'not_a_number', 'infinite', 'duplicate', 'unknown_field']
function byList([a]: readonly unknown[], [b]: readonly unknown[]): number {
  return order.indexOf(String(a)) - order.indexOf(String(b))
}

test('clients do not see reports, in the head or in trailers, unless they are passed', async () => {
  heads[0] = {
    'endpoint-load-metrics':
      'cpu_utilization=0.25, rps_fractional=12.5, named_metrics.queue-length=3,utilization.disk=1',
    Trailer: 'X-Sum, endpoint-load-metrics-bin',
  }
  trailers[0] = { 'X-Sum': '1', 'X-Endpoint-Load-Metrics': 'cpu_utilization=0.25' }
  const wants = { headers: { TE: 'trailers', Connection: 'TE' } }
  const stripped = await ask(front.port, '/one', wants)
  assert.deepEqual(
    stripped.head.names.filter((name) => name.includes('load')),
    [],
  )
  assert.deepEqual(stripped.trailers, ['X-Sum', '1'])
  const passed = await ask(front.port, '/passed', wants)
  assert.deepEqual(
    passed.head.names.filter((name) => name.includes('load')),
    ['endpoint-load-metrics'],
  )
  assert.deepEqual(passed.trailers, ['X-Sum', '1', 'X-Endpoint-Load-Metrics', 'cpu_utilization=0.25'])
})

test('a report is read though it is not passed on, by the method and by logs', async () => {
  heads[0] = {
    'endpoint-load-metrics':
      'cpu_utilization=0.25, rps_fractional=12.5, named_metrics.queue-length=3,utilization.disk=1',
  }
  const reply = await ask(front.port, '/one')
  assert.equal(reply.header('endpoint-load-metrics'), undefined)
  const { address } = list[0]!
  const at = `/status/http/upstreams/one/peers/${address}/evenkeel/report/value`
  assert.equal(await front.sidecar.json(at), 0.25)
  await front.settle(1)
  const lines = (await readFile(`${front.sidecar.folder}/reports.log`, 'latin1')).trimEnd().split('\n')
  assert.equal(lines.at(-1), `0.25|12.5|3|1|${address}`)
})
