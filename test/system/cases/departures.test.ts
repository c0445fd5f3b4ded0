import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Backend, backend } from '../../support/backend.ts'
import { ask, type Client, dial } from '../../support/client.ts'
import { type DeafPeer, deafPeer } from '../../support/deaf-peer.ts'
import { eventually } from '../../support/invariants.ts'
import { headText } from '../../support/message.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'

/*
 * A client that goes away before its answer is whole: wherever the proxy is at then, that is a 499, and no answer of the
 * peer's nor of the proxy's.
 */

let sidecar: Sidecar
/** Begins an answer to `/body`, gives a whole one to `/whole`, and none to anything else. */
let slow: Backend
/** Refuses, so that others are tried. */
let bad: Backend
/** Has no room for another connection. */
let deaf: DeafPeer

before(async () => {
  const addresses = Array.from({ length: 8 }, (_, i) => `127.0.0.${i + 1}`)
  slow = await backend(async (x) => {
    if (x.target === '/whole') return x.reply({ body: 'whole' })
    if (x.target === '/body') {
      await x.send(headText('HTTP/1.1 200 OK', { 'Content-Length': 1 << 20 }))
      await x.send('begun')
    }
    await x.gone
  })
  bad = await backend({ status: 503 }, { host: '0.0.0.0' })
  deaf = await deafPeer({ backlog: 1 })
  await deaf.fill(2)
  sidecar = await start(`
    http {
      log_format plain '$uri $status $upstream_status $upstream_reason';
      access_log plain.log plain;
      access_log json.log json;
      upstream slow { server ${slow.address}; }
      upstream deaf { server 127.0.0.1:${deaf.port}; }
      upstream bad { ${addresses.map((host) => `server ${host}:${bad.port} max_fails=0;`).join(' ')} }
      server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://slow; }
        location /connect { proxy_pass http://deaf; }
        location /retry {
          proxy_pass http://bad;
          proxy_next_upstream http_503;
          proxy_next_upstream_budget off;
          # Drawn from nothing to this: a wait that is over before the client goes is not to be expected.
          proxy_next_upstream_backoff 1000s 1000s;
        }
      }
    }`)
})

after(async () => {
  await Promise.all([sidecar?.stop(), slow?.stop(), bad?.stop(), deaf?.[Symbol.asyncDispose]()])
})

/** Samples of `/metrics` whose series match. */
async function samples(pattern: RegExp): Promise<Record<string, number>> {
  const page = await (await fetch(`${sidecar.admin}/metrics`)).text()
  const lines = page.split('\n').filter((line) => !line.startsWith('#') && pattern.test(line))
  return Object.fromEntries(
    lines.map((line) => line.split(/ (?=\S+$)/)).map(([name, value]) => [name, Number(value)]),
  )
}

/** Requests of a group so far by the status that they ended with. */
async function answers(group: string): Promise<Record<string, number>> {
  const found = await samples(new RegExp(`^evenkeel_upstream_responses_total{upstream="${group}"`))
  return Object.fromEntries(
    Object.entries(found)
      .filter(([, value]) => value > 0)
      .map(([name, value]) => [/code="(.*?)"/.exec(name)![1]!, value]),
  )
}

async function value(series: string): Promise<number> {
  return (await samples(/^evenkeel_/))[series] ?? 0
}

interface JsonRecord {
  readonly path: string
  readonly status: number
  readonly attempts: readonly { readonly reason: string | null; readonly status: number | null }[]
}

/** The records of both logs for a path, once there are so many. */
async function records(path: string, count: number) {
  const read = async (file: string) =>
    (await readFile(join(sidecar.folder, file), 'utf8')).split('\n').filter((line) => line.includes(path))
  await eventually(`${count} records of ${path}`, async () => (await read('json.log')).length >= count)
  const json = (await read('json.log')).map((line) => JSON.parse(line) as JsonRecord)
  return { plain: await read('plain.log'), json }
}

interface Phase {
  /** Where the proxy is when the client goes. */
  readonly name: string
  readonly group: 'slow' | 'deaf' | 'bad'
  readonly path: string
  readonly request: string
  /** What the log in nginx's words says of it. */
  readonly plain: RegExp
  /** Waits until the proxy is there. @param before requests of the group before this one */
  reached(client: Client, before: number): Promise<void>
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`

const phases: readonly Phase[] = [
  {
    name: 'while the body of its request is read',
    group: 'slow',
    path: '/upload',
    request: 'POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nbegun',
    plain: /^\/upload 499 - -?$/,
    reached: (_client, before) =>
      eventually(
        'the request is read',
        async () => (await value('evenkeel_upstream_requests_total{upstream="slow"}')) === before + 1,
      ),
  },
  {
    name: 'while a peer is connected to',
    group: 'deaf',
    path: '/connect',
    request: get('/connect'),
    plain: /^\/connect 499 499 client_abort$/,
    reached: (_client, before) =>
      eventually(
        'the peer is connected to',
        async () => (await value('evenkeel_upstream_attempts_total{upstream="deaf"}')) === before + 1,
      ),
  },
  {
    name: 'while the header of the answer is waited for',
    group: 'slow',
    path: '/header',
    request: get('/header'),
    plain: /^\/header 499 499 client_abort$/,
    reached: () => eventually('the peer is asked', () => slow.busy === 1),
  },
  {
    name: 'in the middle of the answer',
    group: 'slow',
    path: '/body',
    request: get('/body'),
    // nginx's word for what was sent: the status had gone out.
    plain: /^\/body 200 200 client_abort$/,
    async reached(client) {
      await client.head()
      await client.inbox.some()
    },
  },
  {
    name: 'while a retry waits for its turn',
    group: 'bad',
    path: '/retry',
    request: get('/retry'),
    plain: /^\/retry 499 503, 503 http_503, http_503$/,
    reached: () =>
      eventually(
        'a retry waits',
        async () => (await value('evenkeel_upstream_retries_waiting{upstream="bad"}')) === 1,
      ),
  },
]

for (const { name, group, path, request, plain, reached } of phases) {
  for (const [times, how] of (['close', 'reset'] as const).entries()) {
    test(`a client that goes away ${name} is a 499 (${how})`, async () => {
      const before = await answers(group)
      const asked = await value(`evenkeel_upstream_requests_total{upstream="${group}"}`)
      const client = await dial(sidecar.port)
      await client.write(request)
      await reached(client, asked)
      client[how]()
      const logs = await records(path, times + 1)
      assert.match(logs.plain.at(-1)!, plain)
      assert.equal(logs.json.at(-1)!.status, 499)
      assert.deepEqual(await answers(group), { ...before, 499: (before['499'] ?? 0) + 1 })
      await eventually('nothing is in progress', async () => {
        const busy = await samples(/^evenkeel_(peer_in_flight|upstream_retries_waiting)/)
        return Object.values(busy).every((count) => count === 0)
      })
    })
  }
}

test('who stays has the answer of the peer, and groups were asked as often as requests have ended', async () => {
  assert.equal((await ask(sidecar.port, '/whole')).text, 'whole')
  await records('/whole', 1)
  assert.deepEqual(await answers('slow'), { 200: 1, 499: 6 })
  assert.deepEqual(await answers('deaf'), { 499: 2 })
  assert.deepEqual(await answers('bad'), { 499: 2 })
  for (const [group, count] of [
    ['slow', 7],
    ['deaf', 2],
    ['bad', 2],
  ] as const) {
    assert.equal(await value(`evenkeel_upstream_requests_total{upstream="${group}"}`), count)
    assert.equal(
      await value(`evenkeel_upstream_request_seconds_count{upstream="${group}",track="stable"}`),
      count,
    )
  }
  // None of it says anything of the peers.
  const failures = await samples(/^evenkeel_peer_failures_total{upstream="(slow|deaf)"/)
  assert.deepEqual(Object.values(failures), [0, 0])
})
