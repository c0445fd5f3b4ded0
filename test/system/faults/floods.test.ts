import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { type Backend, backend, type Exchange } from '../../support/backend.ts'
import { type Client, dial } from '../../support/client.ts'
import { type Lab, lab, residentBytes } from '../../support/invariants.ts'

/* Floods of everything that a client, or a peer, can send much of: others are served meanwhile. */

let peer: Backend
let front: Lab

/** A megabyte in chunks of one byte. */
const crumbs = Buffer.from(`${'1\r\nx\r\n'.repeat(1 << 20)}0\r\n\r\n`)

before(async () => {
  peer = await backend(async (x: Exchange) => {
    if (x.target === '/crumbs') {
      await x.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
      x.done()
      return x.send(crumbs)
    }
    if (x.target === '/count') {
      let count = 0
      await x.body((piece) => {
        count += piece.length
      })
      return x.reply({ body: String(count) })
    }
    await x.reply({ body: 'ok' })
  })
  front = await lab(
    `upstream up { server ${peer.address} max_fails=1; keepalive 8; }
     client_header_timeout 60s; keepalive_requests 1000000; client_max_body_size 0;
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://up; } }`,
    [],
  )
})

after(async () => {
  await front?.sidecar.stop()
  await peer?.stop()
})

beforeEach(() => front.begin())

/**
 * Lets a client ask plainly while something else goes on, and says what it felt: all but one in a hundred of its
 * answers came within so many milliseconds.
 */
async function felt(work: () => Promise<void>): Promise<number> {
  let over = false
  const times: number[] = []
  using client = await dial(front.port)
  const asking = (async () => {
    while (!over || times.length < 20) {
      const began = performance.now()
      assert.equal((await client.ask('/')).text, 'ok')
      times.push(performance.now() - began)
      await sleep(3)
    }
  })()
  try {
    await work()
  } finally {
    over = true
    await asking
  }
  times.sort((one, other) => one - other)
  return times[Math.floor(0.99 * (times.length - 1))]!
}

/** What an honest client may feel of a flood on a machine with other work, milliseconds. */
const bearable = 1000

function close(clients: readonly Client[]): void {
  for (const client of clients) client.close()
}

/** Connects so many times, some at once: more than wait in the queue of a listener would be dropped. */
async function connect(count: number, first = ''): Promise<Client[]> {
  const clients: Client[] = []
  while (clients.length < count) {
    clients.push(...(await Promise.all(Array.from({ length: 100 }, () => dial(front.port)))))
  }
  if (first !== '') await Promise.all(clients.map((client) => client.write(first)))
  return clients
}

test('two thousand connections that say nothing and five hundred half heads cost others nothing, and little memory', async () => {
  await felt(async () => {})
  const before = await residentBytes(front.sidecar.pid)
  let clients: Client[] = []
  const p99 = await felt(async () => {
    clients = await connect(2000)
    clients.push(...(await connect(500, 'GET / HTTP/1.1\r\nHost: x\r\nX-Half: ')))
  })
  assert.ok(p99 < bearable, `${p99} ms`)
  const grown = (await residentBytes(front.sidecar.pid)) - before
  assert.ok(grown < 100 << 20, `${grown >> 20} MiB more`)
  close(clients)
  await front.left()
  await front.settle(undefined, { seen: false })
})

/** What there can be too much of in a request, and the statuses that it may be refused with. */
const tooMuch: Record<string, readonly [start: string, piece: string, status: readonly number[]]> = {
  'fields of a head': ['GET / HTTP/1.1\r\nHost: x\r\n', 'X-A: 1\r\n'.repeat(1000), [400, 431]],
  'one field': ['GET / HTTP/1.1\r\nHost: x\r\nX-A: ', 'x'.repeat(8000), [400, 431]],
  'a target': ['GET /', 'x'.repeat(8000), [400, 414, 431]],
  'extensions of a chunk': [
    'POST /count HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1',
    ';a=b'.repeat(2000),
    [400, 413],
  ],
  'extensions of many chunks': [
    'POST /count HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n',
    `1;${'e'.repeat(3000)}\r\nx\r\n`,
    [400, 413],
  ],
  trailers: [
    'POST /count HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n',
    'X-A: 1\r\n'.repeat(1000),
    [400, 413, 431],
  ],
  'one trailer': [
    'POST /count HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-A: ',
    'x'.repeat(8000),
    [400, 413, 431],
  ],
}

for (const [name, [start, piece, statuses]] of Object.entries(tooMuch)) {
  test(`too much of ${name} is refused before it is all there`, async () => {
    const most = 4 << 20
    const p99 = await felt(async () => {
      const clients = await Promise.all(Array.from({ length: 8 }, () => dial(front.port)))
      await Promise.all(
        clients.map(async (client) => {
          await client.write(start)
          let sent = 0
          // Until it has its answer: the rest would be read and dropped, so that it gets to it.
          for (; sent < most && client.inbox.total === 0 && !client.inbox.ended; sent += piece.length) {
            await Promise.race([client.write(piece), client.closed])
            // Lets this side read.
            await turn()
          }
          assert.ok(sent < most, 'all of it was taken')
          const said = client.inbox.unread.toString('latin1')
          // What is still sent to a closed connection resets it, and may take the answer with it.
          if (said !== '') assert.ok(statuses.includes(Number(said.slice(9, 12))), said.slice(0, 100))
        }),
      )
      close(clients)
    })
    assert.ok(p99 < bearable, `${p99} ms`)
    await front.settle(undefined, { seen: false })
  })
}

test('a megabyte in chunks of one byte is passed on whole, either way', async () => {
  const p99 = await felt(async () => {
    using client = await dial(front.port)
    const began = performance.now()
    void client.write('POST /count HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
    void client.write(crumbs)
    assert.equal((await client.reply('POST')).text, String(1 << 20))
    await client.write('GET /crumbs HTTP/1.1\r\nHost: x\r\n\r\n')
    const { head } = await client.head()
    assert.equal(head.start, 'HTTP/1.1 200 OK')
    // Counted and not parsed: this side's parser is not the one that is looked at.
    let last = ''
    let count = 0
    while (!last.endsWith('0\r\n\r\n')) {
      const some = (await client.inbox.some())!.toString('latin1')
      for (const one of some) if (one === 'x') count += 1
      last = (last + some).slice(-5)
    }
    assert.equal(count, 1 << 20)
    const took = performance.now() - began
    assert.ok(took < 20_000, `${took} ms`)
  })
  assert.ok(p99 < bearable, `${p99} ms`)
  await front.settle(undefined, { seen: false })
})

test('ten thousand requests sent ahead are answered in order', async () => {
  const count = 10_000
  const p99 = await felt(async () => {
    using client = await dial(front.port)
    void client.write('GET /x HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(count))
    let text = ''
    let answers = 0
    while (answers < count) {
      const some = await client.inbox.some()
      assert.ok(some, `closed after ${answers}`)
      text += some.toString('latin1')
      const parts = text.split('\r\n\r\nok')
      text = parts.pop()!
      for (const part of parts) assert.ok(part.startsWith('HTTP/1.1 200 '), part)
      answers += parts.length
    }
  })
  assert.ok(p99 < bearable, `${p99} ms`)
  await front.settle(undefined, { seen: false })
})
