import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend } from '../../support/backend.ts'
import { http2 } from '../../support/http2-client.ts'
import { dialFrames, fields, frame, get, number, settings } from '../../support/http2-frames.ts'
import { type Lab, lab, residentBytes } from '../../support/invariants.ts'

let peer: Backend
let it: Lab

before(async () => {
  peer = await backend(async (x) => {
    if (x.target === '/wait') await x.gone
    else await x.reply({ body: x.target === '/big' ? Buffer.alloc(1 << 20) : 'ok' })
  })
  it = await lab(
    `upstream up { server ${peer.address}; }
     server {
       listen 127.0.0.1:PORT; http2 on; send_timeout 1s; keepalive_requests 1000000;
       location / { proxy_pass http://up; }
       location /text { return 200 "${'x'.repeat(3000)}"; }
       location /small { return 200 ok; }
     }`,
    [peer],
    { main: 'error_log stderr info;' },
  )
})

after(async () => {
  console.error(it.sidecar.stderr)
  await it[Symbol.asyncDispose]()
  await peer[Symbol.asyncDispose]()
})

/** Runs an attack while another client asks: what that one is answered. */
async function besides<T>(attack: Promise<T>): Promise<T> {
  let over = false
  const others = (async () => {
    await using client = await http2(it.port)
    const late: number[] = []
    while (!over) {
      const from = performance.now()
      const { status } = await client.ask({ ':path': '/small' })
      assert.equal(status, 200)
      late.push(performance.now() - from)
      await sleep(5)
    }
    return Math.max(...late)
  })()
  const said = await attack.finally(() => {
    over = true
  })
  const slowest = await others
  assert.ok(slowest < 2000, `others waited for ${slowest} ms`)
  return said
}

test('a client that begins streams and resets them is cut off while others go on', async () => {
  await it.begin()
  const attack = async () => {
    using client = await dialFrames(it.port)
    const head = fields({ ...get, ':path': '/wait' })
    for (let i = 0; i < 2000 && !client.ended; i += 1) {
      const id = 2 * i + 1
      client.send(frame('headers', 5, id, head), frame('reset', 0, id, number(8)))
      if (i % 20 === 19) await sleep(1)
    }
    return client.end()
  }
  // What it still sends resets the connection, and may take the last word with it.
  assert.notEqual(await besides(attack()), 0)
  // Or more of them were in progress at once than may be.
  await it.sidecar.logged(
    /client (?:reset too many streams|broke HTTP\/2: The user .*), client: 127\.0\.0\.1/,
  )
  await it.settle(undefined, { seen: false })
})

test('a client that sends all its resets at once is cut off, too', async () => {
  using client = await dialFrames(it.port)
  const head = fields({ ...get, ':path': '/wait' })
  client.send(
    ...Array.from({ length: 5000 }, (_, i) =>
      Buffer.concat([frame('headers', 5, 2 * i + 1, head), frame('reset', 0, 2 * i + 1, number(8))]),
    ),
  )
  assert.ok((await besides(client.end())) !== 0)
  await it.settle(undefined, { seen: false })
})

test('a client that has its streams reset by this side is cut off as well', async () => {
  const attack = async () => {
    using client = await dialFrames(it.port)
    const head = fields({ ...get, ':path': '/wait' })
    for (let i = 0; i < 2000 && !client.ended; i += 1) {
      const id = 2 * i + 1
      // No window may be made larger by nothing: a fault of the stream.
      client.send(frame('headers', 5, id, head), frame('window', 0, id, number(0)))
      if (i % 20 === 19) await sleep(1)
    }
    return client.end()
  }
  assert.ok((await besides(attack())) !== 0)
  await it.settle(undefined, { seen: false })
})

test('a client whose requests end with trailers that are too long is cut off as well', async () => {
  const attack = async () => {
    using client = await dialFrames(it.port)
    const head = fields({ ...get, ':method': 'POST', ':path': '/wait' })
    // The largest field that is kept may be said again by a single byte.
    const name = Buffer.concat([Buffer.from([0x40, 3]), Buffer.from('x-a')])
    const kept = Buffer.concat([name, Buffer.from([127, 200, 30]), Buffer.alloc(4039, 'a')])
    client.send(
      frame('headers', 4, 1, head),
      frame('headers', 5, 1, Buffer.concat([kept, Buffer.alloc(8, 0xbe)])),
    )
    for (let i = 1; i < 2000 && !client.ended; i += 1) {
      const id = 2 * i + 1
      client.send(frame('headers', 4, id, head), frame('headers', 5, id, Buffer.alloc(8, 0xbe)))
      // No more at once than there may be.
      if (i % 20 === 19) await client.resetOf(id).catch(() => {})
    }
    return client.end()
  }
  assert.equal(await besides(attack()), 11)
  await it.settle(undefined, { seen: false })
})

test('a client that cancels some of many requests is not cut off', async () => {
  await using client = await http2(it.port)
  for (let i = 0; i < 600; i += 1) {
    const stream = client.begin({ ':path': '/big' })
    stream.close(8)
    await Promise.all([client.ask({ ':path': '/small' }), client.ask({ ':path': '/small' })])
  }
  assert.deepEqual(client.goaways, [])
  await it.settle(undefined, { seen: false })
})

const floods: Readonly<Record<string, Buffer>> = {
  pings: frame('ping', 0, 0, Buffer.alloc(8)),
  settings: frame('settings', 0, 0, settings([4, 65_535])),
  'empty data': frame('data', 0, 1),
  'windows of one byte': frame('window', 0, 0, number(1)),
  priorities: frame('priority', 0, 1, Buffer.from([0, 0, 0, 0, 1])),
}

for (const [what, one] of Object.entries(floods)) {
  test(`a client that sends ${what} without end is cut off while others go on`, async () => {
    const attack = async () => {
      using client = await dialFrames(it.port, [], false)
      client.headers(1, { ...get, ':method': 'POST' }, 0)
      const many = Buffer.concat(Array.from({ length: 5000 }, () => one))
      let sent = 0
      const from = performance.now()
      while (!client.ended && performance.now() - from < 8000) {
        client.send(many)
        sent += many.length
        await sleep(10)
      }
      const code = await client.end(100)
      assert.ok(sent < 60_000_000, `${sent} bytes`)
      return code
    }
    assert.notEqual(await besides(attack()), 0)
  })
}

test('a head that goes on without end is cut off', async () => {
  using client = await dialFrames(it.port)
  client.send(frame('headers', 1, 1, fields(get)))
  const part = frame('continuation', 0, 1, fields({ 'x-a': 'b'.repeat(100) }))
  for (let i = 0; i < 1000 && !client.ended; i += 1) {
    client.send(part)
    if (i % 10 === 9) await sleep(1)
  }
  assert.notEqual(await client.end(), 0)
})

test('a client that opens no window loses its streams, and others go on', async () => {
  await it.begin()
  const attack = async () => {
    using client = await dialFrames(it.port, [[4, 0]])
    client.headers(1, { ...get, ':path': '/big' })
    client.headers(3, { ...get, ':path': '/text' })
    const codes = await Promise.all([client.resetOf(1), client.resetOf(3)])
    // One that takes what it asks for is answered on the same connection.
    client.send(frame('settings', 0, 0, settings([4, 65_535])))
    client.headers(5, { ...get, ':path': '/text' })
    await client.frame('data', 5)
    return codes
  }
  assert.deepEqual(await besides(attack()), [2, 2])
  await it.settle(undefined, { seen: false })
})

test('a client whose connection takes nothing is cut off with it', async () => {
  await it.begin()
  const attack = async () => {
    using client = await dialFrames(it.port, [[4, 2 ** 31 - 1]])
    client.send(frame('window', 0, 0, number(2 ** 31 - 1 - 65_535)))
    for (let i = 0; i < 100; i += 1) client.headers(2 * i + 1, { ...get, ':path': '/big' })
    await client.frame('headers', 1)
    client.socket.pause()
    await it.idle()
    await it.left()
    return 1
  }
  await attack()
  await it.settle(undefined, { seen: false })
})

test('clients that take nothing cost little memory', async () => {
  const before = await residentBytes(it.sidecar.pid)
  const clients = await Promise.all(Array.from({ length: 10 }, () => dialFrames(it.port, [[4, 0]])))
  for (const client of clients) {
    for (let i = 0; i < 100; i += 1) client.headers(2 * i + 1, { ...get, ':path': '/big' })
  }
  await sleep(800)
  const after = await residentBytes(it.sidecar.pid)
  for (const client of clients) client.socket.destroy()
  // A megabyte for each of a thousand streams would be a gigabyte.
  assert.ok(after - before < 250e6, `${((after - before) / 1e6).toFixed(0)} MB`)
  await it.settle(undefined, { seen: false })
})
