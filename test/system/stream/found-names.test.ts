// Names that a `proxy_pass` of `stream` with variables comes to are looked up as sessions bring them.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { dial } from '../../support/client.ts'
import { type DnsServer, dnsServer } from '../../support/dns-server.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { tcpPeer } from '../../support/tcp-peer.ts'
import { udpClient } from '../../support/udp-client.ts'
import { named, quick } from '../../support/udp-lab.ts'
import { udpPeer } from '../../support/udp-peer.ts'
import { until } from '../../support/until.ts'

let dns: DnsServer
before(async () => {
  dns = await dnsServer()
})
after(() => dns.stop())

/** A server that goes where a map says, so that nothing of it is written in its `proxy_pass`. */
function anywhere(
  where: string,
  server = '',
  listen = '',
  block = `resolver ${dns.address} ipv6=off;`,
): string {
  return `
    worker_processes 1;
    stream {
      ${block}
      map $protocol $where { default ${where}; }
      server { listen 127.0.0.1:PORT ${listen}; proxy_pass $where; ${server} }
    }`
}

interface Told {
  readonly status: number
  readonly upstream: string | null
  readonly attempts: readonly { readonly peer: string; readonly ending: string }[]
}

/** The record of the only session, or of the last. */
async function told(sidecar: Sidecar, count = 1): Promise<Told> {
  const lines = () => sidecar.stdout.split('\n').filter((line) => line.startsWith('{'))
  await until(() => lines().length >= count)
  // The program writes a line of JSON.
  return JSON.parse(lines().at(-1)!) as Told
}

test('a session goes to the addresses of a name, one after the other, with what the client has sent already', async () => {
  const heard: string[] = []
  await using peer = await tcpPeer((session) => {
    session.socket.on('data', (bytes) => heard.push(`${bytes}`))
    void session.write('hi')
  })
  const answers = ['127.0.0.8', '127.0.0.1'].map(
    (data) => ({ type: 'A', name: 'tcp.example', ttl: 60, data }) as const,
  )
  await dns.set({ 'A tcp.example': { answers, after: 200 } })
  await using sidecar = await start(anywhere(`TCP.example:${peer.port}`))
  for (let i = 1; i <= 2; i++) {
    using client = await dial(sidecar.port)
    await client.write('early')
    assert.equal(`${await client.inbox.take(2)}`, 'hi')
    await until(() => heard.join('').length === 5 * i)
    client.end()
    await told(sidecar, i)
  }
  const { status, upstream, attempts } = await told(sidecar, 2)
  assert.deepEqual([status, upstream], [200, `stream/tcp.example:${peer.port}`])
  assert.deepEqual(
    attempts.map(({ peer, ending }) => `${peer.split(':')[0]} ${ending}`),
    ['127.0.0.8 error', '127.0.0.1 ok'],
  )
  await until(() => dns.asked('tcp.example') > 0)
  assert.equal(dns.asked('tcp.example'), 1)
  assert.doesNotMatch(await (await fetch(`${sidecar.admin}/metrics`)).text(), /tcp\.example/)
})

for (const [what, where, block, words] of [
  [
    'a name that is not there',
    'absent.example:80',
    undefined,
    /absent\.example could not be resolved \(3: Host not found\), client: /,
  ],
  [
    'a name that nobody looks up',
    'absent.example:80',
    '',
    /no resolver defined to resolve absent\.example, client: /,
  ],
  ['a name without a port', 'absent.example', undefined, /no port in upstream "absent\.example", client: /],
] as const) {
  test(`${what} ends a session, and the error log says why`, async () => {
    await using sidecar = await start(anywhere(where, '', '', block))
    using client = await dial(sidecar.port)
    await client.closed
    await sidecar.logged(words)
    assert.deepEqual(await told(sidecar), {
      ...(await told(sidecar)),
      status: 500,
      upstream: null,
      attempts: [],
    })
  })
}

test('the resolver of a server counts before that of stream, and an IP address needs none', async () => {
  await using peer = await tcpPeer((session) => void session.write('hi'))
  await dns.has('server.example', ['127.0.0.1'], 60)
  await using sidecar = await start(`
    stream {
      resolver off;
      map $server_port $where { PORT server.example:${peer.port}; PORT2 $part.1:${peer.port}; }
      map $server_port $part { default 127.0.0; }
      server { listen 127.0.0.1:PORT; resolver ${dns.address} ipv6=off; proxy_pass $where; }
      server { listen 127.0.0.1:PORT2; proxy_pass $where; }
    }`)
  for (const word of ['PORT', 'PORT2']) {
    using client = await dial(sidecar.ports[word]!)
    assert.equal(`${await client.inbox.take(2)}`, 'hi')
  }
})

test('a client that leaves while its name is looked up leaves nothing behind', async () => {
  await dns.instead('silent.example', { how: 'drop' })
  await using sidecar = await start(anywhere('silent.example:80', 'status_zone s;'))
  const active = async () => {
    const zone = await sidecar.json<{ connections: { processing: number } }>('/status/stream/server_zones/s')
    return zone.connections.processing
  }
  for (const [i, way] of (['end', 'reset'] as const).entries()) {
    const client = await dial(sidecar.port)
    await until(async () => (await active()) === 1 && dns.asked('silent.example') > 0)
    client[way]()
    const { attempts } = await told(sidecar, i + 1)
    assert.deepEqual(attempts, [])
    client.close()
  }
  await until(async () => (await active()) === 0)
})

test('datagrams wait for the name and arrive in order, as many to a session as it takes', async () => {
  await using peer = await udpPeer(named('p'))
  const answers = [{ type: 'A', name: 'udp.example', ttl: 60, data: '127.0.0.1' } as const]
  await dns.set({ 'A udp.example': { answers, after: 200 } })
  await using sidecar = await start(anywhere(`udp.example:${peer.port}`, `proxy_requests 2; ${quick}`, 'udp'))
  await using client = await udpClient(sidecar.port)
  for (const text of ['1', '2', '3']) client.send(text)
  const got = [`${await client.next()}`, `${await client.next()}`, `${await client.next()}`]
  assert.deepEqual(got.toSorted(), ['p1', 'p2', 'p3'])
})

test('datagrams to a name that is not there are lost, and the error log says why', async () => {
  await using sidecar = await start(anywhere('absent.example:53', '', 'udp'))
  await using client = await udpClient(sidecar.port)
  client.send('1')
  await sidecar.logged(/absent\.example could not be resolved \(3: Host not found\), client: /)
  assert.equal((await told(sidecar)).status, 500)
})
