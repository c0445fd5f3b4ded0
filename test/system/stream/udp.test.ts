// Datagrams through the real program.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { decode, encode } from 'dns-packet'
import { freePort } from '../../support/free-port.ts'
import { eventually } from '../../support/invariants.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { askOnce, udpClient } from '../../support/udp-client.ts'
import { type Reply, type UdpPeer, udpPeer } from '../../support/udp-peer.ts'

/** A peer that answers each datagram with its letter and what was asked. */
const named =
  (letter: string) =>
  (reply: Reply, datagram: Buffer): void =>
    reply(Buffer.concat([Buffer.from(letter), datagram]))

interface PeerNumbers {
  readonly state: string
  readonly selected: { readonly current: number; readonly total: number }
  readonly data: { readonly sent: number; readonly received: number }
  readonly health: { readonly fails: number; readonly probes?: { readonly count: number } }
}

/** The peers of group `u`, in order. */
async function peersOf(sidecar: Sidecar): Promise<PeerNumbers[]> {
  return Object.values(await sidecar.json<Record<string, PeerNumbers>>('/status/stream/upstreams/u/peers/'))
}

const states = async (sidecar: Sidecar) => (await peersOf(sidecar)).map(({ state }) => state).join(' ')

function config(peers: readonly { readonly address: string }[], server: string, more = ''): string {
  const lines = peers.map(({ address }) => `server ${address};`).join(' ')
  return `worker_processes 2;
    stream {
      upstream u { zone u 64k; ${more} ${lines} }
      server { listen 127.0.0.1:PORT udp; proxy_pass u; ${server} }
    }`
}

/** Sessions that nothing else ends are over soon after the test. */
const quick = 'proxy_timeout 700ms;'

/** Sessions as the access log has them, complete lines alone. */
interface Session {
  readonly protocol: string
  readonly status: number
  readonly bytes: number
  readonly request_bytes: number
  readonly attempts: readonly {
    readonly peer: string
    readonly ending: string
    readonly reason: string | null
  }[]
}

const sessions = (sidecar: Sidecar): Session[] =>
  sidecar.stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Session)

test('questions of many clients are spread over peers by two threads together, and none is lost', async () => {
  await using a = await udpPeer(named('A'))
  await using b = await udpPeer(named('B'))
  await using sidecar = await start(config([a, b], 'proxy_responses 1; status_zone dns;'))
  const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => askOnce(sidecar.port, `q${i}`)))
  assert.deepEqual(
    answers.map((answer) => answer.slice(1)),
    Array.from({ length: 100 }, (_, i) => `q${i}`),
  )
  assert.deepEqual([a.came.length, b.came.length], [50, 50])
  await eventually('all are over', async () =>
    (await peersOf(sidecar)).every(({ selected }) => selected.current === 0 && selected.total === 50),
  )
  await eventually('all are in the log', () => sessions(sidecar).length === 100)
  const [first] = sessions(sidecar)
  assert.deepEqual([first?.protocol, first?.status, first?.attempts.length], ['UDP', 200, 1])
  const bytes = answers.reduce((sum, { length }) => sum + length, 0)
  const received = (await peersOf(sidecar)).reduce((sum, { data }) => sum + data.received, 0)
  assert.equal(received, bytes)
  assert.equal(
    sessions(sidecar).reduce((sum, session) => sum + session.bytes, 0),
    bytes,
  )
  const zone = await sidecar.json<{ connections: { total: number }; sessions: { success: number } }>(
    '/status/stream/server_zones/dns/',
  )
  assert.deepEqual([zone.connections.total, zone.sessions.success], [100, 100])
})

test('a thousand datagrams of one client arrive as they were sent, each by itself and in order', async () => {
  await using peer = await udpPeer((reply, datagram) => reply(datagram))
  await using sidecar = await start(config([peer], quick))
  await using client = await udpClient(sidecar.port)
  const sent = Array.from({ length: 1000 }, (_, i) =>
    Buffer.alloc(i % 61 === 0 ? 0 : (i * 7) % 1200, i % 256),
  )
  for (const [i, datagram] of sent.entries()) {
    client.send(datagram)
    if (i % 40 === 39) await eventually('they came back', () => client.came.length === i + 1)
  }
  assert.deepEqual(client.came, sent)
  assert.equal(new Set(peer.from).size, 1)
  const [numbers] = await peersOf(sidecar)
  assert.deepEqual([numbers?.selected.current, numbers?.selected.total], [1, 1])
})

test('all datagrams of a client are of one session, whichever thread has it', async () => {
  await using a = await udpPeer(named('A'))
  await using b = await udpPeer(named('B'))
  await using sidecar = await start(config([a, b], quick))
  const one = async () => {
    await using client = await udpClient(sidecar.port)
    const said = new Set<string>()
    for (let i = 0; i < 5; i++) said.add(await client.ask('x'))
    assert.equal(said.size, 1)
  }
  await Promise.all(Array.from({ length: 40 }, one))
  assert.deepEqual(
    (await peersOf(sidecar)).map(({ selected }) => selected.total),
    [20, 20],
  )
  assert.deepEqual([new Set(a.from).size, new Set(b.from).size], [20, 20])
})

test('when threads die their clients are served by others, and nothing stays counted', async () => {
  await using a = await udpPeer(named('A'))
  await using sidecar = await start(config([a], quick), { env: { EVENKEEL_TEST_FAULTS: '1' } })
  const clients = await Promise.all(Array.from({ length: 12 }, () => udpClient(sidecar.port)))
  for (let deaths = 1; deaths <= 3; deaths++) {
    for (const client of clients) assert.equal(await client.ask('x'), 'Ax')
    sidecar.signal('SIGUSR2')
    await eventually('it is replaced', async () => {
      const text = await (await fetch(`${sidecar.admin}/metrics`)).text()
      return text.includes('evenkeel_threads 2\n') && text.includes(`replaced_total ${deaths}\n`)
    })
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

test('a peer that nobody is at counts as failed, and further sessions go elsewhere', async () => {
  const port = await freePort()
  await using a = await udpPeer(named('A'))
  await using sidecar = await start(config([{ address: `127.0.0.1:${port}` }, a], 'proxy_responses 1;'))
  await using client = await udpClient(sidecar.port)
  client.send('lost')
  await eventually('it is known', async () => (await states(sidecar)) === 'unavailable up')
  for (let i = 0; i < 10; i++) assert.equal(await client.ask('x'), 'Ax')
  const [dead] = await peersOf(sidecar)
  assert.deepEqual([dead?.selected.total, dead?.health.fails], [1, 1])
  await eventually('it is in the log', () => sessions(sidecar).length === 11)
  const [first] = sessions(sidecar)
  assert.deepEqual(
    [first?.status, first?.attempts[0]?.ending, first?.attempts[0]?.reason],
    [502, 'error', 'refused'],
  )
})

test('a peer that answers nothing counts as failed once proxy_timeout is over', async () => {
  await using silent = await udpPeer()
  await using a = await udpPeer(named('A'))
  await using sidecar = await start(config([silent, a], 'proxy_responses 1; proxy_timeout 100ms;'))
  await using client = await udpClient(sidecar.port)
  client.send('lost')
  await eventually('it is known', async () => (await states(sidecar)) === 'unavailable up')
  assert.equal(await client.ask('x'), 'Ax')
  assert.equal(silent.came.join(), 'lost')
})

test('hash $remote_addr keeps a client address at its peer, whatever its port', async () => {
  const letters = ['A', 'B', 'C']
  const peers: UdpPeer[] = []
  for (const letter of letters) peers.push(await udpPeer(named(letter)))
  await using sidecar = await start(config(peers, 'proxy_responses 1;', 'hash $remote_addr;'))
  const seen = new Set<string>()
  for (let host = 1; host <= 9; host++) {
    const said = new Set<string>()
    for (let i = 0; i < 4; i++) {
      await using client = await udpClient(sidecar.port, { from: await freePort(), local: `127.0.0.${host}` })
      said.add(await client.ask(''))
    }
    assert.equal(said.size, 1, `${[...said]}`)
    for (const one of said) seen.add(one)
  }
  assert.ok(seen.size > 1, 'clients are spread')
  for (const peer of peers) await peer.close()
})

test('proxy_requests 1 balances every datagram', async () => {
  await using a = await udpPeer(named('A'))
  await using b = await udpPeer(named('B'))
  await using sidecar = await start(config([a, b], 'proxy_requests 1; proxy_responses 1;'))
  await using client = await udpClient(sidecar.port)
  let said = ''
  for (let i = 0; i < 8; i++) said += await client.ask('')
  assert.equal(said, 'ABABABAB')
})

test('a client that begins again from its port goes on with its session', async () => {
  await using a = await udpPeer(named('A'))
  await using b = await udpPeer(named('B'))
  await using sidecar = await start(config([a, b], quick))
  const from = await freePort()
  for (let i = 0; i < 3; i++) {
    await using client = await udpClient(sidecar.port, { from })
    assert.equal(await client.ask(`${i}`), `A${i}`)
  }
  await using other = await udpClient(sidecar.port)
  assert.equal(await other.ask('x'), 'Bx')
})

test('reloads under traffic lose no datagram, and move new sessions alone', async () => {
  await using a = await udpPeer(named('A'))
  await using b = await udpPeer(named('B'))
  const text = (peers: readonly UdpPeer[]) => config(peers, quick)
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
  await using sidecar = await start(`drain_timeout 10s; ${config([peer], 'proxy_responses 2;')}`)
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
  await eventually('it is out', async () => (await states(sidecar)) === 'up unhealthy')
  for (let i = 0; i < 4; i++) assert.equal(await askOnce(sidecar.port, 'x'), 'Ax')
  {
    await using _b = await udpPeer(named('B'), { port })
    await eventually('it is in', async () => (await states(sidecar)) === 'up up')
    const said = [await askOnce(sidecar.port, 'x'), await askOnce(sidecar.port, 'x')]
    assert.deepEqual(said.toSorted(), ['Ax', 'Bx'])
  }
  await eventually('it is out again', async () => (await states(sidecar)) === 'up unhealthy')
  await sidecar.logged(/is unhealthy: probe "alive" failed 2 times/)
  const [, gone] = await peersOf(sidecar)
  assert.ok(gone!.health.probes!.count > 2)
})

test('sessions of datagrams are bound, limited, weighed and written down as those of TCP', async () => {
  await using a = await udpPeer(named('A'))
  await using b = await udpPeer(named('B'))
  await using slow = await udpPeer()
  const servers = `server ${a.address}; server ${b.address};`
  await using sidecar = await start(`worker_processes 2;
    stream {
      log_format plain '$protocol $status $bytes_received $bytes_sent $upstream_addr $upstream_bytes_sent';
      access_log off;
      proxy_responses 1;
      upstream learnt { zone z1 64k; ${servers}
        sticky learn zone=s:1m create=$remote_addr lookup=$remote_addr; }
      upstream u { zone z2 64k; server ${slow.address} max_conns=2; server ${a.address} backup; }
      upstream heavy { zone z3 64k; server ${a.address} weight=3; server ${b.address}; }
      upstream quick { zone z4 64k; least_time first_byte; ${servers} }
      server { listen 127.0.0.1:PORT udp; proxy_pass learnt; }
      server { listen 127.0.0.1:PORT2 udp; proxy_pass u; proxy_timeout 700ms; }
      server { listen 127.0.0.1:PORT3 udp; proxy_pass heavy; access_log /dev/stdout plain; }
      server { listen 127.0.0.1:PORT4 udp; proxy_pass quick; }
    }`)
  const ask = async (port: number, count: number) => {
    let said = ''
    for (let i = 0; i < count; i++) said += await askOnce(port, '')
    return said
  }
  assert.match(await ask(sidecar.port, 6), /^(A{6}|B{6})$/, 'its address is known')
  await using one = await udpClient(sidecar.ports['PORT2']!)
  await using two = await udpClient(sidecar.ports['PORT2']!)
  for (const client of [one, two]) client.send('x')
  await eventually('both wait', () => slow.came.length === 2)
  assert.equal(await ask(sidecar.ports['PORT2']!, 3), 'AAA', 'the first one is full')
  assert.equal((await ask(sidecar.ports['PORT3']!, 8)).replaceAll('A', '').length, 2)
  await sidecar.logged(new RegExp(`^UDP 200 0 1 ${b.address} 0$`, 'm'))
  assert.match(await ask(sidecar.ports['PORT4']!, 8), /^[AB]{8}$/)
  const times = Object.values(
    await sidecar.json<Record<string, { health: { first_byte_time: number } }>>(
      '/status/stream/upstreams/quick/peers/',
    ),
  ).map(({ health }) => health.first_byte_time)
  assert.ok(
    times.every((time) => time > 0),
    `${times}`,
  )
  await eventually('they have failed', async () => (await states(sidecar)) === 'unavailable up')
  await sidecar.logged(
    /upstream timed out \(110: Connection timed out\), 0 of 1 answers came in time while proxying/,
  )
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
  await eventually('the other one is out', async () => (await states(sidecar)) === 'up unhealthy')
  const question = encode({ type: 'query', id: 7, questions: [{ type: 'A', name: 'shop.example' }] })
  const said = decode(Buffer.from(await askOnce(sidecar.port, question), 'latin1'))
  assert.deepEqual([said.id, said.type, said.questions?.[0]?.name], [7, 'response', 'shop.example'])
  broken = false
  await eventually('it is in', async () => (await states(sidecar)) === 'up up')
})
