import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { monotonic } from '../../../../feedback/clock.ts'
import { Preface } from '../../../../sidecar/proxy/http2/preface.ts'

const whole = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

/** What a connection is taken for that begins with these pieces. */
async function meet(pieces: readonly string[], then?: (preface: Preface) => void): Promise<string> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  const client = connect({ port: address.port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
  client.on('error', () => {})
  const [socket] = (await once(server, 'connection')) as [Socket]
  const told = Promise.withResolvers<string>()
  const preface = new Preface(socket, {
    http2: (first) => told.resolve(`http2 ${first.length}`),
    http1: (first) => told.resolve(`http1 ${first.toString('latin1')}`),
    closed: () => told.resolve('closed'),
  })
  for (const piece of pieces) {
    client.write(piece)
    await once(socket, 'data')
  }
  then?.(preface)
  const said = await told.promise
  client.destroy()
  socket.destroy()
  server.close()
  return said
}

test('the whole preface is HTTP/2, in one piece or in many, with what came after it', async () => {
  assert.equal(await meet([whole]), 'http2 24')
  assert.equal(await meet([...whole]), 'http2 24')
  assert.equal(await meet([whole.slice(0, 10), `${whole.slice(10)}more`]), 'http2 28')
})

test('the first byte that differs makes it HTTP/1.1, and nothing of it is lost', async () => {
  assert.equal(await meet(['GET / HTTP/1.1']), 'http1 GET / HTTP/1.1')
  assert.equal(await meet(['P', 'O']), 'http1 PO')
  assert.equal(await meet(['PRI * HTTP/2.0\r\n', 'x']), 'http1 PRI * HTTP/2.0\r\nx')
})

test('who has not said enough in time is closed, and not before', async () => {
  assert.equal(
    await meet(['PRI'], (preface) => {
      preface.check(monotonic(), 10_000)
      assert.equal(preface.socket.destroyed, false)
      preface.check(monotonic() + 10_000, 10_000)
    }),
    'closed',
  )
})
