import assert from 'node:assert/strict'
import type { Socket } from 'node:dgram'
import { test } from 'node:test'
import { ListenError } from '../../../sidecar/net/bind.ts'
import { bindUdp, tryBindUdp, type UdpBind } from '../../../sidecar/net/bind-udp.ts'
import { freePort } from '../../support/free-port.ts'
import { eventually } from '../../support/invariants.ts'
import { udpClient } from '../../support/udp-client.ts'

const at = (port: number, host = '127.0.0.1'): UdpBind => ({
  key: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`,
  address: { kind: 'tcp', host, port },
})

/** Closes sockets at the end of a test. */
class Sockets implements Disposable {
  readonly #all: Socket[] = []

  async open(bind: UdpBind, shared = false): Promise<Socket> {
    const socket = await bindUdp(bind, shared)
    this.#all.push(socket)
    return socket
  }

  [Symbol.dispose](): void {
    for (const socket of this.#all) socket.close()
  }
}

test('an address that somebody else has is told of in the words of nginx', async () => {
  using sockets = new Sockets()
  const port = await freePort()
  await sockets.open(at(port))
  for (const attempt of [bindUdp(at(port), false), tryBindUdp(at(port))]) {
    await assert.rejects(attempt, (error) => {
      assert.ok(error instanceof ListenError)
      assert.equal(error.message, `bind() to 127.0.0.1:${port} failed (98: Address already in use)`)
      return true
    })
  }
  await assert.rejects(bindUdp(at(port, '192.0.2.1'), false), {
    message: `bind() to 192.0.2.1:${port} failed (99: Cannot assign requested address)`,
  })
})

test('trying leaves the address free, and finds a port where none is said', async () => {
  using sockets = new Sockets()
  const { port } = await tryBindUdp(at(0))
  assert.ok(port > 0)
  await sockets.open(at(port))
})

test('all addresses of IPv4 and all of IPv6 are taken side by side, and TCP has ports of its own', async () => {
  using sockets = new Sockets()
  const port = await freePort()
  const four = await sockets.open(at(port, '0.0.0.0'))
  const six = await sockets.open(at(port, '::'))
  const came: string[] = []
  four.on('message', (_datagram, { address }) => came.push(`four ${address}`))
  six.on('message', (_datagram, { address }) => came.push(`six ${address}`))
  await using one = await udpClient(port)
  await using two = await udpClient(port, { host: '::1' })
  one.send('x')
  two.send('x')
  await eventually('both came', () => came.length === 2)
  assert.deepEqual(came.toSorted(), ['four 127.0.0.1', 'six ::1'])
})

test('of those who share an address each client has one, and all of them have some', async () => {
  using sockets = new Sockets()
  const port = await freePort()
  const seen = new Map<number, Set<number>>()
  for (let i = 0; i < 2; i++) {
    const socket = await sockets.open(at(port), true)
    socket.on('message', (_datagram, from) => {
      seen.set(from.port, (seen.get(from.port) ?? new Set()).add(i))
    })
  }
  const clients = await Promise.all(Array.from({ length: 40 }, () => udpClient(port)))
  for (const client of clients) for (let i = 0; i < 3; i++) client.send('x')
  await eventually('all came', () => seen.size === 40)
  assert.ok([...seen.values()].every((sockets) => sockets.size === 1))
  assert.equal(new Set([...seen.values()].flatMap((sockets) => [...sockets])).size, 2)
  for (const client of clients) await client[Symbol.asyncDispose]()
})
