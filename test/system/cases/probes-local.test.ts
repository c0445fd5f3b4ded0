// What peers on the same host tell of themselves: their accept queues, and agents beside them.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { SocketTable } from '../../../probes/socket-table.ts'
import { backend } from '../../support/backend.ts'
import { Checked, letters, probedPeers, states } from '../../support/checked.ts'
import { ask } from '../../support/client.ts'
import { freePort } from '../../support/free-port.ts'
import { eventually } from '../../support/invariants.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'

/** A peer that is a process of its own, so that it can be stopped as the system stops one. */
class PeerProcess implements AsyncDisposable {
  readonly process: ChildProcess
  readonly port: number

  constructor(port: number) {
    this.port = port
    const text = `require('node:http').createServer((q, s) => s.end('B')).listen(${port}, '127.0.0.1', () => console.log('ready'))`
    this.process = spawn(process.execPath, ['-e', text], { stdio: ['ignore', 'pipe', 'inherit'] })
    process.once('exit', () => this.process.kill('SIGKILL'))
  }

  async ready(): Promise<this> {
    await once(this.process.stdout!, 'data')
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.process.kill('SIGKILL')
    await once(this.process, 'exit')
  }
}

/** Ten clients that each send one request after another until told to stop. */
async function storm(sidecar: Sidecar, over: () => boolean): Promise<string> {
  const said = new Set<string>()
  const client = async () => {
    while (!over()) {
      const { status, text } = await ask(sidecar.port, '/')
      said.add(status === 200 ? text : `${status}`)
      await sleep(2)
    }
  }
  await Promise.all(Array.from({ length: 10 }, client))
  return [...said].sort().join(' ')
}

test('a peer that the system has stopped is out within 100 ms of its queue reaching the limit', async () => {
  // More than half of the clients, who take turns between the peers: no stall of the test can put the other one out.
  const limit = 6
  await using stopped = await new PeerProcess(await freePort()).ready()
  await using other = await backend({ body: 'A' })
  await using sidecar = await start(`http {
    access_log off;
    upstream backend { zone backend 64k; server ${other.address}; server 127.0.0.1:${stopped.port}; keepalive 0; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://backend;
      upstream_probe queue type=backlog limit=${limit} interval=10ms; } }
  }`)
  const table = new SocketTable()
  const took: number[] = []
  // A machine that is busy with other things may be late once.
  for (let round = 0; round < 3; round++) {
    await eventually('the peer is in', async () => (await states(sidecar)) === 'up up')
    const lines = sidecar.stderr.split('is unhealthy').length
    stopped.process.kill('SIGSTOP')
    let over = false
    const answers = storm(sidecar, () => over)
    while (((await table.queue('127.0.0.1', stopped.port)) ?? 0) < limit) await sleep(1)
    const full = performance.now()
    await eventually('the peer is out', () => sidecar.stderr.split('is unhealthy').length > lines)
    took.push(performance.now() - full)
    const before = (await probedPeers(sidecar))[1]!.selected.total
    await sleep(100)
    const [first, second] = await probedPeers(sidecar)
    assert.equal(second!.state, 'unhealthy')
    assert.equal(second!.selected.total, before, 'no request goes there any more')
    assert.ok(first!.selected.total > before)
    over = true
    // What had been sent to it waits, and is answered once it goes on.
    stopped.process.kill('SIGCONT')
    assert.equal(await answers, 'A B', `no request has failed\n${sidecar.stderr}`)
  }
  assert.match(sidecar.stderr, /is unhealthy: probe "queue" failed 1 time: queue \d+ of 6\n/)
  assert.ok(took.toSorted((a, b) => a - b)[1]! < 100, `${took.map(Math.round)} ms`)
})

/** Says a line to whoever connects. */
class Agent implements AsyncDisposable {
  line = 'up ready 100%'
  readonly server: Server = createServer((socket) => {
    socket.on('error', () => {})
    socket.end(`${this.line}\n`)
  })

  async listen(port: number): Promise<this> {
    await once(this.server.listen(port, '127.0.0.1'), 'listening')
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.close()
  }
}

test('an agent beside a peer takes it out, brings it back, and sets its weight and limit', async () => {
  const b = new Checked('B')
  await using first = await backend({ body: 'A' })
  await using second = await backend(b.script)
  const port = await freePort()
  await using agent = await new Agent().listen(port)
  await using sidecar = await start(`http {
    upstream other { zone z1 64k; server ${first.address}; }
    upstream backend { zone z2 64k; server ${first.address}; server ${second.address}; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://backend;
      upstream_probe orders type=agent port=${port} interval=20ms;
      upstream_probe health uri=/health interval=20ms; } }
  }`)
  await eventually('they have been asked', async () => {
    return (await probedPeers(sidecar)).every(({ health }) => health.probes.count >= 4)
  })
  assert.equal(await letters(sidecar, 4), 'ABAB')
  // One agent speaks for both peers here.
  agent.line = 'drain'
  await eventually('both are draining', async () => (await states(sidecar)) === 'draining draining')
  assert.equal(await letters(sidecar, 1), '(502)')
  assert.match(sidecar.stderr, /is draining: so says the agent of probe "orders"/)
  agent.line = 'up'
  await sleep(60)
  assert.equal(await states(sidecar), 'draining draining', 'only `ready` takes that back')
  agent.line = 'ready 50% maxconn:1'
  await eventually('both are in', async () => (await states(sidecar)) === 'up up')
  assert.equal(await letters(sidecar, 4), 'ABAB')
  interface Told {
    readonly agent?: { readonly weight: number; readonly max_conns: number }
  }
  const told = await sidecar.json<Told>(`/status/http/upstreams/backend/peers/${second.address}/evenkeel/`)
  assert.deepEqual(told.agent, { state: 'ready', weight: 0.5, max_conns: 1 })
  agent.line = 'down #disk'
  await sidecar.logged(/is down: so says the agent of probe "orders": .*disk/)
  // No other probe brings it back.
  await eventually('both are down', async () => (await states(sidecar)) === 'down down')
  agent.line = 'up'
  await eventually('both are in again', async () => (await states(sidecar)) === 'up up')
})
