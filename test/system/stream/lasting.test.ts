import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { type Client, dial } from '../../support/client.ts'
import { deafPeer } from '../../support/deaf-peer.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { echoPeer, type TcpPeer } from '../../support/tcp-peer.ts'
import { until } from '../../support/until.ts'

/** Sessions over a reload, a drain, the end, and the death of a thread. */

async function talk(client: Client, text = 'still there?'): Promise<void> {
  await client.write(text)
  assert.equal(`${await client.inbox.take(text.length)}`, text)
}

async function opened(port: number, count: number): Promise<Client[]> {
  const clients = await Promise.all(Array.from({ length: count }, () => dial(port)))
  await Promise.all(clients.map((client) => talk(client, 'hello')))
  return clients
}

const records = ({ stdout }: Sidecar) =>
  stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    // The shape is that of the access log.
    .map(
      (line) =>
        JSON.parse(line) as {
          status: number
          denial: string | null
          attempts: { peer: string; ending: string }[]
        },
    )

for (const threads of [1, 2]) {
  test(`a reload leaves sessions alone but those of peers that it takes away: ${threads} thread(s)`, async () => {
    await using one = await echoPeer()
    await using other = await echoPeer()
    const configuration = (servers: readonly TcpPeer[], listen: string) => `
      worker_processes ${threads}; drain_timeout 400ms;
      stream {
        upstream u { zone u 64k; ${servers.map(({ address }) => `server ${address};`).join(' ')} }
        server { listen 127.0.0.1:${listen}; proxy_pass u; }
        server { listen 127.0.0.1:PORT3; return PORT2; }
      }`
    await using sidecar = await start(configuration([one, other], 'PORT'))
    const port2 = sidecar.ports['PORT2']!
    const clients = await opened(sidecar.port, 4)
    assert.deepEqual([one.open, other.open], [2, 2])
    // Another address is listened on, and nothing else has changed: the address that is gone refuses new clients only.
    await sidecar.reload(configuration([one, other], 'PORT2'))
    await assert.rejects(dial(sidecar.port))
    for (const client of clients) await talk(client)
    clients.push(...(await opened(port2, 2)))
    assert.deepEqual([one.open, other.open], [3, 3])
    const reloaded = performance.now()
    await sidecar.reload(configuration([one], 'PORT2'))
    const [late] = await opened(port2, 1)
    for (const client of clients) await talk(client)
    await until(() => clients.filter(({ inbox }) => inbox.ended !== undefined).length === 3)
    assert.ok(performance.now() - reloaded >= 395)
    assert.deepEqual(clients.map(({ inbox }) => inbox.ended).sort(), [
      'fin',
      'fin',
      'fin',
      undefined,
      undefined,
      undefined,
    ])
    await until(() => other.open === 0)
    const left = [late!, ...clients].filter(({ inbox }) => inbox.ended === undefined)
    assert.equal(left.length, 4)
    for (const client of left) await talk(client)
    for (const client of left) client.end()
    await until(() => records(sidecar).length === 7)
    assert.ok(
      records(sidecar).every(({ status, attempts }) => status === 200 && attempts[0]?.ending === 'ok'),
    )
    for (const client of clients) client.close()
  })

  test(`a drain takes no more clients, and ends the sessions that are left when its time is over: ${threads} thread(s)`, async () => {
    await using echo = await echoPeer()
    await using sidecar = await start(`
      worker_processes ${threads}; drain_timeout 600ms;
      stream { server { listen 127.0.0.1:PORT; proxy_pass ${echo.address}; } }`)
    const clients = await opened(sidecar.port, 4)
    const from = performance.now()
    sidecar.signal('SIGTERM')
    // Until it stops to listen some still come in.
    let more = 0
    await until(() =>
      dial(sidecar.port).then(
        (client) => {
          more += 1
          client.close()
          return false
        },
        () => true,
      ),
    )
    for (const client of clients) await talk(client)
    clients[0]!.end()
    assert.deepEqual(await Promise.all(clients.map(({ closed }) => closed)), ['fin', 'fin', 'fin', 'fin'])
    const took = performance.now() - from
    assert.ok(took >= 590, `${took} ms`)
    for (const client of clients) client.end()
    assert.deepEqual(await sidecar.exited, { code: 0, signal: null })
    const good = records(sidecar).filter(({ attempts }) => attempts[0]?.ending === 'ok').length
    assert.ok(good >= 4 && good <= 4 + more, `${good} of ${4 + more}`)
    await until(() => echo.open === 0)
  })
}

for (const threads of [1, 2]) {
  test(`a reload that cannot listen on an address leaves everything as it was: ${threads} thread(s)`, async () => {
    await using echo = await echoPeer()
    const configuration = (more: string) => `
      # PORT2 PORT3 PORT4
      worker_processes ${threads};
      http { server { listen 127.0.0.1:${more === '' ? 'PORT3' : 'PORT4'}; return 200 "hi"; } }
      stream { server { listen 127.0.0.1:PORT; proxy_pass ${echo.address}; } ${more} }`
    await using sidecar = await start(configuration(''), { alarms: /\[emerg\]/ })
    const [client] = await opened(sidecar.port, 1)
    const taken = `server { listen 127.0.0.1:PORT2; return x; } server { listen ${echo.address}; return x; }`
    await sidecar.rewrite(configuration(taken))
    sidecar.signal('SIGHUP')
    await sidecar.logged(/\[emerg\] .*bind\(\) to 127\.0\.0\.1:\d+ failed \(98: Address already in use\)/)
    await sidecar.logged(/was not reloaded/)
    await assert.rejects(dial(sidecar.ports['PORT2']!))
    await assert.rejects(dial(sidecar.ports['PORT4']!))
    assert.equal(await (await fetch(`http://127.0.0.1:${sidecar.ports['PORT3']}`)).text(), 'hi')
    const [another] = await opened(sidecar.port, 1)
    await talk(client!)
    for (const each of [client!, another!]) each.end()
  })
}

test('a session that is still being connected is not kept by a peer that a reload takes away', async () => {
  await using echo = await echoPeer()
  await using deaf = await deafPeer({ backlog: 1 })
  await deaf.fill(2)
  const configuration = (server: string) => `
    drain_timeout 300ms;
    stream { upstream u { zone u 64k; server ${server}; } server { listen 127.0.0.1:PORT; proxy_pass u; } }`
  await using sidecar = await start(configuration(`127.0.0.1:${deaf.port}`))
  const client = await dial(sidecar.port)
  await client.write('hello')
  await sidecar.reload(configuration(echo.address))
  const [other] = await opened(sidecar.port, 1)
  assert.equal(await client.closed, 'fin')
  await until(() => records(sidecar).length === 1)
  const [{ status, denial } = {}] = records(sidecar)
  assert.deepEqual([status, denial], [502, 'shutdown'])
  await talk(other!)
  other!.end()
})

test('a drain ends as soon as the last session has', async () => {
  await using echo = await echoPeer()
  await using sidecar = await start(
    `stream { server { listen 127.0.0.1:PORT; proxy_pass ${echo.address}; } }`,
  )
  const [client] = await opened(sidecar.port, 1)
  sidecar.signal('SIGTERM')
  await wait(300)
  await talk(client!)
  client!.end()
  assert.deepEqual(await sidecar.exited, { code: 0, signal: null })
  await sidecar.logged(/drained, exiting/)
})

test('a second signal ends sessions at once, each with its record', async () => {
  await using echo = await echoPeer()
  await using sidecar = await start(
    `stream { server { listen 127.0.0.1:PORT; proxy_pass ${echo.address}; } }`,
  )
  const clients = await opened(sidecar.port, 3)
  sidecar.signal('SIGTERM')
  await wait(50)
  const from = performance.now()
  sidecar.signal('SIGTERM')
  await Promise.all(clients.map(({ closed }) => closed))
  assert.deepEqual(await sidecar.exited, { code: 1, signal: null })
  assert.ok(performance.now() - from < 1500)
  assert.equal(records(sidecar).length, 3)
})

test('a thread that dies takes its sessions with it and nobody else’s, and nothing of them stays counted', async () => {
  await using echo = await echoPeer()
  await using sidecar = await start(
    `worker_processes 2;
     stream {
       upstream u { zone u 64k; server ${echo.address} max_conns=8; }
       server { listen 127.0.0.1:PORT; proxy_pass u; status_zone s; }
     }`,
    { env: { EVENKEEL_TEST_FAULTS: '1' }, alarms: /Error: asked for|thread/ },
  )
  const clients = await opened(sidecar.port, 8)
  sidecar.signal('SIGUSR2')
  await sidecar.logged(/thread \d was replaced/)
  const lost = clients.filter(({ inbox }) => inbox.ended !== undefined)
  const kept = clients.filter(({ inbox }) => inbox.ended === undefined)
  assert.ok(kept.length < 8)
  for (const client of kept) await talk(client)
  // The places of those that are gone are free.
  const again = await opened(sidecar.port, lost.length)
  for (const client of [...kept, ...again]) client.end()
  for (const client of clients) client.close()
})

test('time in which the program was stopped is nobody’s idleness', async () => {
  await using echo = await echoPeer()
  await using sidecar = await start(`
    stream { server { listen 127.0.0.1:PORT; proxy_pass ${echo.address}; proxy_timeout 1s; } }`)
  const [client] = await opened(sidecar.port, 1)
  sidecar.signal('SIGSTOP')
  await wait(2200)
  sidecar.signal('SIGCONT')
  await wait(300)
  await talk(client!)
  assert.equal(await client!.closed, 'fin')
})
