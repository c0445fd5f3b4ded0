import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backends, type Exchange, echo, type Script } from '../support/backend.ts'
import { Client, dial } from '../support/client.ts'
import { seeded } from '../support/dice.ts'
import { lab } from '../support/invariants.ts'
import { chunk, headText } from '../support/message.ts'

/*
 * Everything at once: clients that leave at every point of a request, peers that fail at every point of an answer,
 * tunnels, event streams and reloads. Nothing of it may be left over: not a count, not a connection, not memory.
 */

/** Requests in all: `MIXED_REQUESTS=100000` takes about three minutes. */
const requests = Number(process.env['MIXED_REQUESTS'] ?? (process.env['TEST_LONG'] === '1' ? 20_000 : 1600))
const clients = 48
const mostAtOnce = 12

const seed = Number(process.env['MIXED_SEED'] ?? 20)
const dice = seeded(seed)
const below = (n: number) => Math.floor(dice() * n)

const large = Buffer.alloc(256 * 1024, 'x')

/** What becomes of an answer, drawn anew for each. */
const answers: readonly Script[] = [
  { body: 'ok' },
  { body: 'ok', after: 3 },
  { status: 503, body: 'busy' },
  { status: 404, body: 'none' },
  { body: large },
  (x) => x.reset(),
  (x) => x.end(),
  async (x) => {
    await x.send(headText('HTTP/1.1 200 OK', { 'Content-Length': large.length }))
    await x.send(large.subarray(0, 1000))
    x.reset()
  },
  async (x) => {
    await x.send(headText('HTTP/1.1 200 OK', { 'Transfer-Encoding': 'chunked' }))
    for (let i = 0; i < 3 && !x.inbox.ended; i++) await x.send(chunk(large.subarray(0, 20_000)))
    await x.send('0\r\n\r\n')
  },
  (x) => x.send('HTTP/1.1 2000 No\r\n\r\n'),
]

async function events(x: Exchange): Promise<void> {
  const type = { 'Content-Type': 'text/event-stream', 'Transfer-Encoding': 'chunked' }
  await x.send(headText('HTTP/1.1 200 OK', type))
  for (let i = 0; i < 10 && !x.inbox.ended; i++) {
    await x.send(chunk('data: x\n\n'))
    await Promise.race([sleep(3), x.gone])
  }
  await x.send('0\r\n\r\n')
}

const peer: Script = async (x) => {
  if (x.target === '/events') return events(x)
  if (x.target === '/tunnel') return echo(x)
  if (x.target === '/silent') return x.gone.then(() => {})
  const answer = answers[below(answers.length)]!
  if (typeof answer === 'function') await answer(x)
  else await x.reply(answer)
}

const handshake = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
}

/** Reads what there is for a moment. */
const readOn = (client: Client) => Promise.race([client.inbox.some(), sleep(5)])

/** What a client does before it leaves. */
const visits: readonly ((client: Client) => Promise<unknown>)[] = [
  async () => {},
  (client) => client.write('GET / HTTP/1.1\r\nHo'),
  (client) => client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf'),
  (client) => client.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe'),
  async (client) => {
    await client.write(Client.bytes(below(4) === 0 ? '/silent' : '/'))
    await sleep(below(6))
  },
  async (client) => {
    await client.write(Client.bytes('/'))
    await readOn(client)
  },
  async (client) => {
    await client.write(Client.bytes('/', { method: 'POST', body: large }))
    await readOn(client)
  },
  async (client) => {
    await client.write(Buffer.concat([Client.bytes('/'), Client.bytes('/'), Client.bytes('/')]))
    await readOn(client)
  },
  async (client) => {
    await client.write(Client.bytes('/tunnel', { headers: handshake }))
    await readOn(client)
    await client.write('hello')
    await readOn(client)
  },
  async (client) => {
    await client.write(Client.bytes('/events'))
    await readOn(client)
    await readOn(client)
  },
  // These stay for their answers.
  (client) => client.ask('/').catch(() => {}),
  (client) => client.ask('/', { method: 'POST', body: ['in ', 'pieces'] }).catch(() => {}),
  (client) => client.ask('/events').catch(() => {}),
]

/** How a client leaves. */
const ways: readonly ((client: Client) => void)[] = [
  (client) => client.reset(),
  (client) => client.close(),
  (client) => client.end(),
]

async function visit(port: number): Promise<void> {
  const client = await dial(port)
  await visits[below(visits.length)]!(client)
  ways[below(ways.length)]!(client)
  await Promise.race([client.closed, sleep(2)])
  client.close()
}

test(`${requests} clients leave, peers fail and configurations change at every point, and nothing is left over`, async () => {
  console.log(`seed ${seed}`)
  await using three = await backends([peer, peer, peer])
  const [a, b, c] = three.list as [Backend, Backend, Backend]
  const server = ({ address }: Backend) => `server ${address} max_conns=${mostAtOnce} max_fails=0;`
  const http = `upstream peers { zone peers 64k; least_conn; keepalive 8;
       ${server(a)} ${server(b)} }
     server { listen 127.0.0.1:PORT; client_body_timeout 500ms; client_header_timeout 500ms; proxy_read_timeout 500ms;
       location / { proxy_pass http://peers; proxy_next_upstream error timeout invalid_header http_503 non_idempotent; } }`
  const collector = 'data:text/javascript,setInterval(gc,250).unref()'
  await using front = await lab(http, three.list, {
    env: { NODE_OPTIONS: `--expose-gc --import=${collector}` },
    main: 'drain_timeout 200ms;',
  })
  const whole = await readFile(front.sidecar.file, 'utf8')
  const page = async () => (await fetch(`${front.sidecar.admin}/metrics`)).text()
  const value = (text: string, series: string) =>
    Number(new RegExp(`^${series.replace(/\W/g, '\\$&')} (\\S+)$`, 'm').exec(text)?.[1] ?? 0)

  let going = true
  const watch = (async () => {
    for (let round = 0; going; round++) {
      const inFlight = [...(await page()).matchAll(/^evenkeel_peer_in_flight\{.*\} (\S+)$/gm)].map(
        ([, count]) => Number(count),
      )
      for (const count of inFlight) assert.ok(count >= 0 && count <= mostAtOnce, `${count} in progress`)
      if (round % 4 === 0) {
        await front.sidecar.rewrite(
          round % 8 === 0 ? whole.replace(server(b), `${server(b)} ${server(c)}`) : whole,
        )
        front.sidecar.signal('SIGHUP')
      }
      await sleep(60)
    }
  })()
  watch.catch(() => {})

  /** Many visits, and what is in use once they are over, by kind. */
  const round = async (count: number) => {
    let left = count
    const one = async () => {
      while (left-- > 0) await visit(front.port)
    }
    await Promise.all(Array.from({ length: clients }, one))
    await front.idle()
    let least = Number.POSITIVE_INFINITY
    for (let i = 0; i < 8; i++) {
      least = Math.min(least, value(await page(), 'nodejs_heap_size_used_bytes'))
      await sleep(60)
    }
    const text = await page()
    return {
      heap: least / 2 ** 20,
      // The kept connections to peers are allowed for.
      descriptors:
        value(text, 'process_open_fds') - value(text, 'evenkeel_upstream_idle_connections{upstream="peers"}'),
      timers: value(text, 'nodejs_active_resources{type="Timeout"}'),
      servers: value(text, 'nodejs_active_handles{type="Server"}'),
    }
  }
  const before = await round(requests / 2)
  const later = await round(requests / 2)
  going = false
  await watch
  console.log(before, later)
  assert.ok(later.heap - before.heap < 6, `${later.heap - before.heap} MiB more`)
  assert.ok(Math.abs(later.descriptors - before.descriptors) <= 4, 'connections and files')
  assert.ok(Math.abs(later.timers - before.timers) <= 4, 'timers')
  assert.equal(later.servers, before.servers)
  const tree = await front.sidecar.json<Record<string, number>>('/status/connections/')
  assert.equal(tree['active'], 0)
  assert.equal(front.sidecar.stderr.match(/\[(?:alert|emerg|crit)\].*/)?.[0], undefined)
  await front.settle(undefined, { seen: false })
  // And it serves as before.
  for (const one of three.list) one.script = { body: 'after' }
  using client = await dial(front.port)
  for (let i = 0; i < 6; i++) assert.equal((await client.ask('/')).text, 'after')
  await front.settle(6, { seen: false })
})
