// The verdict on a canary, from real traffic: what clients never saw counts as well.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Backends, backends, type Script } from '../support/backend.ts'
import { dial } from '../support/client.ts'
import { eventually } from '../support/invariants.ts'
import { type Sidecar, start } from '../support/sidecar.ts'

interface Verdict {
  readonly verdict: string
  readonly reason: string
  readonly samples: Readonly<
    Record<'baseline' | 'canary', { attempts: number; errors: number; timed: number }>
  >
  readonly errors?: { readonly difference: number }
  readonly latency?: { readonly difference: number }
}

let peers: Backends
let sidecar: Sidecar

const ok: Script = { body: 'ok', after: 4 }
let fallible = 0
const groups = {
  equal: [ok, ok, ok],
  slow: [ok, ok, { body: 'ok', after: 12 }],
  // One of five fails.
  failing: [ok, ok, (exchange) => exchange.reply({ status: fallible++ % 5 === 0 ? 503 : 200, after: 4 })],
  broken: [ok, ok, (exchange) => exchange.reset()],
  passed: [ok, ok, { status: 500, after: 4 }],
  idle: [ok, ok, ok],
} satisfies Record<string, readonly Script[]>

before(async () => {
  peers = await backends(Object.values(groups).flat())
  let at = 0
  const upstreams = Object.entries(groups).map(([name, scripts]) => {
    const lines = scripts.map((_, i) => {
      const canary = i === scripts.length - 1
      const options = `${canary ? ' track=canary' : ''}${canary && name === 'idle' ? ' down' : ''}`
      return `server ${peers.list[at++]!.address} max_fails=0${options};`
    })
    return `upstream ${name} { zone ${name} 64k; ${lines.join(' ')} }`
  })
  const locations = Object.keys(groups).map((name) => `location /${name}/ { proxy_pass http://${name}/; }`)
  sidecar = await start(`admin 127.0.0.1:ADMIN; admin 127.0.0.1:PORT2 readonly; worker_processes 2;
http {
  access_log off;
  upstream one { zone one 64k; server ${peers.list[0]!.address}; }
  ${upstreams.join('\n  ')}
  server {
    listen 127.0.0.1:PORT;
    proxy_next_upstream error timeout http_503;
    proxy_next_upstream_budget off;
    proxy_next_upstream_backoff off;
    ${locations.join('\n    ')}
  }
}`)
})
after(async () => {
  await sidecar?.stop()
  await peers?.[Symbol.asyncDispose]()
})

/** Sends requests, eight at a time. @returns the statuses that came */
async function drive(name: string, count: number): Promise<Set<number>> {
  const statuses = new Set<number>()
  let left = count
  const client = async () => {
    const connection = await dial(sidecar.port)
    while (left-- > 0) statuses.add((await connection.ask(`/${name}/`)).status)
    connection.close()
  }
  await Promise.all(Array.from({ length: 8 }, client))
  return statuses
}

async function verdict(name: string, query = '', at = sidecar.admin): Promise<Verdict> {
  const response = await fetch(`${at}/canary/${name}${query}`)
  const text = await response.text()
  assert.equal(response.status, 200, text)
  assert.equal(response.headers.get('cache-control'), 'no-store')
  assert.doesNotMatch(text, /NaN|Infinity/)
  // The shape is the documented one.
  return JSON.parse(text) as Verdict
}

/** Waits until so many attempts of the canary have been seen: the last answer may be read before it is counted. */
async function seen(name: string, attempts: number): Promise<Verdict> {
  await eventually(
    `${attempts} attempts`,
    async () => (await verdict(name)).samples.canary.attempts >= attempts,
  )
  return verdict(name)
}

test('a canary like the others passes', async () => {
  await drive('equal', 450)
  const { verdict, reason, samples } = await seen('equal', 150)
  assert.equal(verdict, 'pass', reason)
  assert.deepEqual(
    [samples.baseline.attempts, samples.canary.attempts, samples.canary.timed],
    [300, 150, 150],
  )
})

test('a slow canary fails by its latency', async () => {
  await drive('slow', 450)
  const { verdict, reason, latency } = await seen('slow', 150)
  assert.equal(verdict, 'fail')
  assert.match(reason, /^latency: canary is \d+ % slower than stable/)
  assert.ok(latency!.difference > 30, `${latency!.difference}`)
})

test('failures that a retry has made good count against the canary, though clients saw 200', async () => {
  assert.deepEqual(await drive('failing', 450), new Set([200]))
  const { verdict, reason, samples, errors } = await seen('failing', 150)
  assert.equal(verdict, 'fail')
  assert.match(reason, /^errors: canary \d+(\.\d)? % of \d+ failed, stable 0 % of \d+/)
  const { attempts, errors: failed, timed } = samples.canary
  assert.ok(Math.abs(failed - attempts / 5) <= 1, `${failed} of ${attempts}`)
  assert.equal(timed, attempts - failed)
  assert.ok(errors!.difference > 10)
})

test('a canary that fails everything fails, though it has no time to compare', async () => {
  assert.deepEqual(await drive('broken', 450), new Set([200]))
  const { verdict, reason, samples, latency } = await seen('broken', 100)
  assert.equal(verdict, 'fail', reason)
  assert.match(reason, /^errors: canary 100 % of \d+ failed/)
  assert.deepEqual([samples.canary.errors, samples.canary.timed], [samples.canary.attempts, 0])
  assert.equal(latency, undefined)
})

test('answers of 500 that are passed on count against the canary', async () => {
  assert.deepEqual(await drive('passed', 450), new Set([200, 500]))
  const { verdict, samples } = await seen('passed', 150)
  assert.equal(verdict, 'fail')
  assert.deepEqual([samples.canary.errors, samples.baseline.errors], [150, 0])
})

test('a canary that gets nothing is inconclusive', async () => {
  await drive('idle', 300)
  await eventually('all counted', async () => (await verdict('idle')).samples.baseline.attempts === 300)
  const { verdict: word, reason, samples } = await verdict('idle')
  assert.equal(word, 'inconclusive')
  assert.equal(samples.canary.attempts, 0)
  assert.equal(reason, 'errors: canary has 0 attempts, 100 wanted; latency: canary has 0 times, 100 wanted')
})

test('a group without a canary is inconclusive, on the readonly listener too', async () => {
  const { verdict: word, reason } = await verdict('one', '', `http://127.0.0.1:${sidecar.ports['PORT2']}`)
  assert.equal(word, 'inconclusive')
  assert.match(reason, /no peer here has track "canary"; there are: stable$/)
})
