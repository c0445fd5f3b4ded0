// What reloads, floods, deaths of threads and the end do to UDP sessions.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { mortal, replaced } from '../../support/dying-threads.ts'
import { eventually } from '../../support/invariants.ts'
import { start } from '../../support/sidecar.ts'
import { askOnce, udpClient } from '../../support/udp-client.ts'
import { named, quick, udpConfig } from '../../support/udp-lab.ts'
import { type UdpPeer, udpPeer } from '../../support/udp-peer.ts'

test('when threads die their clients are served by others, and nothing stays counted', async () => {
  await using a = await udpPeer(named('A'))
  await using sidecar = await start(udpConfig([a], quick), mortal)
  const clients = await Promise.all(Array.from({ length: 12 }, () => udpClient(sidecar.port)))
  for (let deaths = 1; deaths <= 3; deaths++) {
    for (const client of clients) assert.equal(await client.ask('x'), 'Ax')
    sidecar.signal('SIGUSR2')
    await replaced(sidecar, deaths, 2)
  }
  for (const client of clients) assert.equal(await client.ask('x'), 'Ax')
  for (const client of clients) await client[Symbol.asyncDispose]()
})

test('a flood from ever new ports takes half of the room, and leaves the rest to clients of TCP', async () => {
  await using a = await udpPeer(named('A'))
  await using sidecar = await start(
    `worker_processes 1;
     stream {
       server { listen 127.0.0.1:PORT udp; proxy_pass ${a.address}; proxy_timeout 1s; }
       server { listen 127.0.0.1:PORT; return "here"; }
     }`,
    { descriptors: 264 },
  )
  const clients = await Promise.all(Array.from({ length: 90 }, () => udpClient(sidecar.port)))
  for (const client of clients) client.send('x')
  const metric = async (name: string) =>
    Number(
      new RegExp(`^${name} (\\d+)$`, 'm').exec(await (await fetch(`${sidecar.admin}/metrics`)).text())![1],
    )
  await eventually('all came', async () => (await metric('evenkeel_connections_dropped_total')) === 40)
  assert.equal(a.came.length, 50)
  const socket = connect(sidecar.port, '127.0.0.1')
  assert.equal(String(await once(socket, 'data')), 'here')
  socket.destroy()
  await sidecar.logged(/50 connections are open, new ones are closed at once/)
  await eventually('their time is over', async () => (await metric('evenkeel_connections_active')) === 0)
  assert.equal(await clients[89]!.ask('y'), 'Ay')
  for (const client of clients) await client[Symbol.asyncDispose]()
})

test('reloads under traffic lose no datagram, and move new sessions alone', async () => {
  await using a = await udpPeer(named('A'))
  await using b = await udpPeer(named('B'))
  const text = (peers: readonly UdpPeer[]) => udpConfig(peers, quick)
  await using sidecar = await start(text([a]))
  await using long = await udpClient(sidecar.port)
  assert.equal(await long.ask('0'), 'A0')
  let over = false
  let asked = 0
  const asking = Array.from({ length: 4 }, async () => {
    while (!over) {
      asked += 1
      assert.match(await askOnce(sidecar.port, 'x'), /^[AB]x$/)
      assert.equal(await long.ask('y', 2000).then((said) => said.slice(1)), 'y')
    }
  })
  await sidecar.reload(text([a, b]))
  assert.equal(await long.ask('y'), 'Ay')
  await sidecar.reload(text([a, b]))
  await sidecar.reload(`drain_timeout 300ms; ${text([b])}`)
  over = true
  await Promise.all(asking)
  assert.ok(asked > 4)
  assert.equal(await askOnce(sidecar.port, 'x'), 'Bx')
  // The session with the peer that has left has as long as a drain would give it; then its client gets another.
  await eventually('it has moved', async () => (await long.ask('z', 2000)) === 'Bz')
})

test('a peer that has left answers what it was asked, while its client has another one', async () => {
  let answer: (() => void) | undefined
  await using a = await udpPeer((reply, datagram) => {
    if (String(datagram) === 'slow') answer = () => reply('late A')
    else named('A')(reply, datagram)
  })
  await using b = await udpPeer(named('B'))
  await using sidecar = await start(`drain_timeout 100ms; ${udpConfig([a], 'proxy_timeout 20s;')}`)
  await using client = await udpClient(sidecar.port)
  client.send('slow')
  await eventually('it has come', () => answer !== undefined)
  await sidecar.reload(`drain_timeout 100ms; ${udpConfig([b], quick)}`)
  await eventually('it has moved', async () => (await client.ask('x')) === 'Bx')
  answer!()
  assert.equal(String(await client.next()), 'late A')
})

test('an address of TCP and the same of UDP stand side by side, and go and come with reloads', async () => {
  await using a = await udpPeer(named('A'))
  const both = (udp: string) => `worker_processes 2;
    stream {
      server { listen 127.0.0.1:PORT; return "tcp"; }
      ${udp}
    }`
  const text = both(`server { listen 127.0.0.1:PORT udp; proxy_pass ${a.address}; proxy_responses 1; }`)
  await using sidecar = await start(text)
  assert.equal(await askOnce(sidecar.port, 'x'), 'Ax')
  await sidecar.reload(both(''))
  await assert.rejects(askOnce(sidecar.port, 'x', 100))
  await sidecar.reload(text)
  assert.equal(await askOnce(sidecar.port, 'x'), 'Ax')
})

test('the end waits for an answer that is owed, and not for a pause to end', async () => {
  let answer = () => {}
  await using peer = await udpPeer((reply, datagram) => {
    if (String(datagram) === 'now') reply('soon')
    else answer = () => reply('late')
  })
  await using sidecar = await start(`drain_timeout 10s; ${udpConfig([peer], 'proxy_responses 2;')}`)
  await using client = await udpClient(sidecar.port)
  await using idle = await udpClient(sidecar.port)
  assert.equal(await client.ask('now'), 'soon')
  answer = () => {}
  idle.send('later')
  await eventually('it came', () => peer.came.length === 2)
  sidecar.signal('SIGTERM')
  await sleep(400)
  assert.ok(sidecar.running, 'an answer is owed')
  answer()
  answer()
  assert.equal(String(await idle.next()), 'late')
  // The other client's peer owes one more, which ends with the time of the drain or with this.
  await using other = peer
  other.socket.send('2', Number(peer.from[0]!.split(':').at(-1)), '127.0.0.1')
  assert.deepEqual(await sidecar.exited, { code: 0, signal: null })
})
