// What instances keep for a Redis that is away: nothing.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backends, type Exchange } from '../../support/backend.ts'
import { eventually, residentBytes } from '../../support/invariants.ts'
import { type RedisServer, redisServer } from '../../support/redis.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { SteadyLoad } from '../../support/steady-load.ts'

/** How long Redis is away, milliseconds. */
const away = process.env['TEST_LONG'] === '1' ? 20_000 : 6_000
/** What a program may grow by more than another one in that time. */
const spare = 64 * 2 ** 20

/** How many scripts the server has been asked to run. */
async function scripts(redis: RedisServer): Promise<number> {
  const stats = String(await redis.command('INFO', 'commandstats'))
  const calls = Array.from(stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g), ([, count]) => Number(count))
  return calls.reduce((sum, count) => sum + count, 0)
}

async function fleetUp(sidecar: Sidecar): Promise<boolean> {
  return (await (await fetch(`${sidecar.admin}/metrics`)).text()).includes('evenkeel_fleet_up 1\n')
}

test('nothing is kept for a Redis that hangs or is gone, however many requests come', async () => {
  const answer = (exchange: Exchange) => exchange.reply({ body: 'goods' })
  await using peers = await backends([answer, answer])
  const [first, second] = peers.list
  // So many would fill the memory of the test.
  const forgetting = setInterval(() => {
    for (const peer of peers.list) peer.requests.length = 0
  }, 100).unref()
  await using hanging = await redisServer()
  await using gone = await redisServer()
  const config = (fleet: string) => `${fleet}
    http {
      access_log off;
      upstream u {
        zone u 64k;
        least_time header;
        server ${first!.address} ${fleet && 'max_conns=100 max_conns_scope=fleet'};
        server ${second!.address};
        keepalive 8;
      }
      server {
        listen 127.0.0.1:PORT;
        location / {
          proxy_pass http://u;
          proxy_http_version 1.1;
          proxy_set_header Connection "";
          upstream_probe health uri=/health interval=100ms;
        }
      }
    }`
  await using one = await start(config(`fleet ${hanging.url} ttl=2s interval=50ms;`))
  await using two = await start(config(`fleet ${gone.url} ttl=2s interval=50ms;`))
  await using alone = await start(config(''))
  const all = [one, two, alone]
  const loads = all.map(({ port }) => new SteadyLoad(port, { clients: 2, every: 0, timed: false }))
  try {
    // Much of what a program will ever need it takes at the beginning.
    await sleep(4000)
    assert.deepEqual([await fleetUp(one), await fleetUp(two)], [true, true])
    const before = await Promise.all(all.map(({ pid }) => residentBytes(pid)))
    const from = loads.map(({ answered }) => answered)
    const ran = await scripts(hanging)
    hanging.pause()
    await gone.kill()
    await sleep(away)
    const asked = () => loads.map(({ answered }, i) => answered - from[i]!)
    // A busy machine may need longer for as many as would show something.
    await eventually('enough requests have come', () => Math.min(...asked()) > 500, 30_000)
    assert.deepEqual([await fleetUp(one), await fleetUp(two)], [false, false])
    const after = await Promise.all(all.map(({ pid }) => residentBytes(pid)))
    const grown = after.map((bytes, i) => bytes - before[i]!)
    for (const load of loads) assert.deepEqual(load.failures, [])
    for (const bytes of grown.slice(0, 2)) {
      assert.ok(bytes < Math.max(0, grown[2]!) + spare, `grown by ${grown.join(', ')}`)
    }
    hanging.resume()
    const backAt = performance.now()
    await gone.start()
    await sleep(1000)
    const counts = [(await scripts(hanging)) - ran, await scripts(gone)]
    // An interval is 50 ms, and what was under way when it hung is run now.
    const most = 2 * ((performance.now() - backAt) / 50) + 20
    for (const count of counts) assert.ok(count <= most, `${count} scripts came at once`)
  } finally {
    clearInterval(forgetting)
    await Promise.all(loads.map((load) => load.stop()))
  }
})
