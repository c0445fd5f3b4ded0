// Requests split over tracks by the real program: who gets what, where retries go, and what is said of it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Backend, type Backends, backends } from '../../support/backend.ts'
import { ask, dial } from '../../support/client.ts'
import { dieInTurn, mortal } from '../../support/dying-threads.ts'
import { eventually } from '../../support/invariants.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { SteadyLoad } from '../../support/steady-load.ts'

interface Parts {
  readonly top?: string
  readonly http?: string
  readonly location?: string
}

/** A configuration with one group, everything being passed to it. */
function config(upstream: string, { top = '', http = '', location = '' }: Parts = {}): string {
  return `${top} http { ${http} upstream u { ${upstream} }
    server { listen 127.0.0.1:PORT; location / { keepalive_requests 100000; ${location} proxy_pass http://u; } } }`
}

/** `server` lines, each with what follows its address. */
function servers({ list }: Backends, ...more: string[]): string {
  return list.map(({ address }, i) => `server ${address} ${more[i] ?? ''};`).join(' ')
}

/** Peers that answer with their letter. */
function letters(count: number): Promise<Backends> {
  return backends(Array.from({ length: count }, (_, i) => ({ body: String.fromCharCode(65 + i) })))
}

/** Values of a metric of the group, by its labels but the group's name. */
async function metric(sidecar: Sidecar, name: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${sidecar.admin}/metrics`)).text()
  const lines = text.matchAll(new RegExp(`^evenkeel_${name}\\{upstream="u",?(.*)\\} (\\S+)$`, 'gm'))
  return Object.fromEntries(Array.from(lines, ([, labels, value]) => [labels, Number(value)]))
}

/** Asks by several clients at once, each one after another. @returns how often each body came */
async function many(port: number, count: number, clients = 8): Promise<Map<string, number>> {
  const found = new Map<string, number>()
  const one = async (_: unknown, i: number) => {
    using client = await dial(port)
    for (let sent = i; sent < count; sent += clients) {
      const { text } = await client.ask(`/${sent}`)
      found.set(text, (found.get(text) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: clients }, one))
  return found
}

test('a canary has its tenth under least_time, and the method applies inside of each track', async () => {
  await using four = await letters(4)
  const took = [2, 8, 24, 6]
  for (const [i, after] of took.entries()) four.list[i]!.script = { body: String.fromCharCode(65 + i), after }
  const block = `least_time last_byte; ${servers(four, '', '', 'track=canary', 'track=canary')} split canary=10%;`
  await using sidecar = await start(config(block))
  const total = 3500
  const found = await many(sidecar.port, total)
  const [a, b, c, d] = ['A', 'B', 'C', 'D'].map((letter) => found.get(letter) ?? 0) as [
    number,
    number,
    number,
    number,
  ]
  const part = (c + d) / total
  assert.ok(Math.abs(part - 0.1) < 0.02, `canary has ${part}`)
  // Both fast ones are preferred, although the canary's is hardly faster than the slow one of stable.
  assert.ok(a > 1.8 * b, `${a} ${b}`)
  assert.ok(d > 1.8 * c, `${c} ${d}`)
  const sent = await metric(sidecar, 'upstream_split_total')
  assert.deepEqual(sent, { 'track="stable"': a + b, 'track="canary"': c + d })
  const shares = Object.values(await metric(sidecar, 'peer_share_ratio'))
  assert.ok(Math.abs(shares[2]! + shares[3]! - 0.1) < 1e-9, `${shares}`)
})

test('a key goes where split_clients of nginx would send it, and a cookie overrides it', async () => {
  await using three = await letters(3)
  const block = `${servers(three, 'track=a', 'track=b', 'track=c')} split $cookie_track; split a=50% b=30% c=20% key=$arg_k;`
  await using sidecar = await start(config(block))
  const said = async (key: string, cookie = '') =>
    (await ask(sidecar.port, `/?k=${key}`, { headers: cookie === '' ? {} : { Cookie: cookie } })).text
  // As nginx 1.22 places them.
  const known = { a: 'B', ab: 'A', abcde: 'A', 'user-3': 'B', 7: 'C', 42: 'A', '192.0.2.1': 'B', '': 'A' }
  for (const [key, letter] of Object.entries(known)) {
    for (let i = 0; i < 3; i++) assert.equal(await said(key), letter, key)
  }
  assert.equal(await said('a', 'track=c'), 'C')
  assert.equal(await said('a', 'x=1; track=a'), 'A')
  for (const unknown of ['track=d', 'track=', 'track=C', 'track=__proto__']) {
    assert.equal(await said('a', unknown), 'B', unknown)
  }
})

test('every request has a track where percentages make up 100, and all tracks are asked', async () => {
  await using three = await letters(3)
  await using sidecar = await start(
    config(`${servers(three, 'track=a', 'track=b', 'track=c')} split a=50% b=30% c=20%;`),
  )
  const found = await many(sidecar.port, 2000)
  const parts = ['A', 'B', 'C'].map((letter) => (found.get(letter) ?? 0) / 2000)
  assert.equal(found.size, 3)
  for (const [i, part] of [0.5, 0.3, 0.2].entries()) assert.ok(Math.abs(parts[i]! - part) < 0.05, `${parts}`)
})

interface JsonRecord {
  readonly track: string | null
  readonly status: number
  readonly attempts: readonly {
    readonly track: string | null
    readonly pick: string
    readonly peer: string
  }[]
}

/** The records of the access log, once there are so many. */
async function records(sidecar: Sidecar, count: number): Promise<JsonRecord[]> {
  const lines = () => sidecar.stdout.split('\n').filter(Boolean)
  await eventually(`${count} records`, () => lines().length >= count)
  // The shape that `json` has.
  return lines().map((line) => JSON.parse(line) as JsonRecord)
}

test('a retry stays in the track, then goes to stable, and logs and metrics say so', async () => {
  await using three = await backends([{ body: 'A' }, { status: 503 }, { status: 503 }])
  const block = `${servers(three, '', 'track=canary', 'track=canary')} split $http_x_track;`
  const location = `proxy_next_upstream error http_503; access_log /dev/stdout json;
    add_header X-Track "$upstream_track $upstream_pick";`
  await using sidecar = await start(config(block, { location }))
  const reply = await ask(sidecar.port, '/', { headers: { 'X-Track': 'canary' } })
  assert.equal(reply.text, 'A')
  assert.equal(reply.header('x-track'), 'stable round_robin, round_robin, fallback')
  const [record] = await records(sidecar, 1)
  assert.equal(record!.track, 'stable')
  assert.deepEqual(
    record!.attempts.map(({ track, pick }) => `${track} ${pick}`),
    ['canary round_robin', 'canary round_robin', 'stable fallback'],
  )
  assert.deepEqual(await metric(sidecar, 'upstream_split_fallbacks_total'), {
    'track="stable"': 0,
    'track="canary"': 1,
  })
  // Both canaries are set aside now: requests go on at once, and are counted.
  for (let i = 0; i < 3; i++) await ask(sidecar.port, '/', { headers: { 'X-Track': 'canary' } })
  assert.equal((await records(sidecar, 4)).at(-1)!.attempts.length, 1)
  assert.deepEqual(await metric(sidecar, 'upstream_split_total'), {
    'track="stable"': 0,
    'track="canary"': 4,
  })
  assert.equal((await metric(sidecar, 'upstream_split_fallbacks_total'))['track="canary"'], 4)
  assert.match(sidecar.stderr, /peer: "\S+", track: "canary", fails: 1/)
  const text = await (await fetch(`${sidecar.admin}/explain/u?format=text`)).text()
  assert.match(text, /\n {4}canary: 0 %; 4 requests, 4 of them went elsewhere\n/)
})

test('stable never goes to the canary: its clients are told that nobody is there', async () => {
  await using three = await letters(3)
  const [a, b] = three.list as [Backend, Backend]
  const block = `${servers(three, '', '', 'track=canary')} split $http_x_track;`
  await using sidecar = await start(config(block, { location: 'access_log /dev/stdout json;' }))
  await a.stop()
  await b.stop()
  assert.equal((await ask(sidecar.port)).status, 502)
  assert.equal((await ask(sidecar.port)).status, 502)
  assert.equal((await ask(sidecar.port, '/', { headers: { 'X-Track': 'canary' } })).text, 'C')
  const [first, second, third] = await records(sidecar, 3)
  assert.deepEqual(
    [first, second, third].map((record) => [record!.track, record!.status]),
    [
      ['stable', 502],
      ['stable', 502],
      ['canary', 200],
    ],
  )
  assert.deepEqual(await metric(sidecar, 'peer_share_ratio').then(Object.values), [0, 0, 0])
  assert.deepEqual(await metric(sidecar, 'upstream_denials_total').then((all) => all['reason="no_live"']), 1)
})

test('the only peer of stable is asked whatever its failures, and its own answer passed on', async () => {
  await using two = await backends([{ status: 503, body: 'busy' }, { body: 'B' }])
  const block = `${servers(two, '', 'track=canary')} split $http_x_track;`
  const location = 'proxy_next_upstream error http_503;'
  await using sidecar = await start(config(block, { location }))
  for (let i = 0; i < 3; i++) {
    const reply = await ask(sidecar.port)
    assert.deepEqual([reply.status, reply.text], [503, 'busy'])
  }
  assert.equal(two.list[0]!.requests.length, 3)
})

test('percentages change by reloads under load, and nobody notices', async () => {
  await using four = await letters(4)
  const block = (split: string, threads = '') =>
    config(`least_time last_byte; ${servers(four, '', '', 'track=canary', 'track=canary')} ${split}`, {
      top: `worker_processes 3; ${threads}`,
      http: 'access_log off;',
    })
  await using sidecar = await start(block('split canary=10%;'))
  const load = new SteadyLoad(sidecar.port, { clients: 8, every: 2, timed: false })
  const sent = () => metric(sidecar, 'upstream_split_total')
  const before = await sent()
  for (const split of ['canary=50%', 'canary=0.01%', 'canary=100%', 'stable=1% canary=99%', 'canary=10%']) {
    await sidecar.reload(block(`split ${split};`))
    if (split !== 'canary=100%') continue
    const from = await sent()
    await eventually('requests after the reload', async () => {
      const now = await sent()
      return now['track="canary"']! > from['track="canary"']! + 100
    })
    const to = await sent()
    assert.equal(to['track="stable"'], from['track="stable"'])
  }
  await sidecar.reload(block('split $http_x_track;'))
  await sidecar.reload(block(''))
  await sidecar.reload(block('split canary=10% key=$request_uri;'))
  await load.stop()
  assert.deepEqual(load.failures, [])
  assert.ok(load.answered > 300, `${load.answered}`)
  const after = await sent()
  for (const track of ['track="stable"', 'track="canary"']) assert.ok(after[track]! > before[track]!)
  const requests = (await metric(sidecar, 'upstream_requests_total'))['']!
  const all = after['track="stable"']! + after['track="canary"']!
  // Those that came while there was no split are in no track.
  assert.ok(all <= requests && all > requests / 2, `${all} of ${requests}`)
  await eventually('nothing is in progress', async () =>
    Object.values(await metric(sidecar, 'peer_in_flight')).every((count) => count === 0),
  )
})

test('threads that die take no part of a split with them', async () => {
  await using four = await letters(4)
  for (const [i, one] of four.list.entries()) one.script = { body: 'x', after: i }
  const text = config(`${servers(four, '', '', 'track=canary', 'track=canary')} split canary=30%;`, {
    top: 'worker_processes 4;',
    http: 'access_log off;',
  })
  await using sidecar = await start(text, mortal)
  await dieInTurn(sidecar)
  await eventually('nothing is in progress', async () =>
    Object.values(await metric(sidecar, 'peer_in_flight')).every((count) => count === 0),
  )
  const from = await metric(sidecar, 'upstream_split_total')
  await many(sidecar.port, 1000)
  const to = await metric(sidecar, 'upstream_split_total')
  const [stable, canary] = ['stable', 'canary'].map(
    (track) => to[`track="${track}"`]! - from[`track="${track}"`]!,
  )
  assert.equal(stable! + canary!, 1000)
  assert.ok(Math.abs(canary! - 300) < 60, `${canary}`)
})
