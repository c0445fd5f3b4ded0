import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend } from '../../support/backend.ts'
import {
  dialFrames,
  endHeaders,
  endStream,
  type Frames,
  fields,
  frame,
  get,
  number,
} from '../../support/http2-frames.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { until } from '../../support/until.ts'

// Node has ended the process where a session was collected as garbage before one of its streams: the program collects
// garbage all the time here.

const size = 8 << 20
const most = 2 ** 31 - 1
/** A field of a length that has a place of its own in memory. */
const long = { 'x-long': 'a'.repeat(300) }
/** Connections of each kind. */
const times = 8

let folder: string
let peer: Backend
let it: Sidecar
/** A peer that speaks HTTP/2, as far as it wants. */
let rude: (socket: Socket) => void
const peers = new Set<Socket>()
const server = createServer((socket) => {
  peers.add(socket)
  socket.on('error', () => {})
  rude(socket)
})

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'collected-'))
  peer = await backend(async (x) => {
    if (x.target !== '/large') return x.reply()
    await x.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`)
    await x.send(Buffer.alloc(size))
    x.done()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const watch = new URL('../../soak/heap-watch.ts', import.meta.url).pathname
  it = await start(
    `worker_processes 1;
     http {
       upstream up { server ${peer.address}; }
       upstream rude { server 127.0.0.1:${port}; }
       server {
         listen 127.0.0.1:PORT; http2 on; client_max_body_size 0; proxy_request_buffering off;
         location / { proxy_pass http://up; }
         location /rude { proxy_http_version 2; proxy_pass http://rude; }
       }
     }`,
    {
      env: {
        NODE_OPTIONS: `--expose-gc --import=${watch}`,
        SOAK_HEAP_FOLDER: folder,
        SOAK_HEAP_EVERY: '50',
      },
    },
  )
})

after(async () => {
  for (const socket of peers) socket.destroy()
  server.close()
  await peer[Symbol.asyncDispose]()
  await it[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

/** What a client does to a stream that it takes no more of. */
const rudeness: Readonly<Record<string, (client: Frames) => void>> = {
  'begins trailers': (client) => client.send(frame('headers', endStream, 1, fields(long))),
  'sends a part of a frame of trailers': (client) => {
    client.send(
      frame('headers', endStream | endHeaders, 1, fields({ ...long, 'x-more': 'b' })).subarray(0, -1),
    )
  },
  'sends trailers that are none, and resets': (client) => {
    client.headers(1, { ...long, ':path': '/' })
    client.send(frame('reset', 0, 1, number(8)))
  },
  'breaks the compression of trailers': (client) => {
    const broken = Buffer.concat([fields(long), Buffer.alloc(8, 255)])
    client.send(frame('headers', endStream | endHeaders, 1, broken))
  },
}

for (const [what, rude] of Object.entries(rudeness)) {
  test(`a client that takes nothing, ${what} and goes is survived`, async () => {
    for (let i = 0; i < times; i += 1) {
      using client = await dialFrames(it.port, [[4, most]])
      client.send(frame('window', 0, 0, number(most - 65_535)))
      client.headers(1, { ...get, ':method': 'POST', ':path': '/large' }, 0)
      await client.frame('data')
      client.socket.pause()
      await sleep(30)
      rude(client)
      await sleep(20)
      if (i % 2 === 0) client.socket.resetAndDestroy()
      else client.socket.destroy()
      await sleep(10)
    }
    await survived()
  })
}

/** What a peer does in its answer while it takes nothing of the request. */
const answers: Readonly<Record<string, (socket: Socket) => void>> = {
  'begins a head': (socket) => socket.write(frame('headers', 0, 1, fields({ ':status': '200', ...long }))),
  'begins trailers': (socket) => {
    socket.write(frame('headers', endHeaders, 1, fields({ ':status': '200' })))
    socket.write(frame('headers', endStream, 1, fields(long)))
  },
}

for (const [what, answer] of Object.entries(answers)) {
  test(`a peer that takes nothing, ${what} and goes is survived`, async () => {
    rude = (socket) => {
      const window = Buffer.concat([Buffer.from([0, 4]), number(most)])
      socket.write(
        Buffer.concat([frame('settings', 0, 0, window), frame('window', 0, 0, number(most - 65_535))]),
      )
      socket.once('data', () => {
        socket.pause()
        setTimeout(() => answer(socket), 100)
        setTimeout(() => socket.resetAndDestroy(), 150)
      })
    }
    for (let i = 0; i < times; i += 1) {
      const client = connect(it.port, '127.0.0.1')
      client.on('error', () => {})
      const head = `POST /rude HTTP/1.1\r\nHost: a.example\r\nContent-Length: ${size}\r\n\r\n`
      client.write(head)
      client.write(Buffer.alloc(size))
      const [reply] = (await once(client, 'data')) as [Buffer]
      assert.match(reply.toString('latin1'), /^HTTP\/1\.1 (502|200) /)
      client.destroy()
    }
    await survived()
  })
}

/** Some collections later it still answers. */
async function survived(): Promise<void> {
  await sleep(300)
  assert.ok(it.running, it.stderr)
  using other = await dialFrames(it.port)
  other.headers(1, get)
  await until(() => other.frames.some(({ type }) => type === 'headers'))
}
