import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { test } from 'node:test'
import { Wire } from '../../../sidecar/tls/wire.ts'

const record = (type: number, length: number) =>
  Buffer.concat([Buffer.from([type, 3, 3, length >> 8, length & 255]), Buffer.alloc(length)])

/** A wire over which these bytes have come, in pieces of a size. */
async function after(bytes: Buffer, size: number): Promise<Wire> {
  const server = createServer(async (socket) => {
    socket.setNoDelay()
    for (let at = 0; at < bytes.length; at += size) {
      socket.write(bytes.subarray(at, at + size))
      if (bytes.length < 200) await new Promise((resolve) => setImmediate(resolve))
    }
    socket.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  const socket = connect(address.port, '127.0.0.1')
  await once(socket, 'connect')
  const wire = new Wire(socket)
  let got = 0
  for await (const piece of wire) got += piece.length
  assert.equal(got, bytes.length)
  server.close()
  return wire
}

test('an end is one where an alert came last, wherever the bytes were cut', async () => {
  const data = record(23, 40)
  for (const size of [1, 3, 5, 7, 1000]) {
    const clean = async (...records: readonly Buffer[]) =>
      (await after(Buffer.concat(records), size)).endedCleanly(0)
    assert.equal(await clean(data, record(21, 26)), true, 'TLS 1.2')
    assert.equal(await clean(data, record(23, 19)), true, 'TLS 1.3')
    assert.equal(await clean(data), false)
    assert.equal(await clean(data, record(21, 26).subarray(0, 30)), false, 'half an alert')
    assert.equal(await clean(data, record(23, 19).subarray(0, 3)), false, 'half a head')
  }
})

test('pieces of two bytes are as long as alerts, and are none', async () => {
  const pieces = [record(23, 40), record(23, 19), record(23, 19)]
  assert.equal((await after(Buffer.concat(pieces), 1000)).endedCleanly(2), false)
  assert.equal((await after(Buffer.concat([...pieces, record(23, 19)]), 1000)).endedCleanly(2), true)
})

test('what passes is as it was, in both directions and whatever its size', async () => {
  const server = createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  const socket = connect({ port: address.port, host: '127.0.0.1', allowHalfOpen: true })
  await once(socket, 'connect')
  const wire = new Wire(socket)
  wire.allowHalfOpen = true
  const sent = Buffer.from(Array.from({ length: 1_000_000 }, (_, i) => (i * 31) & 255))
  wire.end(sent)
  const pieces: Buffer[] = []
  for await (const piece of wire) pieces.push(piece)
  assert.ok(Buffer.concat(pieces).equals(sent))
  server.close()
})
