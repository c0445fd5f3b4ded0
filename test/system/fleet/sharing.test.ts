// What instances learn from each other of the same peers: times, failures, stuck work, and the retries they may have.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, type Backends, backends, type Exchange } from '../../support/backend.ts'
import { ask, dial } from '../../support/client.ts'
import { type Instances, instances, sharedGroup, sharedPeer, Visitors } from '../../support/instances.ts'
import { eventually } from '../../support/invariants.ts'
import { type RedisServer, redisServer } from '../../support/redis.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { Watcher } from '../../support/undisturbed.ts'

/*
 * One fleet for all: two instances, later a third one that is configured in YAML, and one of another group beside them.
 * All of them have two threads, so that what is shared reaches all threads.
 */

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0)

let redis: RedisServer
let peers: Backends
let fleet: Instances
/** Of another group. */
let alone: Sidecar
before(async () => {
  redis = await redisServer()
  peers = await backends([
    { body: 'fast', after: 5 },
    { body: 'slow', after: 50 },
    { status: 503 },
    { status: 503 },
    fallible,
    fallible,
    { body: 'ok' },
  ])
  fleet = await instances(2, config('shop'), { group: 'times' })
})
after(async () => {
  await fleet?.[Symbol.asyncDispose]()
  await alone?.stop()
  await peers?.[Symbol.asyncDispose]()
  await redis?.stop()
})

/** Fails where it is asked to. */
async function fallible(exchange: Exchange): Promise<void> {
  await exchange.reply(exchange.target.includes('?fail') ? { status: 503 } : { body: 'works' })
}

const at = (index: number): Backend => peers.list[index]!
const interval = 200

function config(group: string): string {
  const servers = (...indices: number[]) => indices.map((i) => `server ${at(i).address};`).join(' ')
  return `fleet ${redis.url} group=${group} interval=${interval}ms ttl=2s;
worker_processes 2;
http {
  access_log off;
  upstream times { zone times 64k; least_time header; ${servers(0, 1)} }
  upstream budget { zone budget 64k; server ${at(2).address} max_fails=0; server ${at(3).address} max_fails=0; }
  upstream one { zone one 64k; server ${at(4).address} fail_timeout=20s; server ${at(6).address}; }
  upstream seen { zone seen 64k; server ${at(5).address} fail_timeout=20s; server ${at(6).address}; }
  upstream own { zone own 64k; fleet off; ${servers(0, 6)} }
  proxy_next_upstream error timeout http_503;
  server { listen 127.0.0.1:PORT;
    location /times { proxy_pass http://times; }
    location /budget { proxy_pass http://budget; proxy_next_upstream_budget 10% min=1 window=10s; }
    location /one { proxy_pass http://one; }
    location /seen { proxy_pass http://seen; }
    location /own { proxy_pass http://own; } }
}`
}

function yaml(group: string): string {
  const two = (i: number, j: number) => `[{ address: '${at(i).address}' }, { address: '${at(j).address}' }]`
  const free = (i: number) => `{ address: '${at(i).address}', max_fails: 0 }`
  const late = (i: number) => `[{ address: '${at(i).address}', fail_timeout: 20s }, '${at(6).address}']`
  return `admin: 127.0.0.1:ADMIN
fleet: { urls: ['${redis.url}'], group: ${group}, interval: ${interval}ms, ttl: 2s }
worker_processes: 2
http:
  access_log: off
  proxy_next_upstream: error timeout http_503
  upstreams:
    times: { zone: times 64k, least_time: { mode: header }, servers: ${two(0, 1)} }
    budget: { zone: budget 64k, servers: [${free(2)}, ${free(3)}] }
    one: { zone: one 64k, servers: ${late(4)} }
    seen: { zone: seen 64k, servers: ${late(5)} }
    own: { zone: own 64k, fleet: off, servers: ${two(0, 6)} }
  servers:
    - listen: 127.0.0.1:PORT
      locations:
        /times: { proxy_pass: http://times }
        /budget: { proxy_pass: http://budget, proxy_next_upstream_budget: { percent: 10, min: 1, window: 10s } }
        /one: { proxy_pass: http://one }
        /seen: { proxy_pass: http://seen }
        /own: { proxy_pass: http://own }
`
}

/** How many of a hundred requests the slow peer gets. */
async function slowOf100(one: Sidecar): Promise<number> {
  let slow = 0
  const client = await dial(one.port)
  for (let i = 0; i < 100; i++) if ((await client.ask('/times')).text === 'slow') slow += 1
  client.close()
  return slow
}

test('what two have learnt of the times of peers steers a third from its first request', async () => {
  {
    await using visitors = new Visitors(fleet.list, 4, 10, '/times')
    await sleep(1500)
    assert.deepEqual(await visitors.stop(), [])
  }
  const third = start(yaml('shop'), { file: 'evenkeel.yaml' })
  alone = await start(config('alone'))
  fleet.list.push(await third)
  const newcomer = fleet.at(2)
  const readyAt = performance.now()
  // Without what the machine is busy with something else meanwhile.
  const watcher = new Watcher()
  assert.equal((await fetch(`${newcomer.admin}/readyz`)).status, 200)
  await fleet.together('times', 3)
  const { avg, share } = (await sharedPeer(newcomer, at(1).address, 'times')).evenkeel
  assert.ok(avg > 40 && avg < 90, `it begins with ${avg} ms for the slow one`)
  assert.ok(share > 0.03 && share < 0.25, `which is to get ${share} of the requests`)
  assert.equal((await sharedPeer(alone, at(1).address, 'times')).evenkeel.share, 0.5)
  watcher.stop()
  assert.ok(performance.now() - readyAt - watcher.lost < 1000, 'within a second')
  const [first] = await Promise.all([slowOf100(newcomer), slowOf100(alone)])
  const likely = 100 * share
  assert.ok(
    first < likely + 4 * Math.sqrt(likely),
    `it got ${first} of the first 100 with a share of ${share}`,
  )
})

test('instances of another group, and upstreams that are out of it, share nothing', async () => {
  assert.equal((await sharedGroup(alone, 'times')).fleet?.members, 1)
  for (const one of fleet.list) assert.equal((await sharedGroup(one, 'times')).fleet?.members, 3)
  await eventually('it has told and heard of its own hundred', async () => {
    const { peers: known } = await sharedGroup(alone, 'times')
    return sum(Object.values(known).map((peer) => peer.fleet?.answers ?? 0)) === 100
  })
  for (const one of [...fleet.list, alone]) {
    assert.equal((await ask(one.port, '/own')).status, 200)
    const own = await sharedGroup(one, 'own')
    assert.equal(own.fleet, undefined)
    assert.ok(Object.values(own.peers).every((peer) => peer.fleet === undefined))
  }
  const keys = ((await redis.command('KEYS', '*')) as string[]).map((key) => /\{[^}]*\}/.exec(key)![0])
  const named = [...new Set(keys)].sort()
  const groups = ['budget', 'one', 'seen', 'times']
  assert.deepEqual(named, [
    ...groups.map((name) => `{alone/${name}}`),
    ...groups.map((name) => `{shop/${name}}`),
  ])
})

test('all instances together have the budget of retries, not each', async () => {
  const before = at(2).requests.length + at(3).requests.length
  await using visitors = new Visitors(fleet.list, 1, 80, '/budget')
  await sleep(3000)
  const complaints = await visitors.stop()
  const asked = sum(visitors.list.map(({ answers }) => answers))
  assert.ok(asked > 60, `${asked}`)
  assert.ok(
    complaints.every((text) => text.startsWith('503')),
    `${complaints}`,
  )
  const retries = at(2).requests.length + at(3).requests.length - before - asked
  // Ten are free and one more for every ten requests. Each might have had so many for its own: then it were twice as
  // many. Until it hears of the others each spends as if there were none: some five requests in all.
  const allowed = 10 + asked / 10
  assert.ok(retries <= allowed + 6, `${retries} retries, ${allowed} allowed`)
  assert.ok(retries >= allowed - 6, `${retries} retries, ${allowed} allowed`)
})

test('a peer that fails at one instance is set aside by all, but not by who has just seen it work', async () => {
  const [finder, idle, third] = [fleet.at(0), fleet.at(1), fleet.at(2)]
  // Everybody has heard of these peers: what was before is no news.
  await fleet.together('one')
  await fleet.together('seen')
  await using busy = new Visitors([idle], 2, 2, '/seen')
  await sleep(2 * interval)
  for (const [group, peer] of [['one', at(4)] as const, ['seen', at(5)] as const]) {
    const failed = () => peer.targets.some((target) => target === `/${group}?fail`)
    while (!failed()) await ask(finder.port, `/${group}?fail`)
    await finder.logged(new RegExp(`temporarily disabled, upstream: "${group}", peer: "${peer.address}"`))
    const heard = `peer ${peer.address} of upstream "${group}" is unavailable: another instance set it aside`
    await third.logged(new RegExp(heard), 2000)
    if (group === 'one') await idle.logged(new RegExp(heard), 2000)
    const count = peer.requests.length
    for (let i = 0; i < 6; i++) await ask(third.port, `/${group}`)
    if (group === 'seen') {
      // A busy machine may let the visitors rest for longer than six requests take.
      await eventually('it is asked on by who sees it work', () => peer.requests.length > count)
    } else {
      for (let i = 0; i < 6; i++) await ask(idle.port, `/${group}`)
      assert.equal(peer.requests.length, count, group)
    }
  }
  await sleep(2 * interval)
  assert.equal((await sharedPeer(idle, at(5).address, 'seen')).state, 'up', 'it has seen it work')
  assert.deepEqual(await busy.stop(), [])
  assert.equal((await sharedPeer(finder, at(5).address, 'seen')).state, 'unavailable')
})

test('what is stuck at one instance takes a share at the others, until it comes through', async () => {
  const peer = at(0)
  const share = async (one: Sidecar) => (await sharedPeer(one, peer.address, 'times')).evenkeel.share
  {
    await using visitors = new Visitors(fleet.list, 1, 5, '/times')
    await sleep(500)
    assert.deepEqual(await visitors.stop(), [])
  }
  const before = await share(fleet.at(1))
  let release = () => {}
  const held = new Promise<void>((go) => {
    release = go
  })
  peer.script = async (exchange) => {
    await Promise.race([held, exchange.gone])
    await exchange.reply({ body: 'fast' })
  }
  const clients = await Promise.all(Array.from({ length: 12 }, () => dial(fleet.at(0).port)))
  const replies = clients.map((client) => client.ask('/times'))
  await eventually('some are stuck', async () => {
    return ((await sharedPeer(fleet.at(1), peer.address, 'times')).fleet?.stuck ?? 0) > 2
  })
  const during = await share(fleet.at(1))
  assert.ok(during < before / 2, `a share of ${before}, then of ${during}`)
  release()
  peer.script = { body: 'fast', after: 5 }
  for (const { status } of await Promise.all(replies)) assert.equal(status, 200)
  for (const client of clients) client.close()
  await eventually('it is forgotten', async () => {
    return (await sharedPeer(fleet.at(1), peer.address, 'times')).fleet?.stuck === 0
  })
  assert.ok((await share(fleet.at(1))) > during)
})
