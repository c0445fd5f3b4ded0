// Probes of TCP groups. Those over UDP are beside its sessions.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { RawPeer, rawPeer } from '../../support/asking.ts'
import { freePort } from '../../support/free-port.ts'
import { eventually } from '../../support/invariants.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'

interface Probed {
  readonly state: string
  readonly selected: { readonly total: number }
  readonly health: { readonly probes?: { readonly count: number; readonly fails: number } }
}

async function peersOf(sidecar: Sidecar): Promise<Probed[]> {
  return Object.values(await sidecar.json<Record<string, Probed>>('/status/stream/upstreams/u/peers/'))
}

const states = async (sidecar: Sidecar) => (await peersOf(sidecar)).map(({ state }) => state).join(' ')

/** What a client is told that says something; empty where the session ends before. */
async function hear(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let said = ''
  socket.on('data', (piece) => {
    said += piece
    socket.end()
  })
  socket.write('hello')
  await once(socket, 'close')
  return said
}

/** A peer such as a store: answers a client with its letter, and PING with what a test sets. */
class Store {
  answer = '+PONG\r\n'
  pings = 0
  readonly #letter: string

  constructor(letter: string) {
    this.#letter = letter
  }

  readonly script = (socket: Socket) => {
    socket.on('data', (piece) => {
      if (!String(piece).startsWith('PING')) return socket.write(this.#letter)
      this.pings += 1
      return socket.write(this.answer)
    })
  }
}

function config(peers: readonly string[], probe: string, main = 'worker_processes 2;'): string {
  return `${main}
    stream {
      upstream u { zone u 64k; ${peers.map((peer) => `server ${peer};`).join(' ')} }
      map $upstream_probe_response $pong { ~^.PONG 1; }
      server { listen 127.0.0.1:PORT; proxy_pass u; ${probe} }
    }`
}

test('a peer that cannot be connected to is out until it can', async () => {
  const a = new Store('A')
  await using one = await rawPeer(a.script)
  const port = await freePort()
  await using sidecar = await start(
    config([`127.0.0.1:${one.port}`, `127.0.0.1:${port}`], 'upstream_probe open interval=20ms;'),
  )
  await eventually('it is out', async () => (await states(sidecar)) === 'up unhealthy')
  assert.equal((await hear(sidecar.port)) + (await hear(sidecar.port)), 'AA')
  await sidecar.logged(/is unhealthy: probe "open" failed 1 time: connect ECONNREFUSED/)
  {
    await using _two = await new RawPeer(new Store('B').script).listen('127.0.0.1', undefined, port)
    await eventually('it is in', async () => (await states(sidecar)) === 'up up')
    const said = [await hear(sidecar.port), await hear(sidecar.port)]
    assert.deepEqual(said.toSorted(), ['A', 'B'])
  }
  await eventually('it is out again', async () => (await states(sidecar)) === 'up unhealthy')
})

test('a peer that answers wrongly is out, though it takes connections, and one that says nothing too', async () => {
  const [a, b] = [new Store('A'), new Store('B')]
  await using one = await rawPeer(a.script)
  await using two = await rawPeer(b.script)
  const peers = [one, two].map(({ port }) => `127.0.0.1:${port}`)
  await using sidecar = await start(
    config(peers, 'upstream_probe ping interval=20ms timeout=200ms fails=2 send=data:PING\\r\\n test=$pong;'),
  )
  await eventually('both were asked', () => a.pings > 2 && b.pings > 2)
  assert.equal(await states(sidecar), 'up up')
  b.answer = '-LOADING\r\n'
  await eventually('it is out', async () => (await states(sidecar)) === 'up unhealthy')
  await sidecar.logged(/probe "ping" failed 2 times: 10 bytes came, the test is empty/)
  assert.equal((await hear(sidecar.port)) + (await hear(sidecar.port)), 'AA')
  b.answer = '+PONG\r\n'
  await eventually('it is in', async () => (await states(sidecar)) === 'up up')
  a.answer = ''
  await eventually('the silent one is out', async () => (await states(sidecar)) === 'unhealthy up')
  await sidecar.logged(/probe "ping" failed 2 times: no answer in time/)
  // A group with nobody ready ends sessions at once.
  b.answer = ''
  await eventually('both are out', async () => (await states(sidecar)) === 'unhealthy unhealthy')
  assert.equal(await hear(sidecar.port), '')
})

test('an essential probe keeps a peer from clients until it has passed, and a persistent one trusts it after', async () => {
  const a = new Store('A')
  a.answer = ''
  await using one = await rawPeer(a.script)
  const peers = [`127.0.0.1:${one.port}`]
  const probe = (interval: string, more: string) =>
    `upstream_probe ping interval=${interval} timeout=100ms fails=100 send=data:PING\\n essential ${more};`
  await using sidecar = await start(config(peers, probe('20ms', '')))
  assert.equal(await states(sidecar), 'checking')
  assert.equal(await hear(sidecar.port), '')
  a.answer = '+'
  await eventually('it is in', async () => (await states(sidecar)) === 'up')
  assert.equal(await hear(sidecar.port), 'A')
  a.answer = ''
  await sidecar.reload(config(peers, probe('20ms', 'persistent')))
  assert.equal(await states(sidecar), 'up')
  assert.equal(await hear(sidecar.port), 'A')
  await sidecar.reload(config(peers, probe('20ms', '')))
  assert.equal(await states(sidecar), 'checking')
})

test('with max_response=0 a peer passes that takes what is sent', async () => {
  const a = new Store('A')
  a.answer = ''
  await using one = await rawPeer(a.script)
  await using sidecar = await start(
    config(
      [`127.0.0.1:${one.port}`],
      'upstream_probe p interval=20ms send=data:PING max_response=0 essential;',
      '',
    ),
  )
  await eventually('it is in', async () => (await states(sidecar)) === 'up')
  assert.ok(a.pings > 0)
  const [peer] = await peersOf(sidecar)
  assert.equal(peer!.health.probes!.fails, 0)
  assert.equal(peer!.selected.total, 0, 'a probe is no session')
})

test('only peers that are out are asked with mode=onfail', async () => {
  const [a, b] = [new Store('A'), new Store('B')]
  await using one = await rawPeer(a.script)
  const port = await freePort()
  await using sidecar = await start(
    config(
      [`127.0.0.1:${one.port}`, `127.0.0.1:${port}`],
      `upstream_probe open interval=20ms; upstream_probe ping interval=20ms send=data:PING mode=onfail;`,
      '',
    ),
  )
  await eventually('it is out', async () => (await states(sidecar)) === 'up unhealthy')
  await using _two = await new RawPeer(b.script).listen('127.0.0.1', undefined, port)
  await eventually('it is in', async () => (await states(sidecar)) === 'up up')
  assert.ok(b.pings > 0)
  assert.equal(a.pings, 0)
})

test('agents and health services speak for peers of TCP', async () => {
  const [a, b] = [new Store('A'), new Store('B')]
  await using one = await rawPeer(a.script)
  await using two = await rawPeer(b.script)
  let order = 'ready'
  await using agent = await rawPeer((socket) => socket.end(`${order}\n`))
  let status = 1
  const health = createHttp2Server().on('stream', (stream: ServerHttp2Stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(Buffer.from([0, 0, 0, 0, 2, 8, status]))
  })
  await once(health.listen(0, '127.0.0.1'), 'listening')
  try {
    // A TCP address is what was asked for.
    const { port } = health.address() as AddressInfo
    const probes = `upstream_probe orders type=agent port=${agent.port} interval=20ms;
      upstream_probe health type=grpc port=${port} interval=20ms;
      upstream_probe queue type=backlog limit=100 interval=20ms;`
    const peers = [one, two].map((peer) => `127.0.0.1:${peer.port}`)
    await using sidecar = await start(config(peers, probes, ''))
    assert.equal((await hear(sidecar.port)) + (await hear(sidecar.port)), 'AB')
    order = 'drain'
    await eventually('both are draining', async () => (await states(sidecar)) === 'draining draining')
    order = 'ready'
    await eventually('both are in', async () => (await states(sidecar)) === 'up up')
    status = 2
    await eventually('both are out', async () => (await states(sidecar)) === 'unhealthy unhealthy')
    await sidecar.logged(/probe "health" failed 1 time: NOT_SERVING/)
    status = 1
    await eventually('both are in again', async () => (await states(sidecar)) === 'up up')
    await sleep(60)
    assert.equal(await states(sidecar), 'up up')
  } finally {
    health.close()
  }
})
