import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend } from '../../support/backend.ts'
import { Client, dial } from '../../support/client.ts'
import { lab } from '../../support/invariants.ts'
import { chunk, headText } from '../../support/message.ts'

const count = 12

/** Sends events at a steady pace, each with the moment it was sent at. */
function events(type: string) {
  return backend(async (x) => {
    await x.send(headText('HTTP/1.1 200 OK', { 'Content-Type': type, 'Transfer-Encoding': 'chunked' }))
    for (let i = 0; i < count; i++) {
      await x.send(chunk(`data: ${performance.now()}\n\n`))
      await sleep(60)
    }
    await x.send('0\r\n\r\n')
  })
}

for (const [what, type, extra] of [
  ['server-sent events', 'text/event-stream', ''],
  ['any response with buffering off', 'text/plain', 'proxy_buffering off;'],
] as const) {
  test(`${what}: each piece is with the client at once`, async () => {
    await using peer = await events(type)
    await using front = await lab(
      `server { listen 127.0.0.1:PORT; ${extra} location / { proxy_pass http://${peer.address}; } }`,
      [peer],
    )
    using client = await dial(front.port)
    await client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await client.head()
    const late: number[] = []
    for (let i = 0; i < count; i++) {
      const event = (await client.inbox.until('\n\n'))?.toString() ?? ''
      late.push(performance.now() - Number(/data: (\S+)/.exec(event)?.[1]))
    }
    // Two hiccups of a busy machine are allowed; a buffer would hold back every event by the pace.
    late.sort((one, other) => one - other)
    assert.ok(late.at(-3)! < 50, `pieces were late by ${late.map(Math.round)} ms`)
    await client.inbox.until('0\r\n\r\n')
    await front.settle(1)
  })
}

test('events far apart go on as long as any comes in time, and how long that is can be said of a location', async () => {
  await using peer = await backend(async (x) => {
    const paceMs = Number(x.target.split('/').at(-1))
    const type = { 'Content-Type': 'text/event-stream', 'Transfer-Encoding': 'chunked' }
    await x.send(headText('HTTP/1.1 200 OK', type))
    for (let i = 0; i < 4 && !x.inbox.ended; i++) {
      await Promise.race([sleep(paceMs), x.gone])
      await x.send(chunk(`: ${i}\n\n`))
    }
    await x.send('0\r\n\r\n')
  })
  await using front = await lab(
    `proxy_read_timeout 300ms;
     server { listen 127.0.0.1:PORT;
       location / { proxy_pass http://${peer.address}; }
       location /patient/ { proxy_pass http://${peer.address}; proxy_read_timeout 1h; } }`,
    [peer],
  )
  const events = async (target: string) => {
    using client = await dial(front.port)
    await client.write(Client.bytes(target))
    const reply = await client.reply()
    return { status: reply.status, complete: reply.complete, events: reply.text.split('\n\n').length - 1 }
  }
  const whole = { status: 200, complete: true, events: 4 }
  const [beating, patient, silent] = await Promise.all(
    ['/120', '/patient/350', '/1000'].map((target) => events(target)),
  )
  // A heartbeat in time keeps the stream, though it lasts longer than the timeout.
  assert.deepEqual(beating, whole)
  assert.deepEqual(patient, whole)
  assert.deepEqual(silent, { status: 200, complete: false, events: 0 })
  await front.record(3)
  const reasons = (await front.records()).map(({ request, reasons }) => `${request.split(' ')[1]} ${reasons}`)
  assert.deepEqual(reasons.sort(), ['/1000 body_timeout', '/120 -', '/patient/350 -'])
  await front.settle(3)
})
