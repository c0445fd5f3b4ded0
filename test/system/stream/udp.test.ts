// Datagrams through the real program, with two threads.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { freePort } from '../../support/free-port.ts'
import { eventually } from '../../support/invariants.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { askOnce, udpClient } from '../../support/udp-client.ts'
import { named, quick, streamPeers, streamStates } from '../../support/udp-lab.ts'
import { type UdpPeer, udpPeer } from '../../support/udp-peer.ts'

let a: UdpPeer
let b: UdpPeer
/** Answers nothing. */
let silent: UdpPeer
let sidecar: Sidecar

/** Its servers: the port's word stands for the group of that name. */
const words = {
  spread: 'PORT',
  long: 'PORT2',
  bound: 'PORT3',
  gone: 'PORT4',
  mute: 'PORT5',
  hashed: 'PORT6',
  each: 'PORT7',
  learnt: 'PORT8',
  full: 'PORT9',
  heavy: 'PORT10',
  timed: 'PORT11',
} as const

const port = (group: keyof typeof words) => sidecar.ports[words[group]]!

before(async () => {
  a = await udpPeer(named('A'))
  b = await udpPeer(named('B'))
  silent = await udpPeer()
  const nobody = await freePort()
  const group = (name: keyof typeof words, lines: string, server: string) => `
    upstream ${name} { zone ${name} 64k; ${lines} }
    server { listen 127.0.0.1:${words[name]} udp; proxy_pass ${name}; ${server} }`
  const two = `server ${a.address}; server ${b.address};`
  sidecar = await start(`worker_processes 2;
    stream {
      log_format plain '$protocol $status $bytes_received $bytes_sent $upstream_addr $upstream_bytes_sent';
      access_log off;
      ${group('spread', two, 'proxy_responses 1; status_zone dns; access_log /dev/stdout;')}
      ${group('long', two, quick)}
      ${group('bound', two, quick)}
      ${group('gone', `server 127.0.0.1:${nobody}; server ${a.address};`, 'proxy_responses 1;')}
      ${group('mute', `server ${silent.address}; server ${a.address};`, 'proxy_responses 1; proxy_timeout 100ms;')}
      ${group('hashed', `hash $remote_addr; ${two}`, 'proxy_responses 1;')}
      ${group('each', two, 'proxy_requests 1; proxy_responses 1;')}
      ${group('learnt', `${two} sticky learn zone=s:1m create=$remote_addr lookup=$remote_addr;`, 'proxy_responses 1;')}
      ${group('full', `server ${silent.address} max_conns=2; server ${a.address} backup;`, `proxy_responses 1; ${quick}`)}
      ${group('heavy', `server ${a.address} weight=3; server ${b.address};`, 'proxy_responses 1; access_log /dev/stdout plain;')}
      ${group('timed', `least_time first_byte; ${two}`, 'proxy_responses 1;')}
    }`)
})

after(async () => {
  await sidecar[Symbol.asyncDispose]()
  for (const peer of [a, b, silent]) await peer.close()
})

/** Asks from a new port each time, and says who answered. */
async function letters(group: keyof typeof words, count: number): Promise<string> {
  let said = ''
  for (let i = 0; i < count; i++) said += await askOnce(port(group), '')
  return said
}

/** A session as the access log has it. */
interface Logged {
  readonly protocol: string
  readonly status: number
  readonly bytes: number
  readonly attempts: readonly { readonly reason: string | null }[]
}

test('questions of many clients are spread over peers by the threads together, and none is lost', async () => {
  const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => askOnce(port('spread'), `q${i}`)))
  assert.deepEqual(
    answers.map((answer) => answer.slice(1)),
    Array.from({ length: 100 }, (_, i) => `q${i}`),
  )
  const peers = await streamPeers(sidecar, 'spread')
  assert.deepEqual(
    peers.map(({ selected }) => [selected.current, selected.total]),
    [
      [0, 50],
      [0, 50],
    ],
  )
  const bytes = answers.reduce((sum, { length }) => sum + length, 0)
  assert.equal(
    peers.reduce((sum, { data }) => sum + data.received, 0),
    bytes,
  )
  const lines = () => sidecar.stdout.split('\n').filter((line) => line.startsWith('{'))
  await eventually('all are in the log', () => lines().length === 100 && sidecar.stdout.endsWith('\n'))
  const sessions = lines().map((line) => JSON.parse(line) as Logged)
  assert.equal(
    sessions.reduce((sum, session) => sum + session.bytes, 0),
    bytes,
  )
  for (const { protocol, status, attempts } of sessions) {
    assert.deepEqual([protocol, status, attempts.length, attempts[0]?.reason], ['UDP', 200, 1, null])
  }
  const zone = await sidecar.json<{ connections: { total: number }; sessions: { success: number } }>(
    '/status/stream/server_zones/dns/',
  )
  assert.deepEqual([zone.connections.total, zone.sessions.success], [100, 100])
})

test('a thousand datagrams of one client arrive as they were sent, each by itself and in order', async () => {
  const before = a.from.length
  await using client = await udpClient(port('long'))
  const sent = Array.from({ length: 1000 }, (_, i) =>
    Buffer.alloc(i % 61 === 0 ? 0 : (i * 7) % 1200, i % 256),
  )
  for (const [i, datagram] of sent.entries()) {
    client.send(datagram)
    if (i % 40 === 39) await eventually('they came back', () => client.came.length === i + 1)
  }
  assert.deepEqual(
    client.came,
    sent.map((datagram) => Buffer.concat([Buffer.from('A'), datagram])),
  )
  // The system may have given it a port that a session before has had.
  const from = a.from.slice(before)
  assert.deepEqual([from.length, new Set(from).size], [1000, 1], 'one session is one port')
  const [numbers] = await streamPeers(sidecar, 'long')
  assert.deepEqual(numbers?.selected.total, 1)
})

test('all datagrams of a client are of one session, whichever thread has it', async () => {
  const one = async () => {
    await using client = await udpClient(port('bound'))
    const said = new Set<string>()
    for (let i = 0; i < 5; i++) said.add(await client.ask('x'))
    assert.equal(said.size, 1)
  }
  await Promise.all(Array.from({ length: 40 }, one))
  const peers = await streamPeers(sidecar, 'bound')
  assert.deepEqual(
    peers.map(({ selected }) => selected.total),
    [20, 20],
  )
})

test('a client that begins again from its port goes on with its session', async () => {
  const from = await freePort()
  const said = new Set<string>()
  for (let i = 0; i < 3; i++) {
    await using client = await udpClient(port('long'), { from })
    said.add(await client.ask(''))
  }
  assert.equal(said.size, 1)
  await using other = await udpClient(port('long'))
  assert.ok(!said.has(await other.ask('')), 'another client has another peer')
})

test('a peer that nobody is at counts as failed, and further sessions go elsewhere', async () => {
  await using client = await udpClient(port('gone'))
  client.send('lost')
  await eventually('it is known', async () => (await streamStates(sidecar, 'gone')) === 'unavailable up')
  for (let i = 0; i < 10; i++) assert.equal(await client.ask('x'), 'Ax')
  const [dead] = await streamPeers(sidecar, 'gone')
  assert.deepEqual([dead?.selected.total, dead?.health.fails], [1, 1])
  await sidecar.logged(/recv\(\) failed \(111: Connection refused\) while proxying/)
})

test('a peer that answers nothing counts as failed once proxy_timeout is over', async () => {
  await using client = await udpClient(port('mute'))
  client.send('lost')
  await eventually('it is known', async () => (await streamStates(sidecar, 'mute')) === 'unavailable up')
  assert.equal(await client.ask('x'), 'Ax')
  assert.deepEqual(silent.came, ['lost'])
  await sidecar.logged(/upstream timed out \(110: Connection timed out\), 0 of 1 answers came in time while/)
})

test('hash $remote_addr keeps a client address at its peer, whatever its port', async () => {
  const seen = new Set<string>()
  for (let host = 1; host <= 9; host++) {
    const said = new Set<string>()
    for (let i = 0; i < 4; i++) {
      await using client = await udpClient(port('hashed'), {
        from: await freePort(),
        local: `127.0.0.${host}`,
      })
      said.add(await client.ask(''))
    }
    assert.equal(said.size, 1, `${[...said]}`)
    for (const one of said) seen.add(one)
  }
  assert.equal(seen.size, 2, 'clients are spread')
})

test('proxy_requests 1 balances every datagram', async () => {
  await using client = await udpClient(port('each'))
  let said = ''
  for (let i = 0; i < 8; i++) said += await client.ask('')
  assert.equal(said, 'ABABABAB')
})

test('a session that is learnt is found again from another port', async () => {
  assert.match(await letters('learnt', 6), /^(A{6}|B{6})$/)
})

test('a peer that has as many sessions as it may gets no more', async () => {
  await using one = await udpClient(port('full'))
  await using two = await udpClient(port('full'))
  const before = silent.came.length
  for (const client of [one, two]) client.send('x')
  await eventually('both wait', () => silent.came.length === before + 2)
  assert.equal(await letters('full', 3), 'AAA')
})

test('weights hold, and a format of the log tells of sessions', async () => {
  assert.equal((await letters('heavy', 8)).replaceAll('A', ''), 'BB')
  await sidecar.logged(new RegExp(`^UDP 200 0 1 ${b.address} 0$`, 'm'))
})

test('the time to the first answer is what is learnt of peers', async () => {
  await eventually('both are measured', async () => {
    assert.match(await letters('timed', 4), /^[AB]{4}$/)
    return (await streamPeers(sidecar, 'timed')).every(({ health }) => health.first_byte_time > 0)
  })
})
