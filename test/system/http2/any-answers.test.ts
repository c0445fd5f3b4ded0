import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ask } from '../../support/client.ts'
import { seeded } from '../../support/dice.ts'
import { type FramePeer, framePeer } from '../../support/frame-peer.ts'
import { answerOn, http2 } from '../../support/http2-client.ts'
import {
  endHeaders,
  endStream,
  type Frames,
  type FrameType,
  fields,
  frame,
  number,
  settings,
  types,
} from '../../support/http2-frames.ts'
import { type Lab, lab } from '../../support/invariants.ts'

const requests = process.env['TEST_LONG'] === '1' ? 4000 : 300

let peer: FramePeer
let it: Lab
/** Whether it answers as it should. */
let good = false

const random = seeded(5)
const upTo = (most: number) => Math.floor(random() * most)
const pick = <T>(list: readonly T[]): T => list[upTo(list.length)]!
const names = Object.keys(types) as FrameType[]
const statuses = ['200', '200', '200', '204', '304', '503', '103', '000', '700', '1']

function head(stream: number, flags: number): Buffer {
  const more: Record<string, string> = random() < 0.2 ? { 'content-length': `${upTo(5)}` } : {}
  if (random() < 0.1) more['grpc-status'] = `${upTo(20)}`
  return frame('headers', flags | endHeaders, stream, fields({ ':status': pick(statuses), ...more }))
}

/** Says something of a stream that it has been asked on, whatever comes to mind. */
function anything(connection: Frames, stream: number): void {
  const dice = random()
  if (dice < 0.3) connection.send(head(stream, upTo(2)))
  else if (dice < 0.6) connection.send(frame('data', upTo(2), stream, Buffer.alloc(upTo(16_000))))
  else if (dice < 0.7)
    connection.send(frame('headers', endHeaders | endStream, stream, fields({ 'x-trailer': 'a' })))
  else if (dice < 0.78) connection.send(frame('reset', 0, stream, number(pick([0, 2, 7, 8, 11]))))
  else if (dice < 0.86) connection.send(frame('window', 0, pick([0, stream]), number(1 + upTo(70_000))))
  else if (dice < 0.89)
    connection.send(
      frame('goaway', 0, 0, Buffer.concat([number(pick([0, stream, 2 ** 31 - 1])), number(upTo(3))])),
    )
  else if (dice < 0.92) connection.send(frame('settings', 0, 0, settings([pick([3, 4]), upTo(5) * 10])))
  else if (dice < 0.95)
    connection.send(frame(pick(names), upTo(40), upTo(9), Buffer.alloc(upTo(20), upTo(255))))
  else if (dice < 0.97) connection.socket.end()
  else if (dice < 0.98) connection.socket.resetAndDestroy()
  else connection.send(head(stream, 0).subarray(0, 5 + upTo(10)))
}

before(async () => {
  peer = await framePeer((connection, { type, flags, stream, payload }) => {
    if (type === 'data' && payload.length > 0 && (good || random() < 0.8)) {
      connection.send(frame('window', 0, 0, number(payload.length)))
      if ((flags & endStream) === 0) connection.send(frame('window', 0, stream, number(payload.length)))
    }
    if (good && (type === 'headers' || type === 'data') && (flags & endStream) !== 0) {
      connection.send(frame('headers', endHeaders | endStream, stream, fields({ ':status': '200' })))
    } else if (!good && (type === 'headers' || type === 'data')) {
      for (let i = upTo(4); i > 0; i -= 1) anything(connection, stream)
    }
  })
  it = await lab(
    `upstream up { server ${peer.address} max_fails=0; keepalive 8; }
     server {
       listen 127.0.0.1:PORT; http2 on;
       proxy_connect_timeout 500ms; proxy_read_timeout 200ms; proxy_send_timeout 200ms; send_timeout 1s;
       proxy_http_version 2;
       location / { proxy_pass http://up; }
       location /streamed { proxy_pass http://up; proxy_request_buffering off; proxy_buffering off; }
       location /grpc { grpc_pass grpc://up; grpc_read_timeout 200ms; grpc_next_upstream error grpc_unavailable; }
     }`,
    [],
    { settleMs: 10_000 },
  )
})

after(async () => {
  await it[Symbol.asyncDispose]()
  await peer[Symbol.asyncDispose]()
})

test('whatever frames peers answer in whatever order, each request ends, and nothing stays behind', async () => {
  const paths = ['/', '/streamed', '/grpc']
  const one = async (client: Awaited<ReturnType<typeof http2>>) => {
    const path = pick(paths)
    const body = random() < 0.5 ? undefined : Buffer.alloc(upTo(100_000))
    const method = body === undefined ? pick(['GET', 'HEAD']) : 'POST'
    if (random() < 0.3) {
      await ask(it.port, path, body === undefined ? { method } : { method, body }).catch(() => {})
      return
    }
    const stream = client.begin({ ':path': path, ':method': method, te: 'trailers' }, body === undefined)
    if (body !== undefined) stream.end(body)
    const over = answerOn(stream)
    if (random() < 0.2) {
      await sleep(upTo(100))
      stream.close(8)
    }
    await over
  }
  for (let from = 0; from < requests; from += 30) {
    await using client = await http2(it.port)
    await Promise.all(Array.from({ length: 30 }, () => one(client)))
  }
  good = true
  await using client = await http2(it.port)
  for (let i = 0; i < 20; i += 1) await client.ask()
  assert.equal((await client.ask({ ':method': 'POST' }, Buffer.alloc(200_000))).status, 200)
  client.session.close()
  await it.settle(undefined, { seen: false })
  await it.left()
})
