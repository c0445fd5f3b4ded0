import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend } from '../../support/backend.ts'
import { Client, dial } from '../../support/client.ts'
import { lab, residentBytes } from '../../support/invariants.ts'
import { headText, readBody } from '../../support/message.ts'

const size = 192 << 20
const piece = Buffer.alloc(1 << 20, 'x')
/** More than the socket buffers of two hops hold on Linux, and far less than the body. */
const held = 96 << 20
/** What a transfer may add to a process that has done one before: its heap has its working size by then. */
const more = 64 << 20

/** Watches a counter until it has stood still for a while. */
async function standstill(count: () => number): Promise<number> {
  for (let before = -1; before !== count(); ) {
    before = count()
    await sleep(200)
  }
  return count()
}

test('a slow client slows the peer down instead of filling the memory', async () => {
  let sent = 0
  await using peer = await backend(async (x) => {
    await x.send(headText('HTTP/1.1 200 OK', { 'Content-Length': size }))
    for (sent = 0; sent < size; sent += piece.length) await x.send(piece)
  })
  await using front = await lab(
    `server { listen 127.0.0.1:PORT; location / { proxy_pass http://${peer.address}; } }`,
    [peer],
  )
  let most = 0
  const download = async () => {
    using client = await dial(front.port)
    await client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await client.head()
    const stopped = await standstill(() => sent)
    assert.ok(stopped < held, `${stopped >> 20} MiB were taken from the peer`)
    most = Math.max(most, await residentBytes(front.sidecar.pid))
    let read = 0
    const { complete } = await readBody(client.inbox, size, (bytes) => {
      read += bytes.length
    })
    assert.ok(complete)
    assert.equal(read, size)
    await front.settle(1)
    return residentBytes(front.sidecar.pid)
  }
  const before = await download()
  most = 0
  const grown = (await download()) - before
  assert.ok(grown < more, `${grown >> 20} MiB more`)
  assert.ok(most - before < more, `${(most - before) >> 20} MiB more while nobody read`)
})

test('a slow peer slows the client down instead of filling the memory', async () => {
  let open = () => {}
  await using peer = await backend(async (x) => {
    await new Promise<void>((resolve) => {
      open = resolve
    })
    let read = 0
    await x.body((bytes) => {
      read += bytes.length
    })
    await x.reply({ body: String(read) })
  })
  await using front = await lab(
    `server { listen 127.0.0.1:PORT; client_max_body_size 0; location / { proxy_pass http://${peer.address}; } }`,
    [peer],
  )
  let most = 0
  const upload = async () => {
    using client = await dial(front.port)
    await client.write(Client.bytes('/', { method: 'POST', headers: { 'Content-Length': size } }))
    let sent = 0
    const whole = (async () => {
      for (; sent < size; sent += piece.length) await client.write(piece)
    })()
    const stopped = await standstill(() => sent)
    assert.ok(stopped < held, `${stopped >> 20} MiB were taken from the client`)
    most = Math.max(most, await residentBytes(front.sidecar.pid))
    open()
    await whole
    assert.equal((await client.reply()).text, String(size))
    await front.settle(1)
    return residentBytes(front.sidecar.pid)
  }
  const before = await upload()
  most = 0
  const grown = (await upload()) - before
  assert.ok(grown < more, `${grown >> 20} MiB more`)
  assert.ok(most - before < more, `${(most - before) >> 20} MiB more while nobody read`)
})
