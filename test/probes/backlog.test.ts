import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backlog, backlogKind } from '../../probes/backlog.ts'
import type { Answer } from '../../probes/probe.ts'
import { SocketTable } from '../../probes/socket-table.ts'
import { asking, rawPeer, tcpTarget, told } from '../support/asking.ts'
import { deafPeer } from '../support/deaf-peer.ts'
import { freePort } from '../support/free-port.ts'

/** The verdict with a reading of its own. */
function ask(port: number, limit: number, failing = false, host = '127.0.0.1'): Promise<Answer> {
  return backlogKind(new SocketTable()).check(tcpTarget(port, host), { limit }, asking({ failing }))
}

test('a queue passes below the limit and fails from it on', async () => {
  await using peer = await deafPeer()
  assert.equal(told(await ask(peer.port, 10)), 'passed, queue 0 of 10')
  await peer.fill(9)
  assert.equal(told(await ask(peer.port, 10)), 'passed, queue 9 of 10')
  await peer.fill(1)
  assert.equal(told(await ask(peer.port, 10)), 'not passed, queue 10 of 10')
  assert.equal(told(await ask(peer.port, 11)), 'passed, queue 10 of 11')
})

test('a peer whose probe failed passes again only when its queue is empty', async () => {
  await using peer = await deafPeer()
  await peer.fill(3)
  assert.equal(told(await ask(peer.port, 10, true)), 'not passed, queue 3 of 10')
  peer.hear()
  for (const end = performance.now() + 5000; ; await sleep(5)) {
    const answer = await ask(peer.port, 10, true)
    if (answer.passed) {
      assert.equal(told(answer), 'passed, queue 0 of 10')
      break
    }
    assert.ok(performance.now() < end, told(answer))
  }
})

test('a full queue, to which no connection comes through any more, is seen', async () => {
  await using peer = await deafPeer({ backlog: 4 })
  await peer.fill(5)
  assert.equal(told(await ask(peer.port, 5)), 'not passed, queue 5 of 5')
})

test('listeners on all addresses, of IPv4 and of IPv6, are found', async () => {
  await using v4 = await deafPeer({ host: '0.0.0.0' })
  await v4.fill(2, '127.0.0.1')
  assert.equal(told(await ask(v4.port, 9)), 'passed, queue 2 of 9')
  await using v6 = await deafPeer({ host: '::' })
  await v6.fill(3, '127.0.0.1')
  assert.equal(told(await ask(v6.port, 9)), 'passed, queue 3 of 9')
  assert.equal(told(await ask(v6.port, 9, false, '::1')), 'passed, queue 3 of 9')
  await using one = await deafPeer({ host: '::1' })
  await one.fill(1)
  assert.equal(told(await ask(one.port, 9, false, '::1')), 'passed, queue 1 of 9')
})

test('of listeners that share a port the fullest counts', async () => {
  await using first = await deafPeer({ reusePort: true })
  await using second = await deafPeer({ reusePort: true, port: first.port })
  assert.equal(second.port, first.port)
  await first.fill(16)
  const { passed, detail } = await ask(first.port, 16)
  const queue = Number(/^queue (\d+) of 16$/.exec(detail)?.[1])
  // The kernel spreads the connections over both: neither has all, and one has at least half of them.
  assert.ok(queue >= 8 && queue <= 16, detail)
  assert.equal(passed, queue < 16)
})

test('where nobody listens the peer is refused', async () => {
  const port = await freePort()
  assert.equal(
    told(await ask(port, 1)),
    `not passed, error refused, nobody listens on port ${port} of 127.0.0.1`,
  )
})

test('thousands of connections are not read through, and probes that fall due together share a reading', async (t) => {
  await using peer = await rawPeer()
  await using clients = new AsyncDisposableStack()
  const connections = 1000
  for (let i = 0; i < connections; i++) {
    const socket = connect(peer.port, '127.0.0.1')
    clients.defer(() => void socket.destroy())
    await once(socket, 'connect')
  }
  while (peer.accepted < connections) await sleep(1)
  const count = countReads(t)
  const kind = backlogKind(new SocketTable())
  const answers = await Promise.all(
    Array.from({ length: 200 }, () => kind.check(peer.target, { limit: 10 }, asking())),
  )
  assert.deepEqual([...new Set(answers.map(told))], ['passed, queue 0 of 10'])
  assert.equal(count.opened, 1)
  // All of them would be some 75 pages of 4096 bytes.
  assert.ok(count.bytes < 10 * 4096, `${count.bytes} bytes read`)
  await sleep(6)
  await kind.check(peer.target, { limit: 10 }, asking())
  assert.equal(count.opened, 2)
})

/** Counts what is read of the tables from now on. */
function countReads(t: TestContext): { opened: number; bytes: number } {
  const count = { opened: 0, bytes: 0 }
  const open = fs.open
  t.mock.method(fs, 'open', async (...args: Parameters<typeof fs.open>) => {
    const file = await open(...args)
    count.opened += 1
    const read = file.read.bind(file) as (...args: unknown[]) => Promise<{ bytesRead: number }>
    file.read = (async (...args: unknown[]) => {
      const result = await read(...args)
      count.bytes += result.bytesRead
      return result
    }) as typeof file.read
    return file
  })
  // The table's own import of it follows only when told to.
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  return count
}

test('what cannot be seen leaves the verdict as it was, and is told at start', async () => {
  const kind = backlogKind(new SocketTable({ v4: '/nowhere/tcp', v6: '/nowhere/tcp6' }))
  const error = "ENOENT: no such file or directory, open '/nowhere/tcp'"
  assert.equal(await kind.caveat(), `accept queues cannot be read: ${error}`)
  const fine = await kind.check(tcpTarget(1), { limit: 1 }, asking())
  assert.equal(told(fine), `passed, error unreachable, accept queue not seen: ${error}`)
  assert.equal(fine.failure?.local, true)
  const failing = await kind.check(tcpTarget(1), { limit: 1 }, asking({ failing: true }))
  assert.equal(failing.passed, false)
  assert.equal(await backlog.caveat(), undefined)
})

test('peers that have no queue here are refused by name', () => {
  assert.equal(backlog.misfit({ kind: 'unix', path: '/x' }), 'type=backlog needs a TCP peer')
  assert.equal(backlog.misfit(tcpTarget(1).address), undefined)
  assert.equal(backlog.misfit(tcpTarget(1, '::1').address), undefined)
  const elsewhere = (host: string) => `type=backlog needs a peer on this host, which "${host}" is not`
  assert.equal(backlog.misfit(tcpTarget(1, '198.51.100.7').address), elsewhere('198.51.100.7'))
  assert.equal(backlog.misfit(tcpTarget(1, 'shop.example').address), elsewhere('shop.example'))
})
