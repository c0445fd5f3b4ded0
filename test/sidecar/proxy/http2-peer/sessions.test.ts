import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { HeadFault, ResponseHead } from '../../../../sidecar/proxy/http1/head.ts'
import { PeerSessions } from '../../../../sidecar/proxy/http2-peer/sessions.ts'
import type { PeerStream } from '../../../../sidecar/proxy/http2-peer/stream.ts'
import type { StreamEvents } from '../../../../sidecar/proxy/http2-peer/stream-home.ts'
import { http2Peer, say } from '../../../support/http2-peer.ts'
import { until } from '../../../support/until.ts'

const limits = { keepalive: 32, requests: 1000, time: 3_600_000, timeout: 60_000 }

/** Sessions, and how many of them are counted as idle. */
function keeper(options: Partial<typeof limits> = {}) {
  const left = new Set<string>()
  const kept = {
    idle: 0,
    options: { ...limits, ...options },
    full: false,
    left: (key: string) => left.has(key),
    count(change: 1 | -1) {
      kept.idle += change
    },
  }
  return { kept, left, sessions: new PeerSessions(kept) }
}

/** All that a stream tells. */
class Heard implements StreamEvents {
  readonly stream: PeerStream
  head_: ResponseHead | undefined
  interims: number[] = []
  body = ''
  trailers: string[] | undefined
  /** How it ended. */
  how = ''
  readonly over: Promise<string>
  #resolve: (how: string) => void = () => {}

  constructor(stream: PeerStream, head: string, body: 'none' | 'plain' = 'none', maxHead = 8192) {
    this.over = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.stream = stream
    stream.begin(this, { method: 'GET', upgrade: false }, maxHead)
    stream.send(head, body)
  }

  interim(status: number) {
    this.interims.push(status)
  }
  head(head: ResponseHead) {
    this.head_ = head
  }
  data(chunk: Buffer) {
    this.body += chunk.toString('latin1')
  }
  end(trailers: string[] | undefined) {
    this.trailers = trailers
    this.#over('end')
  }
  fault({ reason }: HeadFault) {
    this.#over(`fault ${reason}`)
  }
  lost(error: NodeJS.ErrnoException | undefined) {
    this.#over(`lost ${error?.message ?? ''}`)
  }
  refused() {
    this.#over('refused')
  }
  unsent(detail: string) {
    this.#over(`unsent ${detail}`)
  }
  drain() {}
  activity() {}

  #over(how: string) {
    assert.equal(this.how, '', 'told once how it ends')
    this.how = how
    this.#resolve(how)
  }
}

const get = 'GET /a?b HTTP/1.1\r\nHost: h.example\r\nConnection: close\r\nX-One: 1\r\n\r\n'
const target = (port: number) => ({
  name: `127.0.0.1:${port}`,
  address: { kind: 'tcp', host: '127.0.0.1', port } as const,
})

/** Opens a session, or takes a stream of one that is there. */
function open(sessions: PeerSessions, { port }: { readonly port: number }): Promise<PeerStream> {
  const peer = target(port)
  const taken = sessions.take(peer.name, performance.now())
  if (taken !== undefined) return Promise.resolve(taken)
  return new Promise((resolve, reject) => {
    sessions.open(peer, undefined, (result) => (result instanceof Error ? reject(result) : resolve(result)))
  })
}

function frame(type: number, flags: number, id: number, payload = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(id, 5)
  return Buffer.concat([head, payload])
}

/** Tells the type and the stream of each frame that comes after the preface. */
function readFrames(socket: Socket, each: (type: number, id: number) => void): void {
  let rest = Buffer.alloc(0)
  let begun = false
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    if (!begun && rest.length >= 24) {
      begun = true
      rest = rest.subarray(24)
    }
    while (begun && rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      each(rest[3]!, rest.readUInt32BE(5))
      rest = rest.subarray(9 + rest.readUIntBE(0, 3))
    }
  })
}

async function ask(sessions: PeerSessions, peer: { readonly port: number }): Promise<Heard> {
  return new Heard(await open(sessions, peer), get)
}

test('a request goes as HTTP/2 has it, and its answer comes with what went before and after it', async () => {
  let seen: readonly string[] = []
  await using peer = await http2Peer((stream, _, raw) => {
    seen = raw
    stream.additionalHeaders({ ':status': 103, link: 'x' })
    stream.respond({ ':status': 201, 'x-two': ['1', '2'], 'x-latin': '\xe9' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '9' }))
    stream.end('body')
  })
  const { sessions } = keeper()
  const heard = await ask(sessions, peer)
  assert.equal(await heard.over, 'end')
  assert.deepEqual(seen, [
    ...[':method', 'GET', ':scheme', 'http', ':path', '/a?b', ':authority', 'h.example'],
    ...['x-one', '1'],
  ])
  assert.deepEqual(heard.interims, [103])
  assert.equal(heard.head_?.status, 201)
  assert.deepEqual(heard.head_?.headers.slice(0, 6), ['x-two', '1', 'x-two', '2', 'x-latin', '\xe9'])
  assert.equal(heard.body, 'body')
  assert.deepEqual(heard.trailers, ['x-sum', '9'])
  sessions.leave(peer.address)
})

test('one connection carries many streams, and rests where none is left', async () => {
  await using peer = await http2Peer((stream) => say(stream))
  const { kept, sessions } = keeper()
  await (await ask(sessions, peer)).over
  const many = await Promise.all(Array.from({ length: 50 }, () => ask(sessions, peer)))
  assert.equal(kept.idle, 0)
  assert.deepEqual(new Set(await Promise.all(many.map(({ over }) => over))), new Set(['end']))
  assert.equal(peer.connections, 1)
  await until(() => kept.idle === 1)
  sessions.leave(peer.address)
  assert.equal(kept.idle, 0)
})

test('a connection for which there is no room closes once its streams are over', async () => {
  await using peer = await http2Peer((stream) => say(stream))
  const { kept, sessions } = keeper()
  kept.full = true
  assert.equal(await (await ask(sessions, peer)).over, 'end')
  await until(() => sessions.size === 0)
  assert.equal(kept.idle, 0)
})

test('whoever comes while a connection is made waits for it', async () => {
  await using peer = await http2Peer((stream) => say(stream))
  const { sessions } = keeper()
  const many = await Promise.all(Array.from({ length: 100 }, () => ask(sessions, peer)))
  await Promise.all(many.map(({ over }) => over))
  assert.equal(peer.connections, 1)
  sessions.leave(peer.address)
})

test('there are as many connections as the peer’s limit of streams needs', async () => {
  const waiting: (() => void)[] = []
  await using peer = await http2Peer(
    (stream) => {
      waiting.push(() => say(stream))
    },
    { settings: { maxConcurrentStreams: 10 } },
  )
  const { sessions } = keeper()
  const many = await Promise.all(Array.from({ length: 35 }, () => ask(sessions, peer)))
  await until(() => waiting.length === 35)
  assert.equal(peer.connections, 4)
  assert.equal(sessions.size, 4)
  for (const go of waiting) go()
  assert.deepEqual(new Set(await Promise.all(many.map(({ over }) => over))), new Set(['end']))
  sessions.leave(peer.address)
})

test('a peer that takes no streams, or closes at once, is not asked for ever', async () => {
  await using barren = await http2Peer(() => {}, { settings: { maxConcurrentStreams: 0 } })
  const { sessions } = keeper()
  await assert.rejects(open(sessions, barren), /takes no streams/)
  sessions.leave(barren.address)
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  await assert.rejects(open(sessions, { port }), /closed|ECONNRESET|EPIPE/)
  server.close()
})

test('a peer that does not speak HTTP/2 is told apart', async () => {
  const server = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')).listen(
    0,
    '127.0.0.1',
  )
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const { sessions } = keeper()
  await assert.rejects(open(sessions, { port }), { code: 'ERR_HTTP2_ERROR' })
  server.close()
})

test('after GOAWAY streams that run go on, those not looked at are refused, and new ones get another connection', async () => {
  const streams: (() => void)[] = []
  await using peer = await http2Peer((stream) => {
    streams.push(() => say(stream, 'late'))
  })
  const { sessions } = keeper()
  const first = await ask(sessions, peer)
  await until(() => streams.length === 1)
  const second = await ask(sessions, peer)
  await until(() => streams.length === 2)
  // As if it had not seen the second one.
  peer.sessions[0]!.goaway(0, 1)
  assert.equal(await second.over, 'refused')
  const third = await ask(sessions, peer)
  await until(() => streams.length === 3)
  assert.equal(peer.connections, 2)
  for (const go of streams) go()
  assert.equal(await first.over, 'end')
  assert.equal(first.body, 'late')
  assert.equal(await third.over, 'end')
  sessions.leave(peer.address)
})

test('a stream that the peer refuses was not looked at; any other end is a loss', async () => {
  let code = 7
  await using peer = await http2Peer((stream) => stream.close(code))
  const { sessions } = keeper()
  assert.equal(await (await ask(sessions, peer)).over, 'refused')
  for (const [other, how] of [
    [2, 'lost stream ended by INTERNAL_ERROR'],
    [8, 'lost stream ended by CANCEL'],
    [11, 'lost stream ended by ENHANCE_YOUR_CALM'],
    [1, 'fault invalid_header'],
  ] as const) {
    code = other
    assert.equal(await (await ask(sessions, peer)).over, how)
  }
  assert.equal(peer.connections, 1)
  sessions.leave(peer.address)
})

test('an answer that breaks off is never taken for a whole one', async () => {
  /** The code that the stream is ended with; undefined cuts the connection. */
  let code: number | undefined
  // Frame by frame: a server of Node's first ends a stream in order.
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.write(frame(4, 0, 0))
    readFrames(socket, (type, id) => {
      if (type !== 1) return
      socket.write(Buffer.concat([frame(1, 4, id, Buffer.of(0x88)), frame(0, 0, id, Buffer.from('half'))]))
      setTimeout(() => {
        if (code === undefined) socket.destroy()
        else socket.write(frame(3, 0, id, Buffer.of(0, 0, 0, code)))
      }, 20)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const { sessions } = keeper()
  try {
    for (const one of [2, 8, 0, undefined]) {
      code = one
      const heard = await ask(sessions, { port })
      assert.match(await heard.over, /^lost/, `code ${one}`)
      assert.equal(heard.body, 'half')
    }
  } finally {
    server.close()
  }
})

test('a head that is too large is refused', async () => {
  await using peer = await http2Peer((stream) => {
    stream.respond({ ':status': 200, 'x-large': 'a'.repeat(5000) })
    stream.end()
  })
  const { sessions } = keeper()
  const heard = new Heard(await open(sessions, peer), get, 'none', 4096)
  assert.equal(await heard.over, 'fault header_overflow')
  sessions.leave(peer.address)
})

test('whoever gives up tells the peer, and leaves the other streams alone', async () => {
  await using peer = await http2Peer(() => {})
  const { sessions } = keeper()
  const [one, two] = [await ask(sessions, peer), await ask(sessions, peer)]
  await until(() => peer.requests === 2)
  one.stream.destroy()
  await until(() => peer.resets.length === 1)
  assert.deepEqual(peer.resets, [8])
  assert.equal(two.how, '')
  two.stream.destroy()
  sessions.leave(peer.address)
  assert.equal(one.how, '')
})

test('an answer goes on no further than it is read', async () => {
  let written = 0
  await using peer = await http2Peer((stream) => {
    stream.respond({ ':status': 200 })
    const more = () => {
      while (written < 4_000_000) {
        written += 16_384
        if (!stream.write(Buffer.alloc(16_384, 'x'))) {
          stream.once('drain', more)
          return
        }
      }
      stream.end()
    }
    more()
  })
  const { sessions } = keeper()
  const heard = await ask(sessions, peer)
  await until(() => heard.body !== '')
  heard.stream.pause()
  const read = heard.body.length
  let before = -1
  await until(() => {
    const still = written === before
    before = written
    return still
  })
  assert.ok(written - read < 500_000, `${written - read} bytes were taken`)
  // Another stream of the session is not held up by it.
  const other = await open(sessions, peer)
  other.destroy()
  heard.stream.resume()
  assert.equal(await heard.over, 'end')
  assert.equal(heard.body.length, written)
  sessions.leave(peer.address)
})

test('a connection carries so many streams, and is so old, as the group says', async () => {
  await using peer = await http2Peer((stream) => say(stream))
  const { sessions } = keeper({ requests: 3 })
  for (let i = 0; i < 7; i++) await (await ask(sessions, peer)).over
  assert.equal(peer.connections, 3)
  sessions.leave(peer.address)
  await using other = await http2Peer((stream) => say(stream))
  const { sessions: short, kept } = keeper({ keepalive: 0 })
  for (let i = 0; i < 2; i++) {
    await (await ask(short, other)).over
    await until(() => other.sessions.length === 0)
  }
  assert.equal(other.connections, 2)
  assert.equal(kept.idle, 0)
  short.leave(other.address)
})

test('connections to a peer that has left close once their streams are over', async () => {
  const streams: (() => void)[] = []
  await using peer = await http2Peer((stream) => {
    streams.push(() => say(stream))
  })
  const { sessions, left } = keeper()
  const heard = await ask(sessions, peer)
  await until(() => streams.length === 1)
  left.add(peer.address)
  sessions.leave(peer.address)
  assert.equal(sessions.size, 0)
  streams[0]!()
  assert.equal(await heard.over, 'end')
  await until(() => peer.sessions.length === 0)
})

test('a connection whose peer is silent is asked, used no more meanwhile, and given up', async (t) => {
  const held: Socket[] = []
  let deaf = false
  await using peer = await http2Peer(() => {})
  const relay = createServer((socket) => {
    held.push(socket)
    const link = new (socket.constructor as typeof Socket)()
    link.connect(peer.port, '127.0.0.1')
    socket.on('data', (chunk) => deaf || link.write(chunk))
    link.on('data', (chunk) => deaf || socket.write(chunk))
    socket.on('error', () => {}).on('close', () => link.destroy())
    link.on('error', () => {}).on('close', () => socket.destroy())
  }).listen(0, '127.0.0.1')
  await once(relay, 'listening')
  t.after(() => relay.close())
  const { port } = relay.address() as { port: number }
  const { sessions } = keeper()
  const heard = await ask(sessions, { port })
  await until(() => peer.requests === 1)
  const late = await ask(sessions, { port })
  await until(() => peer.requests === 2)
  // What was said on both sides as the connection was made has come by now.
  await sleep(30)
  deaf = true
  const unheard = await ask(sessions, { port })
  t.mock.timers.enable({ apis: ['setTimeout'] })
  late.stream.late()
  assert.equal(sessions.take(target(port).name, performance.now()), undefined)
  t.mock.timers.tick(5000)
  t.mock.timers.reset()
  assert.equal(await heard.over, 'lost peer has not answered a PING')
  // That is the peer's failure, and not one of a connection that was kept for too long.
  assert.equal(unheard.stream.untouched, false)
})
