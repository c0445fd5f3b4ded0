import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../support/free-port.ts'
import { eventually } from '../../support/invariants.ts'
import { askOnce, udpClient } from '../../support/udp-client.ts'
import type { Reply } from '../../support/udp-peer.ts'
import { udpPeer } from '../../support/udp-peer.ts'
import { udpGroup, udpSide } from '../../support/udp-side.ts'

const echo = (reply: Reply, datagram: Buffer) => reply(datagram)
const twice = (text: string) => (reply: Reply) => {
  for (let i = 0; i < 2; i++) reply(text)
}
/** A peer that nobody is at. */
const nobody = async () => ({ address: { kind: 'tcp', host: '127.0.0.1', port: await freePort() } }) as const

test('datagrams pass both ways as they are, in order', async () => {
  await using peer = await udpPeer(echo)
  await using side = await udpSide(udpGroup([peer]))
  await using client = await udpClient(side.port)
  const all = Array.from({ length: 1000 }, (_, i) => Buffer.alloc((i * 37) % 1400, i % 256))
  for (const [i, datagram] of all.entries()) {
    client.send(datagram)
    // No faster than whoever reads them, in the same process, can.
    if (i % 50 === 49) await eventually('they came', () => client.came.length === i + 1)
  }
  assert.deepEqual(client.came, all)
  assert.equal(
    peer.from.every((from) => from === peer.from[0]),
    true,
    'one session is one port',
  )
  side.listeners.destroy()
  const [call] = side.ended
  const bytes = all.reduce((sum, { length }) => sum + length, 0)
  assert.deepEqual([call?.requestLength, call?.bytesSent], [bytes, bytes])
  const [attempt] = call!.attempts
  assert.deepEqual([attempt?.bytesSent, attempt?.bytesReceived], [bytes, bytes])
  assert.equal(call!.protocol, 'UDP')
  assert.equal(call!.remotePort, `${client.port}`)
  assert.deepEqual(side.story, ['200, ok'])
})

test('empty datagrams and the longest there are pass, too', async () => {
  await using peer = await udpPeer(echo)
  await using side = await udpSide(udpGroup([peer]))
  await using client = await udpClient(side.port)
  assert.equal(await client.ask(''), '')
  const longest = 'x'.repeat(65_507)
  assert.equal(await client.ask(longest), longest)
})

test('each client has its own session, over IPv6 as well', async () => {
  await using one = await udpPeer((reply) => reply('1'))
  await using two = await udpPeer((reply) => reply('2'), { host: '::1' })
  await using side = await udpSide(udpGroup([one, two]), {}, { host: '::1' })
  await using a = await udpClient(side.port, { host: '::1' })
  await using b = await udpClient(side.port, { host: '::1' })
  const said = [await a.ask('x'), await b.ask('x'), await a.ask('x'), await b.ask('x')]
  assert.deepEqual(said, ['1', '2', '1', '2'])
  assert.equal(side.tally.own.open, 2)
})

test('with proxy_responses a session ends with the last answer, and the next datagram begins another', async () => {
  await using one = await udpPeer(twice('1'))
  await using two = await udpPeer(twice('2'))
  await using side = await udpSide(udpGroup([one, two]), { responses: 2 })
  await using client = await udpClient(side.port)
  let said = ''
  for (let i = 0; i < 4; i++) said += (await client.ask('x')) + (await client.next())
  assert.equal(said, '11221122')
  assert.equal(side.tally.own.open, 0)
  assert.deepEqual(side.story, ['200, ok', '200, ok', '200, ok', '200, ok'])
})

test('answers are owed for every datagram', async () => {
  let answer = () => {}
  await using peer = await udpPeer((reply) => {
    answer = () => reply('x')
  })
  await using side = await udpSide(udpGroup([peer]), { responses: 1 })
  await using client = await udpClient(side.port)
  client.send('1')
  client.send('2')
  await eventually('both came', () => peer.came.length === 2)
  answer()
  await client.next()
  assert.equal(side.ended.length, 0)
  answer()
  await client.next()
  assert.equal(side.ended.length, 1)
})

test('where no answer is expected, a session is over once its datagram is sent', async () => {
  await using one = await udpPeer()
  await using two = await udpPeer()
  await using side = await udpSide(udpGroup([one, two]), { responses: 0 })
  await using client = await udpClient(side.port)
  for (let i = 1; i <= 4; i++) {
    client.send(`${i}`)
    await eventually('it is over', () => side.ended.length === i)
  }
  await eventually('all came', () => one.came.length + two.came.length === 4)
  assert.deepEqual(
    [one.came, two.came],
    [
      ['1', '3'],
      ['2', '4'],
    ],
  )
})

test('with proxy_requests=1 each datagram is balanced anew, though answers are under way', async () => {
  const late = (name: string) => (reply: Reply) => setTimeout(() => reply(name), 30)
  await using one = await udpPeer(late('1'))
  await using two = await udpPeer(late('2'))
  await using side = await udpSide(udpGroup([one, two]), { requests: 1, responses: 1 })
  await using client = await udpClient(side.port)
  for (let i = 0; i < 6; i++) client.send('x')
  const said: string[] = []
  for (let i = 0; i < 6; i++) said.push(String(await client.next()))
  assert.equal(said.toSorted().join(''), '111222')
  await eventually('all are over', () => side.ended.length === 6)
  assert.equal(side.tally.own.open, 0)
})

test('with proxy_requests=2 a session has two datagrams, and does not end before', async () => {
  await using one = await udpPeer((reply) => reply('1'))
  await using two = await udpPeer((reply) => reply('2'))
  await using side = await udpSide(udpGroup([one, two]), { requests: 2, responses: 1 })
  await using client = await udpClient(side.port)
  let said = ''
  for (let i = 0; i < 6; i++) said += await client.ask('x')
  assert.equal(said, '112211')
  assert.equal(side.ended.length, 3)
})

test('a client that begins again from the same port goes on with its session', async () => {
  await using one = await udpPeer((reply) => reply('1'))
  await using two = await udpPeer((reply) => reply('2'))
  await using side = await udpSide(udpGroup([one, two]))
  const from = await freePort()
  for (let i = 0; i < 3; i++) {
    await using client = await udpClient(side.port, { from })
    assert.equal(await client.ask('x'), '1')
  }
  assert.equal(side.tally.own.open, 1)
})

test('a port that nobody listens on is a failure of the peer, and the next session goes elsewhere', async () => {
  await using peer = await udpPeer((reply) => reply('here'))
  const group = udpGroup([await nobody(), peer])
  await using side = await udpSide(group)
  await using client = await udpClient(side.port)
  client.send('lost')
  await eventually('it is known', () => side.ended.length === 1)
  assert.deepEqual(side.story, ['502, error refused'])
  assert.equal(side.ended[0]!.attempts[0]!.failed, true)
  assert.match(side.ended[0]!.attempts[0]!.detail, /ECONNREFUSED/)
  assert.equal(group.upstream.zone.peers.fails[0], 1)
  // The client that sends again is not told of it otherwise.
  assert.equal(await client.ask('again'), 'here')
  assert.equal(await askOnce(side.port, 'x'), 'here')
})

test('a peer that goes away in the middle of a session ends it', async () => {
  const peer = await udpPeer((reply) => reply('x'))
  const group = udpGroup([peer])
  await using side = await udpSide(group)
  await using client = await udpClient(side.port)
  await client.ask('1')
  await peer.close()
  client.send('2')
  await eventually('it is over', () => side.ended.length === 1)
  assert.deepEqual(side.story, ['502, error refused'])
  // It comes back where it was: a lone peer is asked again, and has recovered with that.
  await using again = await udpPeer((reply) => reply('back'), { port: peer.port })
  assert.equal(await client.ask('3'), 'back')
  assert.equal(again.came.join(), '3')
})

test('a peer that does not answer in time as it should has failed, however much it is sent', async () => {
  await using silent = await udpPeer()
  const group = udpGroup([silent])
  await using side = await udpSide(group, { responses: 1, timeout: 200 })
  await using client = await udpClient(side.port)
  while (side.ended.length === 0) {
    client.send('x')
    await sleep(10)
  }
  assert.deepEqual(side.story, ['502, timeout timeout_read'])
  const [attempt] = side.ended[0]!.attempts
  assert.match(attempt!.detail, /^0 of \d+ answers came in time$/)
  assert.ok(attempt!.responseMs! >= 200 && attempt!.responseMs! < 5000, `${attempt!.responseMs} ms`)
  assert.equal(group.upstream.zone.peers.fails[0], 1)
})

test('without a number of answers a pause is an ordinary end, and is no part of the time', async () => {
  await using peer = await udpPeer((reply) => reply('x'))
  await using silent = await udpPeer()
  const group = udpGroup([peer, silent])
  await using side = await udpSide(group, { timeout: 400 })
  await using one = await udpClient(side.port)
  await using two = await udpClient(side.port)
  await one.ask('x')
  two.send('x')
  await eventually('both are over', () => side.ended.length === 2)
  assert.deepEqual(side.story, ['200, ok', '200, ok'])
  assert.ok(side.ended[0]!.attempts[0]!.responseMs! < 400)
  assert.deepEqual([...group.upstream.zone.peers.fails], [0, 0])
  assert.deepEqual([...group.upstream.zone.peers.conns], [0, 0])
})

test('what passes keeps a session alive, in either direction', async () => {
  let beat: NodeJS.Timeout | undefined
  await using peer = await udpPeer((reply) => {
    beat ??= setInterval(() => reply('beat'), 50)
  })
  await using side = await udpSide(udpGroup([peer]), { timeout: 400 })
  await using client = await udpClient(side.port)
  client.send('x')
  for (let i = 0; i < 10; i++) await client.next()
  assert.equal(side.ended.length, 0)
  clearInterval(beat)
  await eventually('it is over', () => side.ended.length === 1)
})

test('where nobody is eligible a session ends at once', async () => {
  await using side = await udpSide(udpGroup([{ down: true }]))
  await using client = await udpClient(side.port)
  client.send('x')
  await eventually('it is over', () => side.ended.length === 1)
  assert.deepEqual(side.story, ['502, no_live'])
  assert.equal(side.ended[0]!.denial, 'no_live')
  assert.equal(side.tally.own.open, 0)
})

test('a peer that cannot be reached at all makes way for another before anything is sent', async () => {
  await using peer = await udpPeer((reply) => reply('here'))
  // The system knows no way there from a socket of its own host.
  const unreachable = { address: { kind: 'tcp', host: '255.255.255.255', port: 9 } } as const
  const unix = { address: { kind: 'unix', path: '/nowhere' } } as const
  const group = udpGroup([unreachable, unix, peer])
  await using side = await udpSide(group, { responses: 1 })
  assert.equal(await askOnce(side.port, 'x'), 'here')
  assert.equal(side.story[0], '200, error unreachable, error unreachable, ok')
  assert.equal(peer.came.join(), 'x')
  // It is no fault of a peer that there is no way to write to a Unix-domain socket.
  assert.deepEqual([...group.upstream.zone.peers.fails], [1, 0, 0])
})

test('a text is an answer, and a target that cannot be found is none', async () => {
  await using side = await udpSide({ kind: 'return', text: ({ remotePort }) => `you are ${remotePort}\n` })
  await using client = await udpClient(side.port)
  assert.equal(await client.ask('x'), `you are ${client.port}\n`)
  const target = () => ({ group: undefined, status: 500, error: 'no host in "$x"' }) as const
  side.use({ kind: 'proxy', group: undefined, target })
  client.send('x')
  await eventually('it is over', () => side.ended.length === 2)
  assert.deepEqual(side.story, ['200', '500'])
  assert.deepEqual(side.notes, ['no host in "$x"'])
  assert.deepEqual([side.tally.own.open, side.tally.own.requests], [0, 0])
})

test('peers get a PROXY header before the first datagram of a session', async () => {
  await using peer = await udpPeer((reply) => reply('x'))
  await using side = await udpSide(udpGroup([peer]), { proxyProtocol: 'v2' })
  await using client = await udpClient(side.port)
  await client.ask('one')
  await client.ask('two')
  const ports = Buffer.alloc(4)
  ports.writeUInt16BE(client.port, 0)
  ports.writeUInt16BE(side.port, 2)
  const head = '\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c\x7f\0\0\x01\x7f\0\0\x01'
  assert.deepEqual(peer.came, [`${head}${ports.toString('latin1')}one`, 'two'])
})

test('with half of the room taken new clients are dropped and counted, and those that are there go on', async () => {
  await using peer = await udpPeer((reply) => reply('x'))
  await using side = await udpSide(udpGroup([peer]), { timeout: 500 }, { limit: 4 })
  await using one = await udpClient(side.port)
  await using two = await udpClient(side.port)
  await using three = await udpClient(side.port)
  await one.ask('1')
  await two.ask('2')
  three.send('3')
  await eventually('it was dropped', () => side.dropped === 1)
  assert.equal(await one.ask('1'), 'x')
  assert.deepEqual([side.tally.own.dropped, side.tally.own.open, side.tally.own.accepted], [1, 2, 2])
  assert.equal(peer.came.join(), '1,2,1')
  await eventually('there is room again', () => side.tally.own.open === 0)
  assert.equal(await three.ask('3'), 'x')
})

test('after the door is closed those that are inside are served, and the socket closes with the last', async () => {
  await using peer = await udpPeer((reply) => reply('x'))
  await using side = await udpSide(udpGroup([peer]))
  await using inside = await udpClient(side.port)
  await using outside = await udpClient(side.port)
  await inside.ask('1')
  side.listeners.stopListening()
  outside.send('2')
  await eventually('it was lost', () => side.lost === 1)
  assert.equal(await inside.ask('3'), 'x')
  side.listeners.closeIdle()
  assert.equal(side.ended.length, 0, 'it was just used')
  side.listeners.end()
  assert.deepEqual(side.story, ['200, ok'])
  await assert.rejects(inside.ask('4', 50))
  assert.equal(peer.came.join(), '1,3')
})

test('an answer that is owed at the end says nothing of the peer', async () => {
  await using silent = await udpPeer()
  const group = udpGroup([silent])
  await using side = await udpSide(group, { responses: 1 })
  await using client = await udpClient(side.port)
  client.send('x')
  await eventually('it came', () => silent.came.length === 1)
  side.listeners.destroy()
  assert.deepEqual(side.story, ['502, aborted client_abort'])
  assert.equal(side.ended[0]!.denial, 'shutdown')
  assert.equal(group.upstream.zone.peers.fails[0], 0)
  assert.equal(group.upstream.zone.peers.conns[0], 0)
})

test('sessions with a peer that has left end after their time of grace, others do not', async () => {
  await using one = await udpPeer((reply) => reply('1'))
  await using two = await udpPeer((reply) => reply('2'))
  const group = udpGroup([one, two])
  await using side = await udpSide(group)
  await using a = await udpClient(side.port)
  await using b = await udpClient(side.port)
  await a.ask('x')
  await b.ask('x')
  side.listeners.endOf([group.upstream.peers[0]!], 300)
  assert.equal(await a.ask('x'), '1')
  await eventually('it is over', () => side.ended.length === 1)
  assert.equal(side.ended[0]!.remotePort, `${a.port}`)
  assert.equal(await b.ask('x'), '2')
})

test('an address that is given up ends its sessions within a moment, and may come back meanwhile', async () => {
  await using peer = await udpPeer((reply) => setTimeout(() => reply('x'), 50))
  await using side = await udpSide(udpGroup([peer]))
  await using client = await udpClient(side.port)
  await using other = await udpClient(side.port)
  client.send('1')
  await eventually('it came', () => peer.came.length === 1)
  const { port } = side
  await side.listeners.apply([])
  assert.deepEqual(side.listeners.addresses(), [])
  other.send('2')
  await eventually('it was lost', () => side.lost === 1)
  assert.equal(String(await client.next()), 'x', 'an answer that was under way')
  await side.listen('127.0.0.1')
  assert.equal(side.port, port, 'it is the same socket')
  side.use(udpGroup([peer]))
  assert.equal(await other.ask('3'), 'x')
  await eventually('the session has ended', () => side.ended.length === 1)
  await side.listeners.apply([])
  await eventually('the other one too', () => side.ended.length === 2)
  // The socket closes a moment after its last session has been recorded.
  await nextTurn()
  await side.listen('127.0.0.1')
  assert.notEqual(side.port, port)
})
