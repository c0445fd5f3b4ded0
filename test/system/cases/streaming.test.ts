import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend } from '../../support/backend.ts'
import { dial } from '../../support/client.ts'
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
