// Probes that instances ask together, over restarts, losses of Redis and ends of the program.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend } from '../../support/backend.ts'
import { ask } from '../../support/client.ts'
import { eventually } from '../../support/invariants.ts'
import { type RedisServer, redisServer } from '../../support/redis.ts'
import { relay } from '../../support/relay.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { undisturbed } from '../../support/undisturbed.ts'

let redis: RedisServer
before(async () => {
  redis = await redisServer()
})
after(() => redis.stop())
beforeEach(() => redis.command('FLUSHALL'))

/** A test of how often something is done. */
const paced = (name: string, go: () => Promise<void>) =>
  test(name, () =>
    undisturbed(async () => {
      await redis.command('FLUSHALL')
      await go()
    }),
  )

/** A peer that notes when it was probed, monotonic milliseconds. */
async function probed() {
  const at: number[] = []
  const peer = await backend(async (exchange) => {
    if (exchange.target === '/health') at.push(performance.now())
    await exchange.reply({ body: 'goods' })
  })
  const since = (moment: number) => at.filter((one) => one >= moment)
  return { peer, since, [Symbol.asyncDispose]: () => peer.stop() }
}

function config(address: string, every: number, fleet = `${redis.url} ttl=1s`): string {
  return `fleet ${fleet};
    http {
      access_log off;
      upstream u { zone u 64k; server ${address}; }
      server {
        listen 127.0.0.1:PORT;
        location / {
          proxy_pass http://u;
          upstream_probe health uri=/health interval=${every}ms timeout=200ms scope=fleet;
        }
      }
    }`
}

const instances = (count: number, text: string) =>
  Promise.all(Array.from({ length: count }, () => start(text)))

/** Asks the admin server, which answers at once whatever Redis does. */
function asked(sidecar: Sidecar, path: string): Promise<Response> {
  return fetch(sidecar.admin + path, { signal: AbortSignal.timeout(5000) })
}

async function fleetUp(sidecar: Sidecar, up: 0 | 1): Promise<boolean> {
  return (await (await asked(sidecar, '/metrics')).text()).includes(`evenkeel_fleet_up ${up}\n`)
}

/** How many job schedulers there are. */
async function schedules(): Promise<number> {
  const keys = (await redis.command('KEYS', 'evenkeel:*:repeat')) as string[]
  const counts = await Promise.all(keys.map((key) => redis.command('ZCARD', key)))
  return counts.reduce((sum: number, count) => sum + Number(count), 0)
}

/** The longest time between two that follow each other. */
function longestGap(moments: readonly number[]): number {
  return Math.max(...moments.slice(1).map((moment, i) => moment - moments[i]!))
}

paced(
  'instances that start again and again leave one schedule, and the peer is asked once an interval',
  async () => {
    await using target = await probed()
    const text = config(target.peer.address, 400)
    let all: Sidecar[] = []
    const began = performance.now()
    try {
      for (let round = 0; round < 3; round++) {
        all = await instances(2, text)
        await sleep(800)
        assert.equal(await schedules(), 1)
        // In good order, and not.
        if (round < 2) {
          all[0]!.signal('SIGTERM')
          all[1]!.signal(round === 0 ? 'SIGTERM' : 'SIGKILL')
          await Promise.all(all.map(({ exited }) => exited))
        }
      }
      await sleep(800)
      const from = performance.now()
      await sleep(3200)
      const count = target.since(from).length
      assert.ok(count >= 6 && count <= 9, `${count} probes in eight intervals`)
      assert.equal(await schedules(), 1)
      const ever = target.since(began).length
      const intervals = (performance.now() - began) / 400
      assert.ok(ever <= intervals + 4, `${ever} probes in ${intervals} intervals`)
    } finally {
      await Promise.all(all.map((one) => one.stop()))
    }
  },
)

paced(
  'while Redis is out of reach for seconds no probe is later than an interval, and there is no burst',
  async () => {
    await using target = await probed()
    await using way = await relay(redis.port)
    const all = await instances(2, config(target.peer.address, 500, `redis://127.0.0.1:${way.port} ttl=1s`))
    try {
      await sleep(1500)
      const from = performance.now()
      await way.refuse()
      await eventually('both miss it', async () => (await fleetUp(all[0]!, 0)) && fleetUp(all[1]!, 0))
      await sleep(4000)
      const backAt = performance.now()
      await way.heal()
      await eventually('both have it', async () => (await fleetUp(all[0]!, 1)) && fleetUp(all[1]!, 1), 5000)
      await sleep(3000)
      const probes = target.since(from)
      // The one interval that is due, and one more at most; with what a busy machine adds.
      assert.ok(longestGap(probes) <= 2 * 500 + 250, `${longestGap(probes)} ms between two probes`)
      const away = probes.filter((at) => at < backAt).length
      assert.ok(away >= 12 && away <= 22, `${away} probes by two instances in about nine intervals`)
      const last = target.since(performance.now() - 2000).length
      assert.ok(last >= 3 && last <= 5, `${last} probes in four intervals`)
      const burst = probes.filter((at) => at >= backAt && at < backAt + 500).length
      assert.ok(burst <= 4, `${burst} probes within an interval of its return`)
    } finally {
      await Promise.all(all.map((one) => one.stop()))
    }
  },
)

for (const [what, away] of [
  ['is gone', () => redis.kill()],
  ['hangs', async () => redis.pause()],
] as const) {
  test(`the program ends as it should while Redis ${what}`, async () => {
    await using target = await probed()
    const all = await instances(2, config(target.peer.address, 100))
    try {
      await sleep(500)
      await away()
      // One learns of it as it ends, and the other knows.
      await sleep(20)
      for (const [i, one] of all.entries()) {
        if (i === 1) await eventually('it misses Redis', () => fleetUp(one, 0))
        const from = performance.now()
        one.signal('SIGTERM')
        assert.deepEqual(await one.exited, { code: 0, signal: null })
        assert.ok(performance.now() - from < 3000, `${performance.now() - from} ms`)
        assert.doesNotMatch(one.stderr, /\[(alert|emerg|crit)\]|Unhandled/)
      }
    } finally {
      await redis.restart()
      await Promise.all(all.map((one) => one.stop()))
    }
  })
}

paced('a shorter interval holds at once, without what the longer one had put off', async () => {
  await using target = await probed()
  const all = await instances(2, config(target.peer.address, 4000))
  try {
    await eventually('it is asked', () => target.since(0).length > 0, 12_000)
    const from = performance.now()
    for (const one of all) await one.reload(config(target.peer.address, 800))
    await sleep(4000)
    const probes = target.since(from)
    assert.ok(probes.length >= 4 && probes.length <= 7, `${probes.length} probes in five intervals`)
    assert.ok(probes[0]! - from <= 2000, `the first after ${probes[0]! - from} ms`)
    assert.equal(await schedules(), 1)
  } finally {
    await Promise.all(all.map((one) => one.stop()))
  }
})

test('where every second connection is dropped as it opens, instances share all the same', async () => {
  await using target = await probed()
  await using way = await relay(redis.port)
  way.drops = (connection) => connection % 2 === 1
  const all = await instances(2, config(target.peer.address, 500, `redis://127.0.0.1:${way.port} ttl=1s`))
  try {
    for (let round = 0; round < 2; round++) {
      for (const one of all) await eventually('it is up', () => fleetUp(one, 1), 8000)
      const before = way.connections
      way.cut()
      for (const one of all) await eventually('it is up again', () => fleetUp(one, 1), 8000)
      await sleep(1000)
      // A few for each attempt; a loop without a pause would make hundreds.
      assert.ok(way.connections - before < 60, `${way.connections - before} connections`)
    }
    for (const one of all) assert.ok(one.stderr.split('\n').length < 20, one.stderr)
  } finally {
    await Promise.all(all.map((one) => one.stop()))
  }
})

test('instances serve where there is no Redis from the start, and are ready unless it is required', async () => {
  await using peer = await backend({ body: 'goods' })
  await using late = await redisServer()
  await late.kill()
  const free = await start(config(peer.address, 500, `${late.url} ttl=1s`))
  const bound = await start(config(peer.address, 500, `${late.url} ttl=1s required`))
  try {
    for (const one of [free, bound]) {
      assert.equal((await ask(one.port)).status, 200)
      assert.ok(await fleetUp(one, 0))
    }
    const ready = async (one: Sidecar) => (await asked(one, '/readyz')).status
    assert.deepEqual([await ready(free), await ready(bound)], [200, 503])
    await sleep(2000)
    for (const one of [free, bound]) {
      const lines = one.stderr.split('\n').filter((line) => line.includes('fleet: '))
      assert.equal(lines.length, 1, lines.join('\n'))
      assert.match(lines[0]!, /\[warn\] .* cannot be reached \(connection refused\)/)
    }
    await late.start()
    await eventually('both are ready', async () => (await ready(bound)) === 200, 5000)
    assert.equal(await ready(free), 200)
    await late.kill()
    await eventually('it is not ready any more', async () => (await ready(bound)) === 503)
    assert.equal(await ready(free), 200)
    assert.equal((await ask(bound.port)).status, 200)
  } finally {
    await Promise.all([free.stop(), bound.stop()])
  }
})
