// Health over instances: what a probe finds for one holds for all, and a peer is probed once for all.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend, type Exchange } from '../../support/backend.ts'
import { Instances, instances, sharedPeer, Visitors } from '../../support/instances.ts'
import { eventually } from '../../support/invariants.ts'
import { type RedisServer, redisServer } from '../../support/redis.ts'
import type { Sidecar } from '../../support/sidecar.ts'
import { timed } from '../../support/undisturbed.ts'

let redis: RedisServer
before(async () => {
  redis = await redisServer()
})
after(() => redis.stop())

/** How often instances tell each other, milliseconds, and what the way to it may take beside. */
const interval = 200
const marginMs = 100

function config(group: string, peers: readonly Backend[], probe: string, more = ''): string {
  return `fleet ${redis.url} group=${group} interval=${interval}ms; ${more}
http {
  access_log off;
  upstream u { zone u 64k; ${peers.map(({ address }) => `server ${address};`).join(' ')} }
  server { listen 127.0.0.1:PORT;
    location / { proxy_pass http://u; proxy_next_upstream error timeout http_503; upstream_probe health uri=/health ${probe}; } }
}`
}

const isProbe = ({ target }: Exchange) => target === '/health'

/** A peer whose probes fail while it is ill; its clients are served all the same. */
async function patient(body: string): Promise<{ peer: Backend; ill: boolean; foundAt: number | undefined }> {
  const state = { ill: false, foundAt: undefined as number | undefined }
  const peer = await backend(async (exchange) => {
    const fails = isProbe(exchange) && state.ill
    await exchange.reply(fails ? { status: 503 } : { body })
    if (fails) state.foundAt ??= performance.now()
  })
  return Object.assign(state, { peer })
}

async function allSay(list: readonly Sidecar[], peer: string, state: string): Promise<boolean> {
  const said = await Promise.all(list.map(async (one) => (await sharedPeer(one, peer)).state))
  return said.every((one) => one === state)
}

test(
  'a peer that one finds ill gets nothing from any within an interval, and all take it back',
  timed(async () => {
    const sick = await patient('a')
    await using a = sick.peer
    await using b = await backend({ body: 'b' })
    await using fleet = await instances(3, config('rotation', [a, b], 'interval=150ms scope=fleet passes=2'))
    await using visitors = new Visitors(fleet.list, 2, 4)
    const clients = () => a.requests.filter((exchange) => !isProbe(exchange))
    const delays: number[] = []
    for (let go = 0; go < 3; go++) {
      await eventually('all send to it', async () => allSay(fleet.list, a.address, 'up'))
      await eventually('it serves', () => performance.now() - (clients().at(-1)?.at ?? 0) < 20)
      const beganAt = performance.now()
      sick.foundAt = undefined
      sick.ill = true
      await eventually('a probe has found it', () => sick.foundAt !== undefined)
      await sleep(interval + 3 * marginMs)
      assert.ok(await allSay(fleet.list, a.address, 'unhealthy'), 'all say so')
      const last = clients().at(-1)!.at
      assert.ok(last > beganAt, 'it had been asked until then')
      delays.push(last - sick.foundAt!)
      const count = clients().length
      await sleep(50)
      assert.equal(clients().length, count, 'nobody asks it any more')
      sick.ill = false
      await eventually('it is asked again', () => clients().length > count + 10)
    }
    // One go may have met a machine that was busy with something else; the second of three has not.
    const median = delays.toSorted((x, y) => x - y)[1]!
    assert.ok(median <= interval + marginMs, `the last requests came after ${delays.map(Math.round)} ms`)
    assert.deepEqual(await visitors.stop(), [])
    const heard = fleet.list.filter(({ stderr }) => / is unhealthy: .*\bprobe "health"/.test(stderr))
    assert.equal(heard.length, 3, 'each has a line of it')
  }),
)

test(
  'a peer gets one probe an interval from one instance, three and ten, unless each is to ask for itself',
  timed(async () => {
    await using a = await backend({ body: 'a' })
    const every = 400
    const own = `upstream_probe own uri=/own interval=${every}ms scope=instance`
    const text = config('pace', [a], `interval=${every}ms scope=fleet; ${own}`)
    await using fleet = new Instances(text, {})
    for (const count of [1, 3, 10]) {
      await fleet.add(count - fleet.list.length)
      await fleet.together()
      // What newcomers ask first is not of the pace.
      await sleep(every)
      const from = a.requests.length
      const beganAt = performance.now()
      await sleep(6.5 * every)
      const intervals = (performance.now() - beganAt) / every
      const seen = a.requests.slice(from)
      const shared = seen.filter(isProbe)
      const rate = shared.length / intervals
      assert.ok(rate > 0.75 && rate < 1.25, `${count} instances: ${rate.toFixed(2)} an interval`)
      const gaps = shared.slice(1).map(({ at }, i) => at - shared[i]!.at)
      assert.ok(Math.min(...gaps) > every / 3, `${count} instances: ${gaps.map(Math.round)}`)
      const each = (seen.length - shared.length) / intervals / count
      assert.ok(each > 0.75 && each < 1.25, `${count} instances: ${each.toFixed(2)} an interval and instance`)
    }
  }),
)

test(
  'an instance whose own way to a peer is broken takes it from the others for a moment, and says so once',
  timed(async () => {
    let lost = ''
    await using a = await backend(async (exchange) => {
      const fails = isProbe(exchange) && exchange.head.header('x-pid') === lost
      await exchange.reply(fails ? { status: 503 } : { body: 'a' })
    })
    const every = 300
    const text = config('lost', [a], `interval=${every}ms scope=fleet`).replace(
      'proxy_next_upstream',
      'proxy_set_header X-Pid $pid; proxy_next_upstream',
    )
    await using fleet = await instances(3, text)
    const [healthy, , broken] = fleet.list
    await eventually('it is probed', () => a.requests.filter(isProbe).length > 3)
    await using visitors = new Visitors([healthy!], 1, 10)
    lost = String(broken!.pid)
    const line = /probe "health" of peer .* fails from here and passes at other instances; leaving it to them/
    await eventually('it says so', () => line.test(broken!.stderr), 15_000)
    await sleep(8 * every)
    await visitors.stop()
    const [visitor] = visitors.list
    const bad = visitor!.statuses.get(502) ?? 0
    assert.ok(bad < visitor!.answers / 4, `${bad} of ${visitor!.answers} failed`)
    const taken = healthy!.stderr.match(/ is unhealthy: /g)?.length ?? 0
    // Where both results come with one exchange it was never out.
    assert.ok(taken <= 1, `${taken} times`)
    assert.equal(broken!.stderr.split('\n').filter((one) => line.test(one)).length, 1)
    assert.ok(fleet.list.slice(0, 2).every(({ stderr }) => !stderr.includes('fails from here')))
  }),
)
