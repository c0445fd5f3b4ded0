// The method `feedback`: peers that say of themselves what they can take.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend, type Exchange } from '../../support/backend.ts'
import { ask, dial } from '../../support/client.ts'
import { at, inFront, peers } from '../../support/configured.ts'
import { eventually, type Lab, lab } from '../../support/invariants.ts'
import { seed } from '../../support/seed.ts'

/** What each peer says with its next answers: fields, and a status. */
type Says = Readonly<Record<string, string | number | readonly string[]>>
const says: Says[] = [{}, {}, {}]
const status = [200, 200, 200]
const list: Backend[] = []
let front: Lab

before(async () => {
  for (const i of [0, 1, 2]) {
    const script = (x: Exchange) => x.reply({ body: 'ABC'[i]!, headers: says[i]!, status: status[i]! })
    list.push(await backend(script))
  }
  const servers = list.map(({ address }) => `server ${address} max_fails=0;`).join(' ')
  const weighted = list.map(({ address }, i) => `server ${address} weight=${[1, 4, 1][i]};`).join(' ')
  const group = (name: string, method: string, among = servers) => `upstream ${name} { ${method}; ${among} }`
  front = await lab(
    `proxy_buffer_size 32k; keepalive_requests 100000;
     map $upstream_http_x_level $capacity { high 90; low 10; }
     map $upstream_status $good { 200 1; }
     ${group('capacity', 'feedback $upstream_http_x_capacity factor=50')}
     ${group('inverse', 'feedback $upstream_http_x_load inverse factor=50')}
     ${group('weights', 'feedback $upstream_http_x_capacity', weighted)}
     ${group('floor', 'feedback $upstream_http_x_capacity decay=0')}
     ${group('hostile', 'feedback $upstream_http_x_capacity factor=0 decay=0')}
     ${group('huge', 'feedback $upstream_http_x_load inverse factor=0 decay=0')}
     ${group('alone', 'feedback $upstream_http_x_capacity')}
     ${group('stale', 'feedback $upstream_http_x_load inverse factor=0 decay=0 expire=400ms')}
     ${group('level', 'feedback $capacity')}
     ${group('counted', 'feedback $upstream_http_x_capacity account=$good errors=0')}
     server { listen 127.0.0.1:PORT;
       location ~ ^/(?<group>\\w+)$ { proxy_set_header X-Before $capacity; proxy_pass http://$group; }
     }`,
    list,
  )
})
after(async () => {
  await front.sidecar.stop()
  for (const one of list) await one.stop()
})
beforeEach(() => {
  for (const i of [0, 1, 2]) {
    says[i] = {}
    status[i] = 200
  }
  return front.begin()
})

/** Percent of so many requests that each peer gets, from several clients that ask one after another. */
async function shares(group: string, requests: number, clients = 8): Promise<number[]> {
  const counts = [0, 0, 0]
  let left = requests
  await Promise.all(
    Array.from({ length: clients }, async () => {
      using client = await dial(front.port)
      while (left-- > 0) counts['ABC'.indexOf((await client.ask(`/${group}`)).text[0]!)]! += 1
    }),
  )
  return counts.map((count) => (100 * count) / requests)
}

function close(found: readonly number[], expected: readonly number[], points = 3): void {
  const text = `${found.map((one) => one.toFixed(1)).join(' ')} and not ${expected.join(' ')}`
  for (const [i, one] of expected.entries()) assert.ok(Math.abs(found[i]! - one) <= points, text)
}

interface Report {
  readonly share: number
  readonly report: {
    readonly value?: number
    readonly counts: boolean
    readonly ignored: Readonly<Record<string, number>>
  }
}

/** What the status tree says of each peer's reports. */
async function reports(group: string): Promise<Report[]> {
  const tree = await front.sidecar.json<Record<string, { evenkeel: Report }>>(
    `/status/http/upstreams/${group}/peers/`,
  )
  return list.map(({ address }) => tree[address]!.evenkeel)
}

test('the share is proportional to what a peer reports', async () => {
  for (const [i, capacity] of [60, 30, 10].entries()) says[i] = { 'X-Capacity': capacity }
  await shares('capacity', 40)
  close(await shares('capacity', 2800), [60, 30, 10])
})

test('with inverse the share is inverse to it', async () => {
  for (const [i, load] of [0.1, 0.2, 0.6].entries()) says[i] = { 'X-Load': load }
  await shares('inverse', 40)
  close(await shares('inverse', 2800), [60, 30, 10])
})

test('weights multiply what is reported', async () => {
  for (const [i, capacity] of [30, 10, 30].entries()) says[i] = { 'X-Capacity': capacity }
  await shares('weights', 40)
  close(await shares('weights', 1000), [30, 40, 30], 5)
})

test('a peer that reports 0 gets about one request in a hundred for each peer', async () => {
  for (const [i, capacity] of [50, 50, 0].entries()) says[i] = { 'X-Capacity': capacity }
  await shares('floor', 40)
  const [a, , c] = await shares('floor', 2400)
  // One in 301: 8 of 2,400.
  const least = Math.round(c! * 24)
  assert.ok(least >= 1 && least <= 20, `${least} of 2400`)
  close([a!], [49.8])
})

test('what is no number of 0 or more is not taken, is counted by reason, and harms nobody', async () => {
  says[0] = says[1] = { 'X-Capacity': 10 }
  const odd = ['-5', 'NaN', 'Infinity', 'abc', '9'.repeat(10_000), ['5', '7'], ''] as const
  let turn = 0
  const { script } = list[2]!
  list[2]!.script = (x: Exchange) =>
    x.reply({ body: 'C', headers: { 'X-Capacity': odd[turn++ % odd.length]! } })
  // The odd one has the mean of the others.
  close(await shares('hostile', 1000), [33.3, 33.3, 33.3], 5)
  list[2]!.script = script
  const [a, , c] = await reports('hostile')
  assert.deepEqual([a!.report.value, c!.report.value, c!.report.counts], [10, undefined, false])
  const { ignored } = c!.report
  const reasons = ['absent', 'not_a_number', 'infinite', 'negative', 'too_long', 'duplicate']
  assert.deepEqual(Object.keys(ignored), reasons)
  const each = Math.floor(turn / odd.length)
  for (const reason of reasons) {
    const times = reason === 'not_a_number' ? 2 : 1
    assert.ok(Math.abs(ignored[reason]! - times * each) <= times, `${reason} ${ignored[reason]} of ${turn}`)
  }
  const metrics = await (await fetch(`${front.sidecar.admin}/metrics`)).text()
  const line = `evenkeel_peer_reports_ignored_total{upstream="hostile",peer="${list[2]!.address}",track="stable",reason="negative"} ${ignored['negative']}`
  assert.ok(metrics.includes(`${line}\n`), line)
  const text = await (await fetch(`${front.sidecar.admin}/explain/hostile?format=text`)).text()
  assert.match(text, /: 33\.3 %; .*, reports nothing, a report was not taken: \w+\n/)
  await front.settle(undefined)
})

test('numbers beyond all measure are taken, and every share stays finite', async () => {
  for (const loads of [
    ['1e308', '1e-320', '1'],
    ['1e308', '1e308', '0'],
    ['0', '0', '0'],
  ]) {
    for (const [i, load] of loads.entries()) says[i] = { 'X-Load': load }
    await shares('huge', 60)
    for (const group of ['huge']) {
      const told = (await reports(group)).map(({ share }) => share)
      assert.ok(Math.abs(told.reduce((sum, one) => sum + one, 0) - 1) < 1e-4, `${loads}: ${told}`)
      assert.ok(
        told.every((share) => share > 0.003),
        `${loads}: ${told}`,
      )
    }
  }
})

test('as long as only one peer reports, the peers take turns', async () => {
  says[1] = { 'X-Capacity': '0.1' }
  using client = await dial(front.port)
  let said = ''
  for (let i = 0; i < 12; i++) said += (await client.ask('/alone')).text
  assert.equal(said, 'ABCABCABCABC')
})

test('a peer that has stopped to report has the mean, and to report again does not help it at once', async () => {
  for (const [i, load] of [0.1, 1, 1].entries()) says[i] = { 'X-Load': load }
  await shares('stale', 40)
  close(await shares('stale', 300), [83.3, 8.3, 8.3], 8)
  says[0] = {}
  const end = performance.now() + 500
  while (performance.now() < end) {
    await shares('stale', 20)
    await sleep(5)
  }
  close(await shares('stale', 600), [33.3, 33.3, 33.3], 6)
  assert.equal((await reports('stale'))[0]!.report.counts, false)
  says[0] = { 'X-Load': 0.1 }
  close(await shares('stale', 600), [33.3, 33.3, 33.3], 6)
  const [a] = await reports('stale')
  assert.deepEqual([a!.report.value, a!.report.counts], [0.1, false])
})

test('a map of what is reported is read anew of each answer, whatever it was before', async () => {
  says[0] = { 'X-Level': 'high' }
  says[1] = says[2] = { 'X-Level': 'low' }
  await shares('level', 60)
  close(await shares('level', 600), [81.8, 9.1, 9.1], 5)
})

test('account chooses the answers that are counted', async () => {
  says[0] = says[1] = { 'X-Capacity': 10 }
  says[2] = { 'X-Capacity': 80 }
  status[2] = 503
  await shares('counted', 60)
  assert.equal((await reports('counted'))[2]!.report.value, undefined)
  status[2] = 200
  await shares('counted', 60)
  close(await shares('counted', 600), [10, 10, 80], 5)
})

test('the example of the guide shares by capacity', async () => {
  await using two = await peers(2)
  for (const [i, capacity] of [30, 10].entries()) {
    two.list[i]!.script = { body: 'AB'[i]!, headers: { 'X-Capacity': capacity } }
  }
  const location = 'keepalive_requests 10000; location / { proxy_pass http://backend; }'
  await using guide = await inFront(await seed('feedback', at), two, location)
  let first = 0
  using client = await dial(guide.port)
  for (let i = 0; i < 20; i++) await client.ask('/')
  for (let i = 0; i < 2400; i++) if ((await client.ask('/')).text === 'A') first += 1
  close([first / 24], [75])
  await guide.settle(2420)
})

test('probes alone steer a group whose account asks about them', async () => {
  await using two = await peers(2)
  const capacities = [90, 10]
  for (const [i, one] of two.list.entries()) {
    one.script = (x) =>
      x.target === '/capacity'
        ? x.reply({ headers: { 'X-Capacity': capacities[i]! } })
        : x.reply({ body: 'AB'[i]!, headers: { 'X-Capacity': 50 } })
  }
  const servers = two.list.map(({ address }) => `server ${address};`).join(' ')
  await using probed = await lab(
    `map $upstream_probe $told { capacity 1; }
     upstream backend { zone backend 1m; feedback $upstream_http_x_capacity account=$told factor=0; ${servers} }
     server { listen 127.0.0.1:PORT;
       location / { proxy_pass http://backend; upstream_probe capacity uri=/capacity interval=40ms; }
     }`,
    [],
  )
  const values = async () => {
    const tree = await probed.sidecar.json<Record<string, { evenkeel: Report }>>(
      '/status/http/upstreams/backend/peers/',
    )
    return Object.values(tree).map(({ evenkeel }) => evenkeel.report.value)
  }
  await eventually('both have told', async () => (await values()).join() === '90,10')
  let first = 0
  using client = await dial(probed.port)
  for (let i = 0; i < 600; i++) if ((await client.ask('/')).text === 'A') first += 1
  close([first / 6], [90], 5)
  // What clients are answered with has taught nothing, and probes have not counted as requests.
  assert.deepEqual(await values(), [90, 10])
  const told = await probed.peers('backend')
  assert.equal(
    Object.values(told).reduce((sum, { selected }) => sum + selected.total, 0),
    600,
  )
  capacities.reverse()
  await eventually('both have told anew', async () => (await values()).join() === '10,90')
})

test('asking nobody but a lone peer needs no report', async () => {
  const [one] = list
  await using single = await lab(
    `upstream backend { feedback $upstream_http_x_capacity; server ${one!.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://backend; } }`,
    [],
  )
  assert.equal((await ask(single.port)).text, 'A')
})
