import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { reset } from '../../../sidecar/net/reset.ts'
import { type Client, dial } from '../../support/client.ts'

/** Both sides of a connection. */
async function pair(): Promise<[Client, Socket]> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const coming = once(server, 'connection')
  // A listening TCP server has an address.
  const client = await dial((server.address() as { port: number }).port)
  const [socket]: Socket[] = await coming
  server.close()
  socket!.on('error', () => {})
  return [client, socket!]
}

test('a connection is reset, whatever is held for the other side', async () => {
  for (const held of [0, 1 << 24]) {
    const [client, socket] = await pair()
    client.inbox.pause()
    socket.write(Buffer.alloc(held))
    reset(socket)
    await once(socket, 'close')
    client.inbox.resume()
    while ((await client.inbox.some()) !== undefined);
    assert.equal(client.inbox.ended, 'reset')
  }
})

test('one whose FIN is on its way closes too, at any moment', async () => {
  const moments: ((then: () => void) => void)[] = [
    (then) => then(),
    queueMicrotask,
    (then) => process.nextTick(then),
    (then) => process.nextTick(() => process.nextTick(then)),
    setImmediate,
    (then) => setImmediate(() => setImmediate(then)),
  ]
  for (const text of ['', 'last words']) {
    for (const later of moments) {
      const [client, socket] = await pair()
      const errors: Error[] = []
      socket.on('error', (error) => errors.push(error))
      const closed = once(socket, 'close')
      socket.end(text)
      later(() => reset(socket))
      await closed
      await client.closed
      client.close()
      assert.deepEqual(errors, [])
    }
  }
})
