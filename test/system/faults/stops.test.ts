import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend, type Exchange } from '../../support/backend.ts'
import { ask, Client, dial, webSocket } from '../../support/client.ts'
import { deafPeer } from '../../support/deaf-peer.ts'
import { eventually, type Lab, lab } from '../../support/invariants.ts'
import { readBody } from '../../support/message.ts'
import { undisturbed } from '../../support/undisturbed.ts'

/* A process that is stopped and goes on: the program itself, and one of its peers. */

/** Every time-out of the program, and how long it stands still: longer than any of them. Milliseconds. */
const timeout = 1200
const stopped = 1800

/** Something in progress as the program is stopped. @returns what waits for its end, once it has begun */
type Scene = (front: Lab, woken: Promise<void>) => Promise<() => Promise<void>>

const large = Buffer.alloc(12 << 20, 'x')

/** What the peer does, by the target; it does its second half while the program stands still. */
function peer(second: Promise<void>): (x: Exchange) => Promise<void> {
  return async (x) => {
    if (x.target === '/health') {
      await second
      return x.reply({ body: 'well' })
    }
    if (x.target === '/head') {
      await second
      return x.reply({ body: 'late' })
    }
    if (x.target === '/body') {
      await x.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nla')
      await second
      x.done()
      return x.send('te')
    }
    if (x.target === '/ws') {
      await x.send('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n')
      await second
      await x.send('late')
      x.done()
      await x.gone
      return
    }
    if (x.target === '/download') {
      await x.send(`HTTP/1.1 200 OK\r\nContent-Length: ${large.length}\r\n\r\n`)
      x.done()
      return x.send(large)
    }
    if (x.target === '/deep') {
      x.inbox.pause()
      await second
      x.inbox.resume()
      return x.reply({ body: 'late' })
    }
    return x.reply({ body: 'late' })
  }
}

const simple =
  (target: string): Scene =>
  async (front) => {
    const client = await dial(front.port)
    await client.write(Client.bytes(target))
    return async () => {
      const reply = await client.reply()
      assert.equal(reply.status, 200, target)
      assert.equal(reply.text, 'late', target)
      client.close()
    }
  }

/** A request of which the client sends one part before and one part after. */
const inParts =
  (what: string, first: string, second: string): Scene =>
  async (front, gate) => {
    const client = await dial(front.port)
    await client.write(first)
    void gate.then(() => client.write(second))
    return async () => {
      const reply = await client.reply('POST')
      assert.equal(reply.status, 200, what)
      client.close()
    }
  }

const scenes: Record<string, Scene> = {
  'a head is waited for': simple('/head'),
  'a body is waited for': simple('/body'),
  'a request’s head is waited for': inParts('head', 'GET /x HTTP/1.1\r\nHo', 'st: x\r\n\r\n'),
  'a request’s body is waited for': inParts(
    'body',
    'POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab',
    'cd',
  ),
  'a request’s body is passed on': inParts(
    'unbuffered body',
    'POST /direct HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab',
    'cd',
  ),
  'a client’s connection is idle': async (front, gate) => {
    const client = await dial(front.port)
    assert.equal((await client.ask('/x')).status, 200)
    void gate.then(() => client.write(Client.bytes('/x')))
    return async () => {
      assert.equal((await client.reply()).status, 200)
      client.close()
    }
  },
  'a client comes': async (front, gate) => {
    const late = gate.then(() => ask(front.port, '/x'))
    return async () => assert.equal((await late).status, 200)
  },
  'a client takes nothing': async (front, gate) => {
    const client = await dial(front.port)
    await client.write(Client.bytes('/download'))
    await client.head()
    client.inbox.pause()
    await sleep(150)
    let read = 0
    const whole = gate.then(() => {
      client.inbox.resume()
      return readBody(client.inbox, large.length, (piece) => {
        read += piece.length
      })
    })
    return async () => {
      assert.ok((await whole).complete, `${read} bytes`)
      client.close()
    }
  },
  'a peer takes nothing': async (front) => {
    const client = await dial(front.port)
    void client.write(Client.bytes('/deep', { method: 'POST', body: large }))
    return async () => {
      assert.equal((await client.reply('POST')).status, 200, 'a large upload')
      client.close()
    }
  },
  'a tunnel is idle': async (front) => {
    const { client, status } = await webSocket(front.port, '/ws')
    assert.equal(status, 101)
    return async () => {
      assert.equal((await client.inbox.take(4))?.toString(), 'late', 'through a tunnel')
      client.close()
    }
  },
}

const probed = 6

test('a program that was stopped looks at what has come meanwhile before any time is said to be over', () =>
  undisturbed(async () => {
    const gate = Promise.withResolvers<void>()
    await using slow: Backend = await backend(peer(gate.promise), { host: '0.0.0.0' })
    await using deaf = await deafPeer({ backlog: 1 })
    await deaf.fill(2)
    const servers = Array.from({ length: probed }, (_, i) => `server 127.0.7.${i + 1}:${slow.port};`)
    await using front = await lab(
      `proxy_read_timeout ${timeout}ms; proxy_send_timeout ${timeout}ms; proxy_connect_timeout ${timeout}ms;
       client_header_timeout ${timeout}ms; client_body_timeout ${timeout}ms; send_timeout ${timeout}ms;
       keepalive_timeout ${timeout}ms; client_max_body_size 0;
       upstream slow { server ${slow.address.replace('0.0.0.0', '127.0.0.1')} max_fails=1; }
       upstream deaf { server 127.0.0.1:${deaf.port} max_fails=1; }
       upstream probed { zone probed 1m; ${servers.join(' ')} }
       server { listen 127.0.0.1:PORT;
         location / { proxy_pass http://slow; }
         location /direct { proxy_request_buffering off; proxy_pass http://slow; }
         location /deaf { proxy_pass http://deaf; }
         location /probed { proxy_pass http://probed;
           upstream_probe alive uri=/health interval=100ms fails=1 timeout=${timeout}ms; }
       }`,
      [],
    )
    const probes = () => slow.requests.filter(({ target }) => target === '/health')
    const begun = await Promise.all(Object.values(scenes).map((scene) => scene(front, gate.promise)))
    const connecting = await dial(front.port)
    await connecting.write(Client.bytes('/deaf'))
    await eventually('a peer is connected to', async () => {
      return Object.values(await front.peers('deaf'))[0]!.selected.current === 1
    })
    await eventually('each peer is being probed', () => probes().length === probed)
    front.sidecar.signal('SIGSTOP')
    const from = performance.now()
    gate.resolve()
    deaf.hear()
    await sleep(stopped - (performance.now() - from))
    front.sidecar.signal('SIGCONT')
    // Its rhythm missed many turns of each probe: none is made up for.
    await sleep(60)
    assert.ok(probes().length <= 2 * probed, `${probes().length} probes at once`)
    // It is connected now, and would never be answered.
    connecting.close()
    const trouble: string[] = []
    await Promise.all(
      Object.keys(scenes).map((name, i) =>
        begun[i]!().catch((error) =>
          trouble.push(`${name}: ${error instanceof Error ? error.message : error}`),
        ),
      ),
    )
    assert.deepEqual(trouble, [])
    for (const group of ['slow', 'deaf']) {
      for (const { health } of Object.values(await front.peers(group))) assert.equal(health.fails, 0, group)
    }
    const rest = Object.values(await front.peers('probed'))
    assert.deepEqual([...new Set(rest.map(({ state }) => state))], ['up'])
    await front.settle(undefined, { seen: false })
  }))

test('what must not be sent twice does not go on a connection that a peer has closed while the program was stopped', async () => {
  await using a = await backend({ body: 'ok' })
  await using front = await lab(
    `upstream a { server ${a.address} max_fails=1; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://a; } }`,
    [a],
  )
  const clients = await Promise.all(Array.from({ length: 8 }, () => dial(front.port)))
  await Promise.all(clients.map((client) => client.ask('/warm')))
  // Its connections are at rest.
  await front.idle()
  front.sidecar.signal('SIGSTOP')
  await sleep(600)
  // Requests first: they are what the program finds first.
  for (const client of clients) await client.write(Client.bytes('/pay', { method: 'POST', body: 'pay' }))
  a.endAll()
  await sleep(50)
  front.sidecar.signal('SIGCONT')
  for (const client of clients) {
    assert.equal((await client.reply('POST')).status, 200)
    client.close()
  }
  assert.equal(a.requests.filter(({ target }) => target === '/pay').length, clients.length)
  await front.settle(2 * clients.length)
})

/** A peer in a process of its own, which can be stopped: says its name and what it was asked for. */
const program = `
const server = require('node:http').createServer((request, response) => response.end('A' + request.url))
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.stdin.resume().on('end', () => process.exit())
`

test('a peer that is stopped is set aside, and comes back without anything of the time before', async () => {
  const child = spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'pipe', 'inherit'] })
  try {
    const [line] = await once(child.stdout, 'data')
    await using b = await backend((x) => x.reply({ body: `B${x.target}` }))
    const name = `127.0.0.1:${Number(String(line))}`
    await using front = await lab(
      `upstream two { keepalive 8; server ${name} max_fails=1 fail_timeout=1s; server ${b.address}; }
       server { listen 127.0.0.1:PORT; location / { proxy_pass http://two; proxy_read_timeout 250ms;
         proxy_next_upstream_budget off; } }`,
      [],
    )
    const clients = await Promise.all(Array.from({ length: 6 }, () => dial(front.port)))
    let asked = 0
    const round = async () => {
      const said = clients.map(async (client) => {
        asked += 1
        const target = `/${asked}`
        const reply = await client.ask(target)
        assert.equal(reply.status, 200)
        assert.equal(reply.text.slice(1), target, 'an answer to another request')
        return reply.text[0]!
      })
      return (await Promise.all(said)).join('')
    }
    assert.match(await round(), /A.*B|B.*A/)
    const state = async () => (await front.peers('two'))[name]!
    child.kill('SIGSTOP')
    assert.equal(await round(), 'BBBBBB')
    assert.equal((await state()).state, 'unavailable')
    assert.equal(await round(), 'BBBBBB')
    const timeouts = (await front.records()).flatMap(({ reasons }) => reasons).filter((one) => one !== '-')
    assert.deepEqual([...new Set(timeouts)], ['timeout_read'])
    child.kill('SIGCONT')
    await eventually('it serves again', async () => (await round()).includes('A'))
    assert.equal((await state()).state, 'up')
    // It answers late what it was asked for while it was stopped, on connections that nobody keeps any more.
    for (let i = 0; i < 5; i++) assert.match(await round(), /^(?=.*A)(?=.*B)/)
    for (const client of clients) client.close()
    await front.settle(undefined, { seen: false })
  } finally {
    child.kill('SIGKILL')
  }
})
