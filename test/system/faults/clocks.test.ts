import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ensure } from '../../../scripts/ensure.ts'
import { backend } from '../../support/backend.ts'
import { Client, dial } from '../../support/client.ts'
import { eventually, lab } from '../../support/invariants.ts'

await ensure(['faketime'])

/** The library that stands between a program and the system's clocks; the one for programs with threads. */
function library(): string {
  // The command sets the variable for whatever it starts.
  const text = execFileSync('faketime', ['-m', 'now', 'sh', '-c', 'echo "$LD_PRELOAD"'], { encoding: 'utf8' })
  return text.trim()
}

const day = 86_400

test('the wall clock may jump by days either way: it is what logs and Date show, and decides nothing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'evenkeel-clock-'))
  const file = join(folder, 'offset')
  const jump = (seconds: number) => writeFileSync(file, `${seconds < 0 ? '' : '+'}${seconds}\n`)
  jump(0)
  const held: (() => void)[] = []
  await using good = await backend(async (x) => {
    if (x.target === '/held') await new Promise<void>((resolve) => held.push(resolve))
    await x.reply({ body: 'ok' })
  })
  await using bad = await backend((x) => x.reset())
  await using front = await lab(
    `log_format clock '$time_iso8601 $status';
     access_log clock.log clock;
     upstream up { zone up 256k; server ${good.address} max_fails=1 fail_timeout=60s slow_start=30s;
       server ${bad.address} max_fails=1 fail_timeout=60s; keepalive 4; }
     upstream probed { zone probed 256k; server ${good.address}; }
     server { listen 127.0.0.1:PORT;
       location / { proxy_pass http://up; }
       location /probed { proxy_pass http://probed; upstream_probe alive uri=/health interval=50ms; } }`,
    [],
    {
      env: {
        LD_PRELOAD: library(),
        FAKETIME_TIMESTAMP_FILE: file,
        FAKETIME_NO_CACHE: '1',
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
      },
    },
  )
  const { sidecar } = front
  using client = await dial(front.port)
  // Both have been asked, and one of them is set aside.
  for (let i = 0; i < 4; i++) assert.equal((await client.ask('/')).status, 200)
  const states = async () => Object.values(await front.peers('up')).map(({ state }) => state)
  assert.deepEqual(await states(), ['up', 'unavailable'])
  const asked = bad.requests.length
  using waiting = await dial(front.port)
  await waiting.write(Client.bytes('/held'))
  await eventually('it is asked', () => held.length === 1)
  assert.equal((await client.ask('/')).status, 200)
  const probes = () => good.requests.filter(({ target }) => target === '/health')
  const lines = () => readFileSync(join(sidecar.folder, 'clock.log'), 'latin1').trim().split('\n')

  for (const offset of [day, 0, -2 * day, 30, -30, 0]) {
    jump(offset)
    const probed = probes().length
    const { connections } = good
    const began = performance.now()
    let reply = await client.ask('/')
    // Dates are made once a second.
    const off = () => Math.abs(Date.parse(reply.header('date') ?? '') - Date.now() - offset * 1000)
    while (off() > 3000) {
      assert.ok(performance.now() - began < 3000, `${reply.header('date')} after a jump to ${offset}`)
      reply = await client.ask('/')
      assert.equal(reply.status, 200)
    }
    assert.deepEqual(await states(), ['up', 'unavailable'], `after a jump to ${offset}`)
    await eventually('probes go on', () => probes().length >= probed + 3, 2000)
    // At 20 a second, however far the clock has gone; each may be under way as it is counted.
    const most = (performance.now() - began) / 50 + 3
    assert.ok(probes().length - probed <= most, `${probes().length - probed} probes`)
    const own = probes().slice(probed).length
    assert.ok(good.connections - connections <= own, 'connections of requests were kept')
    await eventually('the log goes by it', () => {
      const at = Date.parse(lines().at(-1)!.split(' ')[0]!)
      return Math.abs(at - Date.now() - offset * 1000) < 5000
    })
  }
  assert.equal(bad.requests.length, asked, 'nobody tried again')
  // It has waited through all of it.
  assert.equal(waiting.inbox.total, 0)
  held[0]!()
  assert.equal((await waiting.reply()).status, 200)
  const metrics = await (await fetch(`${sidecar.admin}/metrics`)).text()
  assert.doesNotMatch(metrics, /^evenkeel_\w*seconds\w*(?:\{.*\})? -/m)
  await front.idle()
  jump(day)
  const began = performance.now()
  sidecar.signal('SIGTERM')
  assert.deepEqual(await sidecar.exited, { code: 0, signal: null })
  assert.ok(performance.now() - began < 3000)
  rmSync(folder, { recursive: true })
})
