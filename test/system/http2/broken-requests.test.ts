import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import {
  endHeaders,
  endStream,
  Frames,
  fields,
  frame,
  preface,
  settings,
} from '../../support/http2-frames.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { until } from '../../support/until.ts'

let it: Sidecar
/** What the peer does as a head comes. */
let answer: (peer: Frames) => void
/** The last connection to the peer. */
let peer: Frames | undefined
const sockets = new Set<Socket>()
const server = createServer((socket) => {
  sockets.add(socket)
  socket.once('data', (first: Buffer) => {
    peer = new Frames(socket, true)
    peer.send(frame('settings', 0, 0, settings()))
    socket.unshift(first.subarray(preface.length))
    void peer.frame('headers').then(() => answer(peer!))
  })
})

before(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  it = await start(
    `worker_processes 1;
     http {
       upstream up { server 127.0.0.1:${port}; }
       server {
         listen 127.0.0.1:PORT; proxy_request_buffering off; proxy_read_timeout 300ms;
         location / { proxy_http_version 2; proxy_pass http://up; }
       }
     }`,
  )
})

beforeEach(() => {
  peer = undefined
  for (const socket of sockets) socket.destroy()
})

after(async () => {
  for (const socket of sockets) socket.destroy()
  server.close()
  await it[Symbol.asyncDispose]()
})

const beginning = 'POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'

/** Begins a request, and waits until the peer has the beginning of its body. */
async function begun(): Promise<Socket> {
  const client = connect(it.port, '127.0.0.1')
  client.on('error', () => {})
  client.write(beginning)
  await until(
    () => peer?.frames.some(({ type, payload }) => type === 'data' && payload.length === 3) === true,
  )
  return client
}

/** The peer has been told that the stream is cancelled, and nothing that says that the request was whole. */
async function cancelled(): Promise<void> {
  assert.equal(await peer!.resetOf(1), 8)
  const ends = peer!.frames.filter(
    ({ type, flags }) => (type === 'data' || type === 'headers') && flags & endStream,
  )
  assert.deepEqual(ends, [])
}

test('a request whose client goes before it is whole does not look whole to a peer', async () => {
  answer = () => {}
  const client = await begun()
  client.resetAndDestroy()
  await cancelled()
})

test('nor does one whose answer is whole before it', async () => {
  answer = (peer) => peer.send(frame('headers', endHeaders | endStream, 1, fields({ ':status': '200' })))
  const client = await begun()
  await cancelled()
  client.destroy()
})

test('nor does one whose answer breaks off by its size', async () => {
  const large = { ':status': '200', 'x-large': 'a'.repeat(15_000) }
  answer = (peer) => {
    const head = fields({ ...large, 'x-more': 'b'.repeat(15_000), 'x-most': 'c'.repeat(15_000) })
    peer.send(
      frame('headers', 0, 1, head.subarray(0, 16_000)),
      frame('continuation', 0, 1, head.subarray(16_000, 32_000)),
    )
    peer.send(frame('continuation', endHeaders, 1, head.subarray(32_000)))
  }
  const client = await begun()
  await cancelled()
  client.destroy()
})
