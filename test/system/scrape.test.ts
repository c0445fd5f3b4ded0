import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { type Sidecar, start } from '../support/sidecar.ts'
import { SteadyLoad } from '../support/steady-load.ts'
import { thread } from '../support/thread.ts'
import { undisturbed } from '../support/undisturbed.ts'

/* Two hundred peers, traffic, and a Prometheus that reads everything each second. */

/** All peers, on the addresses of the loopback network; it scrapes once for each message. */
const others = `
  const { createServer } = await import('node:net')
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok'))
  })
  server.listen(0, '0.0.0.0', () => parentPort.postMessage({ port: server.address().port }))
  parentPort.on('message', async (url) => {
    const headers = { accept: 'application/openmetrics-text;version=1.0.0' }
    const begun = performance.now()
    const body = await (await fetch(url, { headers })).arrayBuffer()
    parentPort.postMessage({ ms: performance.now() - begun, bytes: body.byteLength })
  })
`

let worker: Worker
let sidecar: Sidecar

before(async () => {
  worker = thread(others, undefined)
  const [{ port }] = (await once(worker, 'message')) as [{ port: number }]
  const servers = Array.from({ length: 200 }, (_, i) => `server 127.0.1.${i + 1}:${port};`)
  sidecar = await start(`
    http {
      access_log off;
      keepalive_requests 100000;
      upstream shop { least_time header; ${servers.join(' ')} }
      server { listen 127.0.0.1:PORT; location / { proxy_pass http://shop; } }
    }`)
})

after(async () => {
  await sidecar?.stop()
  await worker?.terminate()
})

async function scrape(path: string): Promise<{ ms: number; bytes: number }> {
  worker.postMessage(sidecar.admin + path)
  const [told] = (await once(worker, 'message')) as [{ ms: number; bytes: number }]
  return told
}

for (const path of ['/metrics', '/metrics/angie']) {
  test(`the slowest requests are as fast beside a scrape each second as between two: ${path}`, async () => {
    await undisturbed(async () => {
      for (let i = 0; i < 3; i++) await scrape(path)
      await using load = new SteadyLoad(sidecar.port, { clients: 4, every: 4 })
      await sleep(500)
      const beside: number[] = []
      const between: number[] = []
      const took: number[] = []
      for (let second = 0; second < 5; second++) {
        const begun = performance.now()
        const { ms, bytes } = await scrape(path)
        await sleep(500 - ms)
        const half = performance.now()
        await sleep(500)
        took.push(ms)
        beside.push(load.p99(begun, half))
        between.push(load.p99(half, performance.now()))
        const p99 = `${beside.at(-1)!.toFixed(2)} ms, without it ${between.at(-1)!.toFixed(2)} ms`
        console.log(`${bytes} bytes in ${ms.toFixed(1)} ms; p99 ${p99}`)
      }
      await load.stop()
      assert.deepEqual(load.failures, [])
      // The middle ones: other work on the machine makes single ones slow, with a scrape as without. Where it is all the
      // time, every wait is longer. Were a scrape done at one go, those that come meanwhile would wait for most of it.
      const middle = (times: number[]) => times.toSorted((a, b) => a - b)[2]!
      const most = 2 * middle(between) + Math.max(8, middle(took) / 2)
      assert.ok(middle(beside) < most, `${beside} and ${between}, beside scrapes of ${took} ms`)
    })
  })
}

test('a scrape holds up the event loop for a moment alone', async () => {
  await undisturbed(async () => {
    // What a scrape tells is the longest delay since the one before, and with it what that one has cost.
    const longest: number[] = []
    for (let i = 0; i < 8; i++) {
      const text = await (await fetch(`${sidecar.admin}/metrics`)).text()
      const seconds = /^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(text)?.[1]
      if (i > 0) longest.push(1000 * Number(seconds))
      await sleep(200)
    }
    const middle = longest.toSorted((a, b) => a - b)[longest.length >> 1]!
    assert.ok(middle > 0 && middle < 50, `${longest.map(Math.round)} ms`)
  })
})
