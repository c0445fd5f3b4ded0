import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as httpServer } from 'node:http'
import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { grpc } from '../../probes/grpc.ts'
import type { Answer } from '../../probes/probe.ts'
import { asking, openSockets, rawPeer, socketsBackTo, tcpTarget, told } from '../support/asking.ts'

type Headers = Record<string, string | number>

/** What it sees of a request. */
interface Seen {
  readonly headers: Headers
  readonly body: string
}

/** A gRPC server with one answer for all calls. */
class Peer implements AsyncDisposable {
  readonly seen: Seen[] = []
  readonly #server = createServer()
  readonly #sessions = new Set<ServerHttp2Session>()

  constructor(script: (stream: ServerHttp2Stream) => void) {
    this.#server.on('session', (session) => {
      this.#sessions.add(session)
      session.on('close', () => this.#sessions.delete(session))
      session.on('error', () => {})
    })
    this.#server.on('stream', async (stream: ServerHttp2Stream, headers) => {
      stream.on('error', () => {})
      const pieces: Buffer[] = []
      stream.on('data', (piece: Buffer) => pieces.push(piece))
      await once(stream, 'end')
      // What was sent has no lists.
      this.seen.push({ headers: { ...headers } as Headers, body: Buffer.concat(pieces).toString('hex') })
      script(stream)
    })
  }

  async listen(host = '127.0.0.1'): Promise<this> {
    this.#server.listen(0, host)
    await once(this.#server, 'listening')
    return this
  }

  get port(): number {
    // It listens on a port.
    return (this.#server.address() as AddressInfo).port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const session of this.#sessions) session.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/** The usual answer: header, message, trailers. */
function answering(message: readonly number[], trailers: Headers = { 'grpc-status': '0' }) {
  return (stream: ServerHttp2Stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers(trailers))
    stream.end(Buffer.from([0, 0, 0, 0, message.length, ...message]))
  }
}

/** All in one frame of headers, as gRPC's servers do it where there is no message. */
function trailersOnly(status: string, message?: string) {
  return (stream: ServerHttp2Stream) => {
    const headers = { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': status }
    stream.respond(message === undefined ? headers : { ...headers, 'grpc-message': message }, {
      endStream: true,
    })
  }
}

async function ask(port: number, service?: string, timeoutMs = 2000): Promise<Answer> {
  const before = openSockets()
  const signal = AbortSignal.timeout(timeoutMs)
  const answer = await grpc.check(
    tcpTarget(port),
    service === undefined ? {} : { service },
    asking({ signal }),
  )
  await socketsBackTo(before)
  return answer
}

/** What comes of asking a server with this answer. */
async function asked(script: (stream: ServerHttp2Stream) => void, timeoutMs?: number): Promise<Answer> {
  await using peer = await new Peer(script).listen()
  return await ask(peer.port, undefined, timeoutMs)
}

test('SERVING passes, and the call is the one of the health service', async () => {
  await using peer = await new Peer(answering([8, 1])).listen()
  const answer = await ask(peer.port, 'shop.Cart')
  assert.equal(told(answer), 'passed, SERVING')
  assert.equal(answer.status, 200)
  assert.deepEqual(answer.headers.slice(0, 2), ['content-type', 'application/grpc'])
  assert.deepEqual(answer.trailers, ['grpc-status', '0'])
  assert.ok(answer.connectMs! > 0 && answer.connectMs! < answer.headerMs!)
  const [{ headers = {}, body = '' } = {}] = peer.seen
  assert.equal(headers[':method'], 'POST')
  assert.equal(headers[':scheme'], 'http')
  assert.equal(headers[':path'], '/grpc.health.v1.Health/Check')
  assert.equal(headers[':authority'], `127.0.0.1:${peer.port}`)
  assert.equal(headers['te'], 'trailers')
  assert.equal(headers['content-type'], 'application/grpc')
  assert.equal(body, `000000000b0a09${Buffer.from('shop.Cart').toString('hex')}`)
})

test('without a service the server as a whole is asked after, over IPv6 too', async () => {
  await using peer = await new Peer(answering([8, 1])).listen('::1')
  const answer = await grpc.check(tcpTarget(peer.port, '::1'), {}, asking())
  assert.equal(told(answer), 'passed, SERVING')
  assert.equal(peer.seen[0]?.body, '0000000000')
  assert.equal(peer.seen[0]?.headers[':authority'], `[::1]:${peer.port}`)
})

test('every other status does not pass, and is said', async () => {
  assert.equal(told(await asked(answering([8, 2]))), 'not passed, NOT_SERVING')
  assert.equal(told(await asked(answering([8, 3]))), 'not passed, SERVICE_UNKNOWN')
  assert.equal(told(await asked(answering([]))), 'not passed, UNKNOWN')
})

test('a grpc-status other than 0 does not pass, whatever the message', async () => {
  const late = await asked(answering([8, 1], { 'grpc-status': '13', 'grpc-message': 'lost%20it%0A' }))
  assert.equal(told(late), 'not passed, grpc-status 13 INTERNAL: lost it\\x0a')
  const only = await asked(trailersOnly('5', 'unknown service'))
  assert.equal(told(only), 'not passed, grpc-status 5 NOT_FOUND: unknown service')
  assert.equal(only.failure, undefined)
  assert.equal(told(await asked(trailersOnly('12'))), 'not passed, grpc-status 12 UNIMPLEMENTED')
  assert.equal(told(await asked(trailersOnly('14', '100%'))), 'not passed, grpc-status 14 UNAVAILABLE: 100%')
})

test('an answer that is none of gRPC does not pass', async () => {
  const page = await asked((stream) => {
    stream.respond({ ':status': 404 })
    stream.end('no such page')
  })
  assert.equal(told(page), 'not passed, status 404 without grpc-status')
  assert.equal(page.status, 404)
  const bare = await asked((stream) => {
    stream.respond({ ':status': 200 }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end('x')
  })
  assert.equal(told(bare), 'not passed, malformed answer')
})

test('an answer without end is not read on', async () => {
  const answer = await asked((stream) => {
    stream.respond({ ':status': 200 })
    const more = () => {
      while (!stream.destroyed && stream.write(Buffer.alloc(1000)));
    }
    stream.on('drain', more)
    more()
  })
  assert.equal(told(answer), 'not passed, answer of more than 4096 bytes')
})

test('a stream that the server resets, and a connection that it takes back, say so', async () => {
  const reset = await asked((stream) => stream.close(7))
  assert.equal(told(reset), 'not passed, error reset, RST_STREAM REFUSED_STREAM')
  const away = await asked((stream) => stream.session?.goaway(11))
  assert.equal(told(away), 'not passed, error closed, GOAWAY ENHANCE_YOUR_CALM')
})

test('a server that goes away answers the call that it has', async () => {
  const answer = await asked((stream) => {
    stream.session?.close()
    answering([8, 1])(stream)
  })
  assert.equal(told(answer), 'passed, SERVING')
})

test('a connection that ends within the answer gave none', async () => {
  const answer = await asked(async (stream) => {
    stream.respond({ ':status': 200 })
    stream.write(Buffer.from([0, 0, 0, 0, 2, 8, 1]))
    await sleep(20)
    stream.session?.destroy()
  })
  assert.equal(answer.passed, false)
  assert.equal(answer.failure?.ending, 'error')
})

test('a message without its trailers is no answer', async () => {
  const answer = await asked((stream) => {
    stream.respond({ ':status': 200 })
    stream.write(Buffer.from([0, 0, 0, 0, 2, 8, 1]))
  }, 100)
  assert.equal(told(answer), 'not passed, timeout timeout_read, no answer in time')
})

test('a peer that does not speak HTTP/2 is told as such', async () => {
  const one: Server = httpServer((_request, response) => response.end('hello'))
  one.listen(0, '127.0.0.1')
  await once(one, 'listening')
  // It listens on a port.
  const answer = await ask((one.address() as AddressInfo).port)
  one.close()
  assert.deepEqual(answer.failure, { ending: 'invalid_header', reason: 'invalid_header' })
  assert.match(answer.detail, /^no HTTP\/2 answer: /)
})

test('a peer that hangs up or resets is told as such', async () => {
  await using closing = await rawPeer((socket) => socket.on('data', () => socket.end()))
  assert.equal(
    told(await ask(closing.port)),
    'not passed, error closed, connection closed by the peer before its SETTINGS',
  )
  await using resetting = await rawPeer((socket) => socket.on('data', () => socket.resetAndDestroy()))
  assert.equal(told(await ask(resetting.port)), 'not passed, error reset, read ECONNRESET')
})
