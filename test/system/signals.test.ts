import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend } from '../support/backend.ts'
import { dial, webSocket } from '../support/client.ts'
import { freePort } from '../support/free-port.ts'
import { eventually } from '../support/invariants.ts'
import { launcher, start } from '../support/sidecar.ts'
import { timed } from '../support/undisturbed.ts'

/** A peer that answers after so many milliseconds as the target says: `/50`; `/ws` opens a tunnel, `/sse` streams, `/never` waits. */
function peer(): Promise<Backend> {
  return backend(async (exchange) => {
    if (exchange.target === '/ws') {
      await exchange.upgrade()
      await exchange.gone
    } else if (exchange.target === '/never') {
      await exchange.gone
    } else if (exchange.target === '/sse') {
      await exchange.send(
        'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n',
      )
      while (!exchange.inbox.ended) {
        await exchange.send('9\r\ndata: x\n\n\r\n')
        await sleep(20)
      }
    } else {
      await exchange.reply({ after: Number(exchange.target.slice(1)), body: 'answer' })
    }
  })
}

function config(peer: Backend, main = ''): string {
  return `${main}
http {
  access_log access.log combined;
  upstream u { server ${peer.address}; }
  server { listen 127.0.0.1:PORT; location / { proxy_pass http://u; proxy_buffering off; } }
}`
}

interface Count {
  good: number
  /** Responses that told the client to close. */
  last: number
  /** Responses to requests that were sent when the drain had begun, and that did not tell so. */
  kept: number
  /** Requests that got no whole answer. */
  broken: string[]
}

/** Asks over and over on kept-alive connections, and on a new one when told to close, as long as it is told to go on. */
async function keepAsking(
  port: number,
  count: Count,
  goOn: () => boolean,
  draining: () => boolean,
): Promise<void> {
  while (goOn()) {
    const client = await dial(port)
    for (;;) {
      try {
        const last = draining()
        const reply = await client.ask('/5')
        if (reply.status !== 200 || !reply.complete || reply.text !== 'answer')
          throw new Error(`${reply.status}`)
        count.good += 1
        if (reply.header('connection')?.toLowerCase() === 'close') {
          count.last += 1
          break
        }
        if (last) count.kept += 1
      } catch (error) {
        count.broken.push(String(error))
        break
      }
      await sleep(5)
    }
    client.close()
  }
}

async function refuses(port: number): Promise<boolean> {
  try {
    const client = await dial(port)
    client.close()
    return false
  } catch {
    return true
  }
}

for (const signal of ['SIGTERM', 'SIGQUIT'] as const) {
  test(
    `${signal} drains: not ready first, still accepting, then every answer is the last and nothing is cut`,
    timed(async () => {
      await using a = await peer()
      await using sidecar = await start(config(a, 'drain_delay 800ms; drain_timeout 5s;'))
      const count: Count = { good: 0, last: 0, kept: 0, broken: [] }
      // As whoever sends requests here does, they notice after a while that it is not ready, and then open no more.
      let noticedAt = Number.POSITIVE_INFINITY
      const goOn = () => performance.now() < noticedAt
      let draining = false
      const clients = Array.from({ length: 8 }, () => keepAsking(sidecar.port, count, goOn, () => draining))
      const idle = await dial(sidecar.port)
      assert.equal((await idle.ask('/0')).header('connection')?.toLowerCase(), 'keep-alive')
      const slow = await dial(sidecar.port)
      const slowReply = slow.ask('/1300')
      await eventually('clients at work', () => count.good > 50 && a.busy > 0)
      assert.equal(count.last, 0)

      const began = performance.now()
      sidecar.signal(signal)
      await eventually('not ready', async () => (await fetch(`${sidecar.admin}/readyz`)).status === 503)
      draining = true
      noticedAt = began + 600
      assert.ok(performance.now() - began < 600, 'readiness goes before the delay is over')
      // Accepting still, and saying that this is the connection's last answer.
      const late = await dial(sidecar.port)
      assert.equal((await late.ask('/0')).header('connection')?.toLowerCase(), 'close')
      assert.equal((await fetch(`${sidecar.admin}/healthz`)).status, 200)

      await Promise.all(clients)
      await eventually('no more connections', () => refuses(sidecar.port))
      assert.ok(performance.now() - began >= 790, 'it accepted for the whole delay')
      assert.equal(await idle.closed, 'fin')
      const reply = await slowReply
      assert.equal(reply.text, 'answer')
      assert.equal(reply.header('connection')?.toLowerCase(), 'close')
      assert.equal(await slow.closed, 'fin')
      assert.deepEqual(await sidecar.exited, { code: 0, signal: null })
      assert.deepEqual(count.broken, [])
      assert.equal(count.kept, 0, 'every response since says that it is the last')
      assert.ok(count.last >= 8, 'each connection was told to close')
      assert.ok(performance.now() - began < 4000, 'it did not wait for the timeout')
    }),
  )
}

test(
  'a tunnel and an endless stream last until the drain’s time is over, then end in order',
  timed(async () => {
    await using a = await peer()
    await using sidecar = await start(config(a, 'drain_timeout 600ms;'))
    const { client: tunnel, status } = await webSocket(sidecar.port, '/ws')
    assert.equal(status, 101)
    const stream = await dial(sidecar.port)
    await stream.write('GET /sse HTTP/1.1\r\nHost: x\r\n\r\n')
    await stream.head()
    const began = performance.now()
    sidecar.signal('SIGTERM')
    await sleep(300)
    assert.equal(tunnel.inbox.ended, undefined)
    assert.equal(stream.inbox.ended, undefined)
    const bytes = stream.inbox.total
    await eventually('the stream goes on', () => stream.inbox.total > bytes)
    assert.equal(await tunnel.closed, 'fin')
    assert.ok(performance.now() - began >= 550)
    assert.equal(tunnel.inbox.unread.length, 0, 'nothing was put into the tunnel')
    const ws = a.requests.find((request) => request.target === '/ws')!
    assert.equal(await ws.gone, 'fin')
    tunnel.close()
    await stream.closed
    assert.deepEqual(await sidecar.exited, { code: 0, signal: null })
    assert.ok(performance.now() - began < 2000)
  }),
)

for (const [signal, after] of [
  ['SIGTERM', 0],
  // By now the drain waits for nothing but the tunnel.
  ['SIGTERM', 300],
  ['SIGQUIT', 0],
  ['SIGINT', 0],
] as const) {
  test(
    `a ${signal} ${after} ms into the drain ends it now`,
    timed(async () => {
      await using a = await peer()
      await using sidecar = await start(config(a))
      const { client } = await webSocket(sidecar.port, '/ws')
      sidecar.signal('SIGTERM')
      await eventually('draining', async () => (await fetch(`${sidecar.admin}/readyz`)).status === 503)
      await sleep(after)
      assert.ok(sidecar.running)
      const began = performance.now()
      sidecar.signal(signal)
      const how = await sidecar.exited
      assert.deepEqual(how, { code: 1, signal: null })
      assert.ok(performance.now() - began < 1000)
      const records = readFileSync(join(sidecar.folder, 'access.log'), 'utf8')
      assert.match(records, /\/ws/, 'the tunnel that was cut has its record')
      client.close()
    }),
  )
}

test(
  'INT stops at once, whatever is in progress',
  timed(async () => {
    await using a = await peer()
    await using sidecar = await start(config(a))
    const client = await dial(sidecar.port)
    const failed = client.ask('/never').catch(() => 'cut')
    await eventually('in progress', () => a.busy > 0)
    const began = performance.now()
    sidecar.signal('SIGINT')
    assert.deepEqual(await sidecar.exited, { code: 0, signal: null })
    assert.equal(await failed, 'cut')
    assert.ok(performance.now() - began < 1000)
  }),
)

test('USR1 reopens the log files, so that they can be rotated', async () => {
  await using a = await peer()
  await using sidecar = await start(config(a))
  const log = join(sidecar.folder, 'access.log')
  const read = (path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return ''
    }
  }
  await (await fetch(`${sidecar.url}/1`)).text()
  await eventually('logged', () => read(log).includes('/1 '))
  renameSync(log, `${log}.1`)
  await (await fetch(`${sidecar.url}/2`)).text()
  await eventually('logged in the old file', () => read(`${log}.1`).includes('/2 '))
  sidecar.signal('SIGUSR1')
  await eventually('a new file', () => {
    try {
      readFileSync(log)
      return true
    } catch {
      return false
    }
  })
  await (await fetch(`${sidecar.url}/3`)).text()
  await eventually('logged in the new file', () => read(log).includes('/3 '))
  assert.doesNotMatch(read(`${log}.1`), /\/3 /)
})

test('it outlives whoever reads its output', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'evenkeel-pipe-'))
  const port = await freePort()
  const file = join(folder, 'evenkeel.conf')
  writeFileSync(
    file,
    `admin off; http { server { listen 127.0.0.1:${port}; location / { return 200 "ok"; } location /bad { proxy_pass http://127.0.0.1:1; } } }`,
  )
  const child = spawn(launcher, ['-c', file], { stdio: ['ignore', 'pipe', 'pipe'] })
  await eventually(
    'listening',
    () =>
      fetch(`http://127.0.0.1:${port}/`).then(
        () => true,
        () => false,
      ),
    10_000,
  )
  child.stdout.destroy()
  child.stderr.destroy()
  for (let i = 0; i < 20; i++) {
    assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 200)
    assert.equal((await fetch(`http://127.0.0.1:${port}/bad`)).status, 502)
  }
  assert.equal(child.exitCode, null)
  child.kill('SIGTERM')
  const [code] = await once(child, 'exit')
  assert.equal(code, 0)
  await rm(folder, { recursive: true })
})
