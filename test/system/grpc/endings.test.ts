import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type FramePeer, framePeer } from '../../support/frame-peer.ts'
import { type Http2, http2 } from '../../support/http2-client.ts'
import { endHeaders, endStream, fields, frame } from '../../support/http2-frames.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'

/** What a peer sends: a head, whether a message follows, and the trailers that end it. */
interface Told {
  readonly head: Readonly<Record<string, string>>
  readonly message?: boolean
  readonly trailers?: Readonly<Record<string, string>>
}

const call = { ':status': '200', 'content-type': 'application/grpc+proto' }
let told: Told
let peer: FramePeer
let it: Sidecar
let client: Http2

before(async () => {
  peer = await framePeer((connection, { type, flags, stream }) => {
    if (type !== 'headers' && type !== 'data') return
    if ((flags & endStream) === 0) return
    const { head, message = false, trailers } = told
    const alone = !message && trailers === undefined
    connection.send(frame('headers', endHeaders | (alone ? endStream : 0), stream, fields(head)))
    if (message) {
      const end = trailers === undefined ? endStream : 0
      connection.send(frame('data', end, stream, Buffer.from([0, 0, 0, 0, 0])))
    }
    if (trailers) connection.send(frame('headers', endHeaders | endStream, stream, fields(trailers)))
  })
  it = await start(
    `worker_processes 1;
     http {
       upstream up { server ${peer.address} max_fails=0; }
       server {
         listen 127.0.0.1:PORT; http2 on;
         location / { grpc_pass grpc://up; }
         location /listed { grpc_pass grpc://up; grpc_next_upstream grpc_unknown; }
       }
     }`,
  )
  client = await http2(it.port)
})

after(async () => {
  await client[Symbol.asyncDispose]()
  await it[Symbol.asyncDispose]()
  await peer[Symbol.asyncDispose]()
})

/** How a call is noted that a peer answers so. */
async function noted(path: string, answer: Told): Promise<string> {
  told = answer
  const from = it.stdout.length
  await client.ask(
    { ':path': path, ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' },
    'x',
  )
  for (;;) {
    const line = /^\{.*"path".*\n/m.exec(it.stdout.slice(from))?.[0]
    if (line !== undefined) {
      const { attempts } = JSON.parse(line) as {
        attempts: { ending: string; reason: string | null; grpc_status?: number }[]
      }
      return attempts
        .map(({ ending, reason, grpc_status = 'none' }) => `${ending} ${reason ?? '-'} ${grpc_status}`)
        .join(', ')
    }
    await it.logged(/"path"/)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

for (const [what, answer, status, listed] of [
  ['a status after a message', { head: call, message: true, trailers: { 'grpc-status': '5' } }, 5, 'ok - 5'],
  ['a status alone', { head: { ...call, 'grpc-status': '5' } }, 5, 'ok - 5'],
  ['no status after a message', { head: call, message: true }, 2, 'http grpc_unknown 2'],
  ['trailers without a status', { head: call, trailers: { 'x-a': '1' } }, 2, 'http grpc_unknown 2'],
  ['a head alone without a status', { head: call }, 2, 'http grpc_unknown 2'],
  ['a status that is none', { head: { ...call, 'grpc-status': 'x' } }, 2, 'http grpc_unknown 2'],
] as const) {
  test(`a call that ends with ${what} is noted as clients take it`, async () => {
    assert.equal(await noted('/', answer), `ok - ${status}`)
    assert.equal(await noted('/listed', answer), listed)
  })
}

test('what is no answer of gRPC, or has its trailers in its body, has no status', async () => {
  for (const head of [
    { ':status': '200', 'content-type': 'application/grpc-web+proto' },
    { ':status': '200', 'content-type': 'text/html' },
    { ':status': '404', 'content-type': 'application/grpc' },
    { ':status': '200' },
  ]) {
    assert.equal(await noted('/', { head, message: true }), 'ok - none')
    assert.equal(await noted('/listed', { head }), 'ok - none')
  }
})
