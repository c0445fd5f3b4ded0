import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { dial } from '../support/client.ts'
import { eventually, residentBytes } from '../support/invariants.ts'
import { type Sidecar, start } from '../support/sidecar.ts'

/* Pods come and go, and each has another address: ten thousand of them leave nothing behind. */

/** Addresses of one configuration, and how many configurations follow each other. */
const pods = 100
const generations = 100

let server: Server
let sidecar: Sidecar
/** Requests for `/hold` that wait for their answer. */
const held: Socket[] = []

/** Every address of the loopback network is a pod. */
function pod(id: number): string {
  return `127.${1 + Math.floor(id / 65_536)}.${Math.floor(id / 256) % 256}.${id % 256}`
}

/** The configuration of a generation: no address of it was in one before, and one of its tracks neither. */
function configuration(generation: number): string {
  const { port } = server.address() as AddressInfo
  const lines = Array.from({ length: pods }, (_, i) => {
    const track = i % 10 === 0 ? ` track=v${generation}` : ''
    return `server ${pod(generation * pods + i)}:${port}${track};`
  })
  return `http {
    access_log off;
    keepalive_requests 100000;
    upstream pods { zone pods 1m; least_time header; ${lines.join(' ')} }
    upstream ring { hash $request_uri consistent; ${lines.join(' ')} }
    server {
      listen 127.0.0.1:PORT;
      location / { proxy_pass http://pods; upstream_probe alive interval=1s; }
      location /ring { proxy_pass http://ring; }
    }
  }`
}

before(async () => {
  server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (head) => {
      if (head.includes('/hold')) held.push(socket)
      else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    })
  }).listen(0, '0.0.0.0')
  await once(server, 'listening')
  // Garbage that waits to be collected is no leak: it is collected several times a second.
  const collector = 'data:text/javascript,setInterval(gc,250).unref()'
  sidecar = await start(configuration(0), { env: { NODE_OPTIONS: `--expose-gc --import=${collector}` } })
})

after(async () => {
  await sidecar?.stop()
  for (const socket of held) socket.destroy()
  server?.close()
})

async function page(): Promise<string> {
  return (await fetch(`${sidecar.admin}/metrics`)).text()
}

function value(text: string, series: string): number {
  const line = text.split('\n').find((line) => line.startsWith(`${series} `))
  return Number(line?.slice(series.length))
}

/** Asks on a connection that is kept, one after the other. */
async function ask(socket: Socket, paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    await once(socket, 'data')
  }
}

/** What a page tells of: how many series of peers and groups, peers, and tracks; and how long it is. */
function contents(text: string) {
  const labels = (name: string) =>
    new Set(Array.from(text.matchAll(new RegExp(`${name}="(.*?)"`, 'g')), ([, label]) => label)).size
  const lines = text.split('\n').filter((line) => line.startsWith('evenkeel_') && !line.includes('code="'))
  return { series: lines.length, peers: labels('peer'), tracks: labels('track'), bytes: text.length }
}

/** What memory may have grown by in the end, MiB. */
const mostGrown = { heap: 4, outside: 2, resident: 48 }

type Memory = Record<keyof typeof mostGrown, number>

const kinds = ['heap', 'outside', 'resident'] as const

async function memoryNow(): Promise<Memory> {
  const text = await page()
  return {
    heap: value(text, 'nodejs_heap_size_used_bytes') / 2 ** 20,
    outside: value(text, 'nodejs_external_memory_bytes') / 2 ** 20,
    resident: (await residentBytes(sidecar.pid)) / 2 ** 20,
  }
}

/**
 * The least memory seen, MiB: what is in use once garbage has been collected. When that will be nobody can say.
 * @param enough ends the wait for it
 */
async function leastMemory(patienceMs: number, enough: (least: Memory) => boolean): Promise<Memory> {
  const least = await memoryNow()
  const end = performance.now() + patienceMs
  while (performance.now() < end && !enough(least)) {
    const now = await memoryNow()
    for (const of of kinds) least[of] = Math.min(least[of], now[of])
  }
  return least
}

test('the series of a peer that is gone stay until its last call has ended, and go then', async () => {
  const client = await dial(sidecar.port)
  await client.write('GET /hold HTTP/1.1\r\nHost: x\r\n\r\n')
  await eventually('a pod has the call', () => held.length === 1)
  await sidecar.reload(configuration(1))
  const gone = /^evenkeel_peer_in_flight\{upstream="pods",peer="127\.1\.0\.(?:\d\d?):.*/gm
  // Of a hundred peers the one with the call is left.
  const left = (await page()).match(gone) ?? []
  assert.equal(left.length, 1)
  assert.match(left[0]!, / 1$/)
  held.pop()!.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  assert.equal((await client.head()).head.start, 'HTTP/1.1 200 OK')
  client.close()
  await eventually('its series are gone', async () => (await page()).match(gone) === null)
})

test('ten thousand addresses come and go, and series and memory are those of a hundred', async () => {
  const client = connect(sidecar.port, '127.0.0.1')
  await once(client, 'connect')
  const paths = Array.from({ length: 30 }, (_, i) => (i % 3 === 0 ? `/ring/${i}` : '/'))
  const pages: ReturnType<typeof contents>[] = []
  let before: Memory | undefined
  for (let generation = 2; generation <= generations; generation++) {
    await ask(client, paths)
    await sidecar.reload(configuration(generation))
    if (generation % 5 === 0) {
      const { peers, tracks, ...size } = contents(await page())
      assert.deepEqual({ peers, tracks }, { peers: pods, tracks: 2 }, `generation ${generation}`)
      pages.push({ peers, tracks, ...size })
    }
    // Until then it warms up: slots of the zones that were never written to are no memory yet.
    if (generation === 0.4 * generations) before = await leastMemory(600, () => false)
  }
  client.destroy()
  const grown = (later: Memory, of: keyof Memory) => later[of] - before![of]
  const later = await leastMemory(15_000, (least) => kinds.every((of) => grown(least, of) < mostGrown[of]))
  for (const of of kinds) {
    console.log(`${of}: ${before![of].toFixed(1)} MiB, then ${grown(later, of).toFixed(1)} MiB more`)
    assert.ok(grown(later, of) < mostGrown[of], `${of} has grown by ${grown(later, of)} MiB`)
  }
  // An average has no sample before there is one.
  for (const what of ['series', 'bytes'] as const) {
    const all = pages.map((one) => one[what])
    assert.ok(Math.max(...all) < 1.05 * Math.min(...all), `${what}: ${all}`)
  }
})
