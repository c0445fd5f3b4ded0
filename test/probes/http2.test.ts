import assert from 'node:assert/strict'
import type { ServerHttp2Stream } from 'node:http2'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { http } from '../../probes/http.ts'
import type { Answer, Question } from '../../probes/probe.ts'
import { asking, openSockets, question, rawPeer, socketsBackTo, tcpTarget, told } from '../support/asking.ts'
import { Issuer } from '../support/authority.ts'
import { type FrameAnswer, framePeer } from '../support/frame-peer.ts'
import { endHeaders, endStream, type Frames, fields, frame, settings } from '../support/http2-frames.ts'
import { type Http2Answer, http2Peer, http2TlsPeer, say } from '../support/http2-peer.ts'

const issuer = new Issuer()
after(() => issuer[Symbol.dispose]())

interface Asked extends Partial<Question> {
  readonly max_body?: string
  readonly timeoutMs?: number
}

/** Asks, and sees to it that nothing is left of it. */
async function ask(port: number, { max_body, timeoutMs = 2000, ...over }: Asked = {}): Promise<Answer> {
  const before = openSockets()
  const signal = AbortSignal.timeout(timeoutMs)
  const args = { http_version: '2', ...(max_body === undefined ? {} : { max_body }) } as const
  const answer = await http.check(tcpTarget(port), args, asking({ question: question(over), signal }))
  await socketsBackTo(before)
  return answer
}

/** What comes of asking a peer with this answer. */
async function asked(answer: Http2Answer, over?: Asked): Promise<Answer> {
  await using peer = await http2Peer(answer)
  return await ask(peer.port, over)
}

/** The same of one that answers by frames. */
async function askedFrames(answer: (connection: Frames) => void, over?: Asked): Promise<Answer> {
  const script: FrameAnswer = (connection, { type }) => {
    if (type === 'headers') answer(connection)
  }
  await using peer = await framePeer(script)
  return await ask(peer.port, over)
}

test('the request goes out with its method, target and fields, and Host as the authority', async () => {
  let seen: readonly string[] = []
  await using peer = await http2Peer((stream, _, raw) => {
    seen = raw
    stream.respond({ ':status': 204 }, { endStream: true })
  })
  const headers = [
    'Host',
    'shop.example:99',
    'X-One',
    '\xe9',
    'X-Two',
    '',
    'x-one',
    'again',
    'TE',
    'trailers',
  ]
  const answer = await ask(peer.port, { method: 'OPTIONS', target: '/health?deep=1', headers })
  assert.equal(told(answer), 'open, status 204')
  assert.deepEqual(
    [...seen],
    [
      ...[
        ':method',
        'OPTIONS',
        ':scheme',
        'http',
        ':path',
        '/health?deep=1',
        ':authority',
        'shop.example:99',
      ],
      ...['x-one', '\xe9', 'x-two', '', 'x-one', 'again', 'te', 'trailers'],
    ],
  )
})

test('an empty Host gives way to the address, and what belongs to a connection or a body is not sent', async () => {
  let seen: readonly string[] = []
  await using peer = await http2Peer((stream, _, raw) => {
    seen = raw
    say(stream, '')
  })
  const headers = ['Host', '', 'Connection', 'upgrade', 'Upgrade', 'websocket', 'Keep-Alive', 'timeout=5']
  headers.push('Transfer-Encoding', 'chunked', 'Content-Length', '9', 'Expect', '100-continue', 'TE', 'gzip')
  assert.equal(told(await ask(peer.port, { headers })), 'open, status 200')
  assert.deepEqual(seen.slice(6), [':authority', `127.0.0.1:${peer.port}`])
})

test('each question has a connection of its own, which is closed after it', async () => {
  await using peer = await http2Peer((stream) => say(stream, 'ok'))
  await ask(peer.port)
  await ask(peer.port)
  assert.equal(peer.connections, 2)
})

test('status, fields, body and trailers come as they are, after early hints', async () => {
  const answer = await asked((stream) => {
    stream.additionalHeaders({ ':status': 103, link: '</a>' })
    stream.respond({ ':status': 503, 'x-load': '0.5', 'set-cookie': ['a', 'b'] }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '\xe9' }))
    stream.end('caf\xe9')
  })
  assert.equal(told(answer), 'open, status 503')
  assert.equal(answer.status, 503)
  assert.deepEqual(answer.headers.slice(0, 6), ['x-load', '0.5', 'set-cookie', 'a', 'set-cookie', 'b'])
  assert.equal(Buffer.from(answer.body, 'latin1').toString(), 'caf\xe9')
  assert.deepEqual(answer.trailers, ['x-sum', '\xe9'])
  assert.ok(answer.connectMs! > 0 && answer.connectMs! < answer.headerMs!)
  assert.ok(answer.headerMs! <= answer.responseMs)
})

test('an answer to HEAD has no body, whatever its length says', async () => {
  const answer = await asked(
    (stream) => {
      stream.respond({ ':status': 200, 'content-length': '12' }, { endStream: true })
    },
    { method: 'HEAD' },
  )
  assert.equal(told(answer), 'open, status 200')
  assert.equal(answer.body, '')
})

function endless(stream: ServerHttp2Stream): void {
  stream.respond({ ':status': 200 })
  const more = () => {
    while (!stream.destroyed && stream.write(Buffer.alloc(16_384, 'x')));
  }
  stream.on('drain', more)
  more()
}

test('of an endless body no more is read than was asked for, and the answer counts', async () => {
  const some = await asked(endless, { max_body: '100k' })
  assert.equal(told(some), 'open, status 200')
  assert.equal(some.body.length, 102_400)
  assert.equal((await asked(endless)).body.length, 256 * 1024)
  const none = await asked(endless, { max_body: '0' })
  assert.equal(told(none), 'open, status 200')
  assert.equal(none.body, '')
})

test('a stream that the peer resets, and a connection that it takes back, say so', async () => {
  const reset = await asked((stream) => stream.close(7))
  assert.equal(told(reset), 'open, error reset, RST_STREAM REFUSED_STREAM')
  const away = await asked((stream) => stream.session?.goaway(11))
  assert.equal(told(away), 'open, error closed, GOAWAY ENHANCE_YOUR_CALM')
  await using hasty = await framePeer(
    () => {},
    (connection) => {
      connection.send(frame('settings', 0, 0, settings()))
      connection.send(frame('goaway', 0, 0, Buffer.alloc(8)))
    },
  )
  const early = await ask(hasty.port, { timeoutMs: 300 })
  assert.match(told(early), /^open, (error closed, GOAWAY NO_ERROR|error reset, RST_STREAM REFUSED_STREAM)$/)
})

test('a peer that goes away answers the request that it has', async () => {
  const answer = await asked((stream) => {
    stream.session?.close()
    say(stream, 'last')
  })
  assert.equal(told(answer), 'open, status 200')
  assert.equal(answer.body, 'last')
})

const head = (list: Record<string, string>, flags = endHeaders) => frame('headers', flags, 1, fields(list))
const cuts: readonly (readonly [string, (connection: Frames) => void, RegExp])[] = [
  [
    'that the peer resets',
    (it) =>
      it.send(
        head({ ':status': '200' }),
        frame('data', 0, 1, Buffer.from('0123')),
        frame('reset', 0, 1, Buffer.from([0, 0, 0, 2])),
      ),
    /^RST_STREAM INTERNAL_ERROR$/,
  ],
  [
    'that ends by NO_ERROR, and not in order',
    (it) =>
      it.send(
        head({ ':status': '200' }),
        frame('data', 0, 1, Buffer.from('0123')),
        frame('reset', 0, 1, Buffer.alloc(4)),
      ),
    /./,
  ],
  [
    'that is shorter than its length',
    (it) =>
      it.send(
        head({ ':status': '200', 'content-length': '9' }),
        frame('data', endStream, 1, Buffer.from('0123')),
      ),
    /^RST_STREAM PROTOCOL_ERROR$/,
  ],
  [
    'that ends with the connection',
    (it) => {
      it.send(head({ ':status': '200' }), frame('data', 0, 1, Buffer.from('0123')))
      it.socket.end()
    },
    /./,
  ],
]
for (const [what, script, detail] of cuts) {
  test(`a body ${what} is cut, and what came is kept`, async () => {
    const answer = await askedFrames(script)
    assert.deepEqual(answer.failure, { ending: 'error', reason: 'body_cut' })
    assert.match(answer.detail, detail)
    assert.equal(answer.status, 200)
    assert.equal(answer.body, '0123')
  })
}

for (const [what, list] of [
  ['without a status', { 'x-a': '1' }],
  ['with a name in capitals', { ':status': '200', 'X-A': '1' }],
  ['with a field of a connection', { ':status': '200', connection: 'close' }],
  ['that switches protocols', { ':status': '101' }],
  ['with a status that is none', { ':status': '700' }],
] as const) {
  test(`a head ${what} is none`, async () => {
    const answer = await askedFrames((it) => it.send(head({ ...list }, endHeaders | endStream)))
    assert.deepEqual(answer.failure, { ending: 'invalid_header', reason: 'invalid_header' }, answer.detail)
    assert.notEqual(answer.detail, '')
  })
}

test('a head that is too large is given up', async () => {
  const long = (bytes: number) => (it: Frames) =>
    it.send(head({ ':status': '200', 'x-long': 'a'.repeat(bytes) }, endHeaders | endStream))
  const answer = await askedFrames(long(5000), { maxHead: 4096 })
  assert.equal(told(answer), 'open, invalid_header header_overflow, response head is too large')
  assert.equal((await askedFrames(long(5000), { maxHead: 8192 })).status, 200)
  const huge = await askedFrames((it) => {
    const parts = fields({ ':status': '200', 'x-long': 'a'.repeat(100_000) })
    it.send(frame('headers', endStream, 1, parts.subarray(0, 16_000)))
    for (let at = 16_000; at < parts.length; at += 16_000) {
      const last = at + 16_000 >= parts.length
      it.send(frame('continuation', last ? endHeaders : 0, 1, parts.subarray(at, at + 16_000)))
    }
  })
  assert.equal(huge.failure?.ending, 'invalid_header', told(huge))
  const many = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`x-${i}`, '1']))
  assert.equal(
    (await askedFrames((it) => it.send(head({ ':status': '200', ...many }, endHeaders | endStream)))).status,
    200,
  )
})

test('garbage, and an answer in HTTP/1.1, are told as such', async () => {
  for (const bytes of [
    'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n',
    '\0\0\0\0\0\0\0\0\0',
    'x'.repeat(100),
  ]) {
    await using peer = await rawPeer((socket) => socket.write(bytes))
    const answer = await ask(peer.port)
    assert.deepEqual(answer.failure, { ending: 'invalid_header', reason: 'invalid_header' })
    assert.match(answer.detail, /^no HTTP\/2 answer: /)
  }
})

test('a peer that never says its SETTINGS, or no header, or no end, runs into the time-out', async () => {
  await using mute = await rawPeer()
  const none = await ask(mute.port, { timeoutMs: 50 })
  assert.equal(told(none), 'open, timeout timeout_read, no SETTINGS in time')
  assert.equal(
    told(await asked(() => {}, { timeoutMs: 100 })),
    'open, timeout timeout_read, no header in time',
  )
  const part = await asked(
    (stream) => {
      stream.respond({ ':status': 200 })
      stream.write('0123')
    },
    { timeoutMs: 150 },
  )
  assert.equal(told(part), 'open, timeout body_timeout, no end of the body in time')
  assert.equal(part.body, '0123')
})

test('a peer that hangs up or resets is told as such', async () => {
  await using closing = await rawPeer((socket) => socket.on('data', () => socket.end()))
  assert.equal(
    told(await ask(closing.port)),
    'open, error closed, connection closed by the peer before its SETTINGS',
  )
  await using resetting = await rawPeer((socket) => socket.on('data', () => socket.resetAndDestroy()))
  assert.equal(told(await ask(resetting.port)), 'open, error reset, read ECONNRESET')
})

test('PINGs, SETTINGS and interim answers without end do not keep a probe beyond its time', async () => {
  for (const flood of [
    () => frame('ping', 0, 0, Buffer.alloc(8)),
    () => frame('settings', 0, 0, settings()),
    () => head({ ':status': '102' }),
  ]) {
    const answer = await askedFrames(
      (it) => {
        const timer = setInterval(() => {
          if (it.socket.destroyed) clearInterval(timer)
          else it.send(...Array.from({ length: 20 }, flood))
        }, 1)
        it.socket.on('close', () => clearInterval(timer))
      },
      { timeoutMs: 100 },
    )
    assert.equal(told(answer), 'open, timeout timeout_read, no header in time')
  }
})

test('a field that cannot be sent is no fault of the peer', async () => {
  const answer = await asked(() => {}, { headers: ['Host', 'a', 'X-Bad', 'line\nbreak'] })
  assert.deepEqual(answer.failure, { ending: 'error', reason: 'unreachable', local: true })
  assert.equal(answer.detail, 'invalid X-Bad header')
})

test('inside of TLS the peer has to choose HTTP/2', async () => {
  const good = issuer.issue('good.test', { by: issuer.root() })
  await using peer = await http2TlsPeer((stream, received) => say(stream, String(received[':scheme'])), {
    cert: good.cert,
    key: good.key,
  })
  const secure =
    (alpn: string[]): NonNullable<Question['secure']> =>
    (socket, done) => {
      const tls = connectTls({ socket, ALPNProtocols: alpn, rejectUnauthorized: false })
      tls.once('secureConnect', () => done(tls))
    }
  const answer = await ask(peer.port, { secure: secure(['h2']) })
  assert.equal(told(answer), 'open, status 200')
  assert.equal(answer.body, 'https')
  const other = await ask(peer.port, { secure: secure([]) })
  assert.equal(told(other), 'open, error tls, peer does not choose HTTP/2')
})

test('no timer and no connection is left after many probes of many endings', async () => {
  await using peer = await http2Peer((stream) => {
    const what = peer.requests % 3
    if (what === 0) say(stream, 'ok')
    else if (what === 1) stream.close(2)
    else stream.session?.destroy()
  })
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  for (let i = 0; i < 30; i++) await ask(peer.port)
  await sleep(0)
  assert.ok(timers() <= before, `${timers() - before} timers are left`)
})

test('a field or a method that cannot be sent is nothing the peer has done, and leaves no connection', async () => {
  await using peer = await http2Peer((stream) => stream.end())
  for (const over of [
    { headers: ['X Y', 'b'] },
    { headers: [':x', 'b'] },
    { headers: ['', 'b'] },
    { method: 'CONNECT' },
  ]) {
    const { failure, detail } = await ask(peer.port, over)
    assert.deepEqual(failure, { ending: 'error', reason: 'unreachable', local: true }, JSON.stringify(over))
    assert.match(detail, /^invalid request: /)
  }
})
