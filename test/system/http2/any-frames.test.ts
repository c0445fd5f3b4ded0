import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend } from '../../support/backend.ts'
import { seeded } from '../../support/dice.ts'
import { http2 } from '../../support/http2-client.ts'
import { dialFrames, type FrameType, fields, frame, get, number, types } from '../../support/http2-frames.ts'
import { type Lab, lab } from '../../support/invariants.ts'

const clients = process.env['TEST_LONG'] === '1' ? 2000 : 150

let peer: Backend
let it: Lab

before(async () => {
  const random = seeded(3)
  peer = await backend(async (x) => {
    if (x.target === '/cut') {
      await x.send('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc')
      x.end()
    } else if (x.target === '/trailers') {
      await x.body()
      await x.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-A: b\r\n\r\n')
    } else await x.reply({ body: 'x'.repeat(Math.floor(random() * 200_000)) })
  })
  it = await lab(
    `upstream up { server ${peer.address}; }
     server {
       listen 127.0.0.1:PORT; http2 on; client_max_body_size 50k; send_timeout 1s; client_body_timeout 1s;
       location / { proxy_pass http://up; }
       location /none { return 204; }
       location /nothing { return 444; }
     }`,
    [peer],
    { settleMs: 5000 },
  )
})

after(async () => {
  await it[Symbol.asyncDispose]()
  await peer[Symbol.asyncDispose]()
})

const paths = ['/', '/cut', '/trailers', '/none', '/nothing', 'bad']
const methods = ['GET', 'POST', 'HEAD', 'CONNECT', 'x']
const names = Object.keys(types) as FrameType[]

test('whatever frames clients send in whatever order, nothing stays behind and others are answered', async () => {
  const one = async (seed: number) => {
    const random = seeded(seed)
    const upTo = (most: number) => Math.floor(random() * most)
    const pick = <T>(list: readonly T[]): T => list[upTo(list.length)]!
    using client = await dialFrames(it.port, random() < 0.3 ? [[4, upTo(3) * 100]] : [], random() < 0.9)
    let next = 1
    for (let i = 0; i < 30 && !client.ended; i += 1) {
      const open = Math.max(1, next - 2 * upTo(4) - 2)
      const dice = random()
      if (dice < 0.45) {
        const head = { ...get, ':path': pick(paths), ':method': pick(methods), te: 'trailers' }
        const more: Record<string, string> = random() < 0.2 ? { 'content-length': `${upTo(5)}` } : {}
        client.headers(next, { ...head, ...more }, upTo(2))
        next += 2
      } else if (dice < 0.65) client.send(frame('data', upTo(2), open, Buffer.alloc(upTo(16_000))))
      else if (dice < 0.75) client.send(frame('reset', 0, open, number(pick([0, 2, 7, 8]))))
      else if (dice < 0.85) client.send(frame('window', 0, pick([0, open]), number(1 + upTo(70_000))))
      else if (dice < 0.9) client.headers(open, { 'x-trailer': 'a' })
      else if (dice < 0.92) client.send(frame('goaway', 0, 0, Buffer.concat([number(0), number(upTo(3))])))
      else if (dice < 0.94)
        client.send(frame(pick(names), upTo(40), upTo(9), Buffer.alloc(upTo(20), upTo(255))))
      else if (dice < 0.97) client.send(frame('ping', 0, 0, Buffer.alloc(8)))
      else client.send(frame('headers', 4, next, fields({ ...get, 'x-a': 'b' })).subarray(0, 5 + upTo(30)))
      if (random() < 0.3) await sleep(upTo(20))
    }
    if (random() < 0.5) await sleep(upTo(300))
    if (random() < 0.3) client.socket.resetAndDestroy()
  }
  for (let from = 0; from < clients; from += 25) {
    await Promise.all(Array.from({ length: 25 }, (_, i) => one(from + i)))
  }
  await using other = await http2(it.port)
  assert.equal((await other.ask({ ':path': '/none' })).status, 204)
  other.session.close()
  await it.settle(undefined, { seen: false })
  await it.left()
})
