import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend, type Exchange } from '../support/backend.ts'
import { ask, dial, webSocket } from '../support/client.ts'
import { chunk } from '../support/message.ts'
import { type Sidecar, start } from '../support/sidecar.ts'
import { until } from '../support/until.ts'
import { usage } from './gauges.ts'

/* Whoever sends without end, or never reads, gets a bounded part of the memory, whatever the amount. */

const mib = 2 ** 20

let peer: Backend
let sidecar: Sidecar
let folder: string
const sockets: Socket[] = []

/** Sends the same bytes for as long as they are taken. */
async function endless(exchange: Exchange, bytes: string): Promise<void> {
  const block = Buffer.from(bytes.repeat(Math.ceil(10_000 / bytes.length)), 'latin1')
  while (!exchange.inbox.ended && !exchange.socket.destroyed) await exchange.send(block)
}

const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'

async function script(exchange: Exchange): Promise<void> {
  switch (exchange.target) {
    case '/head':
      await exchange.send('HTTP/1.1 200 OK\r\n')
      return endless(exchange, 'X-More: and more\r\n')
    case '/line':
      await exchange.send('HTTP/1.1 200 OK\r\nX-Long: ')
      return endless(exchange, 'x')
    case '/interim':
      return endless(exchange, 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n')
    case '/trailers':
      await exchange.send(`${chunked}0\r\n`)
      return endless(exchange, 'X-More: and more\r\n')
    case '/extension':
      await exchange.send(`${chunked}1;`)
      return endless(exchange, 'x')
    case '/body':
    case '/few':
    case '/many':
    case '/none':
      await exchange.send(chunked)
      return endless(exchange, chunk('x'.repeat(8000)).toString('latin1'))
    case '/deaf':
      await exchange.upgrade()
      exchange.inbox.pause()
      exchange.socket.pause()
      await exchange.gone
      return
    case '/flood':
      await exchange.upgrade()
      return endless(exchange, 'x')
    case '/kept':
      await exchange.body(() => {})
      await exchange.gone
      return
    case '/sink':
      exchange.socket.pause()
      await exchange.gone
      return
    default:
      return exchange.reply({ body: 'x' })
  }
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'evenkeel-bounds-'))
  peer = await backend(script)
  const watch = new URL('./heap-watch.ts', import.meta.url).pathname
  sidecar = await start(
    `http {
      access_log off;
      client_max_body_size 0;
      server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://${peer.address}; }
        location /few { proxy_buffers 4 4k; proxy_pass http://${peer.address}; }
        location /many { proxy_buffers 16 64k; proxy_pass http://${peer.address}; }
        location /none { proxy_buffering off; proxy_pass http://${peer.address}; }
        location /kept { proxy_replay_buffer 1m; proxy_pass http://${peer.address}; }
        location /own { return 200 "x"; }
      }
    }`,
    {
      env: {
        NODE_OPTIONS: `--expose-gc --import=${watch}`,
        SOAK_HEAP_FOLDER: folder,
        SOAK_HEAP_EVERY: '100',
      },
    },
  )
})

after(async () => {
  for (const socket of sockets) socket.destroy()
  await sidecar?.stop()
  await peer?.stop()
  await rm(folder, { recursive: true, force: true })
})

/** Runs a test, and ends whatever it has opened. */
function cleanly(work: () => Promise<void>): () => Promise<void> {
  return async () => {
    try {
      await work()
    } finally {
      for (const socket of sockets.splice(0)) socket.destroy()
      // Whoever cannot be read from is not seen to leave before a time-out.
      peer.cut()
    }
  }
}

/** Heap and buffers in use after a collection; the least of a few. */
async function inUse(): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  // A program that has just begun, or has no time, has not told yet.
  for (let i = 0; i < 4 || (i < 100 && least === Number.POSITIVE_INFINITY); i += 1) {
    await sleep(110)
    const { heap, external } = await usage(sidecar, folder)
    least = Math.min(least, (heap ?? Number.POSITIVE_INFINITY) + external)
  }
  return least
}

/** Sends blocks until no more are taken for a while. @returns bytes that went */
async function sendAll(socket: Socket, block: Buffer, most: number): Promise<number> {
  sockets.push(socket)
  socket.on('error', () => {})
  let sent = 0
  while (sent < most && !socket.destroyed) {
    sent += block.length
    if (socket.write(block)) continue
    const drained = await Promise.race([
      new Promise((resolve) => socket.once('drain', () => resolve(true))),
      sleep(300, false),
    ])
    if (drained === false) break
  }
  return sent
}

for (const [what, target, status] of [
  ['a head without end', '/head', 502],
  ['a line of a head without end', '/line', 502],
  ['interim responses without end', '/interim', 502],
] as const) {
  test(`${what} is refused`, async () => {
    assert.equal((await ask(sidecar.port, target)).status, status)
  })
}

for (const [what, target] of [
  ['trailers without end', '/trailers'],
  ['a chunk extension without end', '/extension'],
] as const) {
  test(`${what} break the answer off`, async () => {
    assert.equal((await ask(sidecar.port, target)).complete, false)
  })
}

/** Each takes its bound in buffers of its own, and the kernel's. */
const most = 4 * mib

for (const [words, path, kept] of [
  ['proxy_buffers 4 4k', '/few', 16],
  ['proxy_buffers 16 64k', '/many', 1024],
  ['proxy_buffering off', '/none', 0],
] as const) {
  test(
    `what is read ahead of clients that do not read is what ${words} says, and some reads`,
    cleanly(async () => {
      const idle = await inUse()
      const count = 20
      for (let i = 0; i < count; i += 1) {
        const client = await dial(sidecar.port)
        sockets.push(client.socket)
        client.socket.pause()
        await client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
      }
      let each = 0
      // A read is 64k; the connections themselves take some too.
      const within = async () => {
        each = ((await inUse()) - idle) / count / 1024
        return each >= kept && each < kept + 400
      }
      await until(within, 8000).catch(() => {})
      assert.ok(each >= kept && each < kept + 400, `${each.toFixed(0)} KiB each`)
    }),
  )
}

test(
  'a body that is kept for another attempt is kept once',
  cleanly(async () => {
    const idle = await inUse()
    const [size, count] = [512 * 1024, 20]
    for (let i = 0; i < count; i += 1) {
      const client = await dial(sidecar.port)
      sockets.push(client.socket)
      await client.write(`POST /kept HTTP/1.1\r\nHost: x\r\nContent-Length: ${size}\r\n\r\n`)
      await client.write(Buffer.alloc(size))
    }
    await until(() => peer.busy === count)
    let held = 0
    const once = async () => {
      held = ((await inUse()) - idle) / count / size
      return held < 1.5
    }
    await until(once, 5000).catch(() => {})
    assert.ok(held > 0.9 && held < 1.5, `${held.toFixed(2)} times its size`)
  }),
)

const greedy: [string, () => Promise<void>][] = [
  [
    'a client that sends a hundred thousand requests and reads nothing',
    async () => {
      const request = Buffer.from('GET /own HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1000))
      const socket = connect(sidecar.port, '127.0.0.1').pause()
      await sendAll(socket, request, 100_000 * 29)
    },
  ],
  [
    'the same with requests that go to a peer',
    async () => {
      const request = Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1000))
      const socket = connect(sidecar.port, '127.0.0.1').pause()
      await sendAll(socket, request, 100_000 * 26)
    },
  ],
  [
    'a tunnel to a peer that never reads',
    async () => {
      const { client, status } = await webSocket(sidecar.port, '/deaf')
      assert.equal(status, 101)
      const sent = await sendAll(client.socket, Buffer.alloc(64 * 1024), 64 * mib)
      assert.ok(!client.socket.destroyed && sent < 64 * mib, `${sent} bytes were taken`)
    },
  ],
  [
    'a tunnel to a client that never reads',
    async () => {
      const { client, status } = await webSocket(sidecar.port, '/flood')
      sockets.push(client.socket)
      assert.equal(status, 101)
      client.socket.pause()
    },
  ],
  [
    'a client that never reads a body without end',
    async () => {
      const client = await dial(sidecar.port)
      sockets.push(client.socket)
      client.socket.pause()
      await client.write('GET /body HTTP/1.1\r\nHost: x\r\n\r\n')
    },
  ],
  [
    'a body without end for a peer that never reads',
    async () => {
      const client = await dial(sidecar.port)
      await client.write('POST /sink HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000000\r\n\r\n')
      const sent = await sendAll(client.socket, Buffer.alloc(64 * 1024), 64 * mib)
      assert.ok(!client.socket.destroyed && sent < 64 * mib, `${sent} bytes were taken`)
    },
  ],
]

for (const [what, begin] of greedy) {
  test(
    `${what} is held to a bound`,
    cleanly(async () => {
      const idle = await inUse()
      await begin()
      let now = 0
      const within = async () => {
        now = await inUse()
        return now - idle < most
      }
      await until(within, 8000).catch(() => {})
      assert.ok(now - idle < most, `${((now - idle) / mib).toFixed(1)} MiB more`)
    }),
  )
}
