// Active checks: peers that probes take out and bring back, under the real program.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend, type Exchange } from '../../support/backend.ts'
import { Checked, letters, probedPeers, states } from '../../support/checked.ts'
import { at, peers } from '../../support/configured.ts'
import { eventually } from '../../support/invariants.ts'
import { seed } from '../../support/seed.ts'
import { start } from '../../support/sidecar.ts'

/** The guide's example, where a test wants it with another interval, so that it need not wait. */
async function example(interval = '5s'): Promise<string> {
  const text = await seed('active-checks', at)
  return `http { ${text.replace('listen 80;', 'listen 127.0.0.1:PORT;').replace('5s', interval)} }`
}

/** Two peers at the addresses of the guide. */
async function two() {
  const both = await peers(2)
  const checked = [new Checked('A'), new Checked('B')] as const
  for (const [i, { script }] of checked.entries()) both.list[i]!.script = script
  return { both, a: checked[0], b: checked[1] }
}

test('three checks in a row that fail take a peer out, and two that pass bring it back', async () => {
  const { both, a, b } = await two()
  await using _ = both
  b.held = true
  await using sidecar = await start(await example('60ms'))
  assert.equal(await letters(sidecar, 4), 'ABAB')
  const after: string[] = []
  for (const [i, status] of [503, 503, 200, 503, 503, 503, 200, 404, 200, 200].entries()) {
    await b.answer(status)
    await eventually('the result counts', async () => {
      return (await probedPeers(sidecar))[1]!.health.probes.count === i + 1
    })
    after.push((await states(sidecar)).split(' ')[1]!)
    if (i === 5) assert.equal(await letters(sidecar, 4), 'AAAA')
  }
  const [up, out] = ['up', 'unhealthy']
  assert.deepEqual(after, [up, up, up, up, up, out, out, out, out, up])
  assert.match(
    sidecar.stderr,
    /\[warn\] \S+ peer 127\.0\.0\.2:\d+ of upstream "backend" is unhealthy: probe "backend_probe" failed 3 times: status 503\n/,
  )
  assert.match(
    sidecar.stderr,
    /peer 127\.0\.0\.2:\d+ of upstream "backend" is healthy: probe "backend_probe" passed 2 times/,
  )
  assert.equal(sidecar.stderr.split('\n').filter((line) => line.includes(' is ')).length, 2)
  await eventually('it answers again', async () => (await letters(sidecar, 2)).includes('B'))
  assert.ok(a.probes > 0)
  const asked = both.list[0]!.requests.find(({ target }) => target === '/health')!
  assert.equal(asked.method, 'GET')
  assert.equal(asked.head.header('host'), 'backend')
  const fields = await sidecar.json<{ text: string }>('/explain/backend')
  assert.match(
    fields.text,
    /http probe backend_probe: passed \d+ in a row, 2 bring it back; [\d.]+ s ago: status 200/,
  )
})

test("the guide's example runs as it is written", async () => {
  const { both } = await two()
  await using _ = both
  await using sidecar = await start(await example())
  assert.equal(await letters(sidecar, 4), 'ABAB')
  interface Explained {
    readonly peers: readonly {
      readonly probes: readonly { probe: string; interval: number; next: number }[]
    }[]
  }
  for (const { probes } of (await sidecar.json<Explained>('/explain/backend')).peers) {
    const [{ probe, interval, next } = { probe: '', interval: 0, next: -1 }] = probes
    assert.deepEqual([probes.length, probe, interval], [1, 'backend_probe', 5000])
    assert.ok(next >= 0 && next <= 5000, `${next}`)
  }
})

test('without a test 500 and 503 pass, unless the location lists them, and nobody there never passes', async () => {
  await using failing = await backend({ status: 503 })
  await using broken = await backend({ status: 500 })
  await using sidecar = await start(`http {
    upstream passed { zone z1 64k; server ${failing.address}; server ${broken.address}; }
    upstream listed { zone z2 64k; server ${failing.address}; server ${broken.address}; server 127.0.0.1:PORT2; }
    server { listen 127.0.0.1:PORT;
      location /passed { proxy_pass http://passed; upstream_probe a interval=30ms; }
      location /listed { proxy_pass http://listed; proxy_next_upstream http_503; upstream_probe a interval=30ms; }
    }
  }`)
  await eventually('all have been asked often', async () => {
    const all = [...(await probedPeers(sidecar, 'passed')), ...(await probedPeers(sidecar, 'listed'))]
    return all.every(({ health }) => health.probes.count >= 3)
  })
  assert.equal(await states(sidecar, 'passed'), 'up up')
  assert.equal(await states(sidecar, 'listed'), 'unhealthy up unhealthy')
  assert.match(
    sidecar.stderr,
    /of upstream "listed" is unhealthy: probe "a" failed 1 time: connect ECONNREFUSED/,
  )
})

test('two groups that share a peer each have their own opinion of it', async () => {
  await using shared = await backend((exchange) =>
    exchange.reply({ status: exchange.target === '/fail' ? 500 : 200, body: 'A' }),
  )
  const location = (
    name: string,
  ) => `location /${name} { proxy_pass http://${name}; proxy_next_upstream http_500;
    upstream_probe check uri=/${name} interval=20ms; }`
  await using sidecar = await start(`http {
    upstream ok { zone z1 64k; server ${shared.address}; }
    upstream fail { zone z2 64k; server ${shared.address}; }
    server { listen 127.0.0.1:PORT; ${location('ok')} ${location('fail')} }
  }`)
  await sidecar.logged(/of upstream "fail" is unhealthy/)
  await eventually(
    'the other has been asked',
    async () => (await probedPeers(sidecar, 'ok'))[0]!.health.probes.count >= 2,
  )
  assert.equal(await states(sidecar, 'ok'), 'up')
  assert.equal(await letters(sidecar, 1, '/ok'), 'A')
  // The only one of its group, and yet it is out.
  assert.equal(await states(sidecar, 'fail'), 'unhealthy')
  assert.equal(await letters(sidecar, 1, '/fail'), '(502)')
})

test('of a body without end no more is read than was asked for, and the test sees what was read', async () => {
  let written = 0
  let cut = 0
  await using endless = await backend(async (exchange) => {
    await exchange.send('HTTP/1.1 200 OK\r\n\r\nready')
    const piece = 'x'.repeat(65_536)
    while (!exchange.socket.destroyed && written < 2 ** 30) {
      await exchange.send(piece)
      written += piece.length
    }
    cut += 1
  })
  await using sidecar = await start(`http {
    map $upstream_probe_body $ready { ~^readyx+$ 1; }
    upstream backend { zone backend 64k; server ${endless.address}; }
    server { listen 127.0.0.1:PORT;
      location / { proxy_pass http://backend; upstream_probe body test=$ready max_body=4k interval=300ms essential; } }
  }`)
  await sidecar.logged(/is healthy: probe "body" passed 1 time/)
  await eventually('the connection is closed', () => cut >= 1)
  // The kernel takes some megabytes on both sides before a sender has to wait.
  assert.ok(written < 64 * 2 ** 20, `${written}`)
})

test('a probe that is slower than its interval is one at a time, and keeps nobody else waiting', async () => {
  const { both, a, b } = await two()
  await using _ = both
  b.held = true
  await using sidecar = await start((await example('30ms')).replace('test=$good', 'test=$good timeout=400ms'))
  await eventually(
    'the slow one has failed',
    async () => (await probedPeers(sidecar))[1]!.health.probes.fails >= 2,
  )
  const [first, second] = await probedPeers(sidecar)
  assert.ok(first!.health.probes.count > 4 * second!.health.probes.count)
  assert.ok(b.probes <= second!.health.probes.count + 2, `${b.probes} ${second!.health.probes.count}`)
  assert.equal(both.list[1]!.peak, 1)
  assert.ok(a.probes >= first!.health.probes.count)
})

test('peers that clients keep busy are not asked in mode idle', async () => {
  const { both, a, b } = await two()
  await using _ = both
  const text = (await example('500ms')).replace('fails=3', 'mode=idle fails=3')
  await using sidecar = await start(text)
  const traffic = async (spanMs: number) => {
    for (const end = performance.now() + spanMs; performance.now() < end; await sleep(10)) {
      await letters(sidecar, 2)
    }
  }
  // Before its first request each of them was idle.
  await traffic(100)
  const before = a.probes + b.probes
  await traffic(1100)
  assert.equal(a.probes + b.probes, before)
  await eventually('both are asked once it is quiet', () => a.probes > 0 && b.probes > 0)
})

test('a group can be shared out by what peers tell to probes alone', async () => {
  const told = (letter: string, capacity: number) => (exchange: Exchange) => {
    const headers = exchange.target === '/health' ? { 'X-Capacity': String(capacity) } : { 'X-Capacity': '1' }
    return exchange.reply({ body: letter, headers })
  }
  await using a = await backend(told('A', 30))
  await using b = await backend(told('B', 10))
  await using sidecar = await start(`http {
    map $upstream_probe $of_probes { "" 0; default 1; }
    upstream backend { zone backend 64k; server ${a.address}; server ${b.address};
      feedback $upstream_http_x_capacity account=$of_probes; }
    server { listen 127.0.0.1:PORT;
      location / { proxy_pass http://backend; upstream_probe check uri=/health interval=20ms; } }
  }`)
  await letters(sidecar, 10)
  const share = () => sidecar.json<number>(`/status/http/upstreams/backend/peers/${a.address}/evenkeel/share`)
  await eventually('the first has three quarters', async () => Math.abs((await share()) - 0.75) < 0.01)
  const said = await letters(sidecar, 200)
  // 150 of 200 are expected; five standard deviations are 31.
  const first = said.split('A').length - 1
  assert.ok(first > 119 && first < 181, `${first}`)
  assert.ok(Math.abs((await share()) - 0.75) < 0.01, 'what clients were told changes nothing')
})
