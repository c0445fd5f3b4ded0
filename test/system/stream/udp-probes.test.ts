import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { decode, encode } from 'dns-packet'
import { eventually } from '../../support/invariants.ts'
import { start } from '../../support/sidecar.ts'
import { askOnce } from '../../support/udp-client.ts'
import { named, streamPeers, streamStates } from '../../support/udp-lab.ts'
import { type Reply, udpPeer } from '../../support/udp-peer.ts'

test('probes over UDP take out a peer that is gone, and bring it back', async () => {
  await using a = await udpPeer(named('A'))
  let port = 0
  {
    await using b = await udpPeer(named('B'))
    port = b.port
  }
  const address = `127.0.0.1:${port}`
  await using sidecar = await start(
    `stream {
      upstream u { zone u 64k; server ${a.address}; server ${address} max_fails=0; }
      map $upstream_probe_response $good { ~^[AB]ping$ 1; }
      server { listen 127.0.0.1:PORT udp; proxy_pass u; proxy_responses 1;
        upstream_probe alive udp interval=20ms send=data:ping test=$good fails=2 passes=2; }
    }`,
  )
  await eventually('it is out', async () => (await streamStates(sidecar)) === 'up unhealthy')
  for (let i = 0; i < 4; i++) assert.equal(await askOnce(sidecar.port, 'x'), 'Ax')
  {
    await using _b = await udpPeer(named('B'), { port })
    await eventually('it is in', async () => (await streamStates(sidecar)) === 'up up')
    const said = [await askOnce(sidecar.port, 'x'), await askOnce(sidecar.port, 'x')]
    assert.deepEqual(said.toSorted(), ['Ax', 'Bx'])
  }
  await eventually('it is out again', async () => (await streamStates(sidecar)) === 'up unhealthy')
  await sidecar.logged(/is unhealthy: probe "alive" failed 2 times/)
  const [, gone] = await streamPeers(sidecar)
  assert.ok(gone!.health.probes!.count > 2)
})

test('the configuration of the guide keeps to name servers that answer', async () => {
  const text = readFileSync(new URL('../../../docs/udp.md', import.meta.url), 'utf8')
  const [, guide = ''] = /```nginx\n(.*?)```/s.exec(text) ?? []
  const answer = (reply: Reply, datagram: Buffer) => {
    const { id, questions = [] } = decode(datagram)
    reply(encode({ type: 'response', id: id ?? 0, questions }))
  }
  await using good = await udpPeer(answer)
  let broken = true
  await using bad = await udpPeer((reply, datagram) => (broken ? reply('?') : answer(reply, datagram)))
  const configuration = guide
    .replace('10.0.0.11:53', good.address)
    .replace('10.0.0.12:53', bad.address)
    .replace('listen 53', 'listen 127.0.0.1:PORT')
    .replace('interval=2s', 'interval=20ms')
    .replace('timeout=1s', 'timeout=100ms')
    .replace('upstream dns', 'upstream u')
    .replace('proxy_pass dns', 'proxy_pass u')
  await using sidecar = await start(configuration)
  await eventually('the other one is out', async () => (await streamStates(sidecar)) === 'up unhealthy')
  const question = encode({ type: 'query', id: 7, questions: [{ type: 'A', name: 'shop.example' }] })
  const said = decode(Buffer.from(await askOnce(sidecar.port, question), 'latin1'))
  assert.deepEqual([said.id, said.type, said.questions?.[0]?.name], [7, 'response', 'shop.example'])
  broken = false
  await eventually('it is in', async () => (await streamStates(sidecar)) === 'up up')
})
