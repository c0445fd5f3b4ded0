import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { monotonic } from '../../../../feedback/clock.ts'
import { ClientConnection, type ClientEvents } from '../../../../sidecar/proxy/http1/client-connection.ts'
import type { ClientRequest } from '../../../../sidecar/proxy/http1/client-request.ts'
import type { ClientResponse } from '../../../../sidecar/proxy/http1/client-response.ts'
import { fc } from '../../../support/property.ts'

/** A socket without a network: what is pushed comes from the client, and what is written is kept. */
class Wire extends Duplex {
  sent = ''
  constructor() {
    super({ allowHalfOpen: true, decodeStrings: false })
  }
  override _read(): void {}
  override _write(chunk: string | Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.sent += typeof chunk === 'string' ? chunk : chunk.toString('latin1')
    done()
  }
  destroySoon(): void {
    this.end(() => this.destroy())
  }
}

interface Script {
  /** What is done with a request; by default its body is read, and an answer names both. */
  readonly serve?: (request: ClientRequest, response: ClientResponse, told: string[]) => void
  readonly listens?: boolean
  readonly maxHead?: number
}

/** A connection, and what it tells, one word a fact. */
function connected({ serve = echo, listens = false, maxHead = 200 }: Script = {}) {
  const wire = new Wire()
  const told: string[] = []
  const events: ClientEvents = {
    request: (request, response) => serve(request, response, told),
    unserved: ({ status, method }) => {
      told.push(`${status}${method === '' ? '' : ` ${method}`}`)
      connection.refuse(`refused ${status}`)
    },
    malformed: (status) => {
      told.push(`malformed ${status}`)
      connection.refuse(`refused ${status}`)
    },
    left: () => listens,
    over: (response) => {
      if (!response.finished) told.push('left')
      connection.next()
    },
    closed: () => told.push('closed'),
  }
  const place = { spec: { headerTimeout: 1000, keepaliveTimeout: 500, maxHead } }
  // What the connection uses of a socket is there.
  const socket = wire as Duplex as Socket
  const connection = new ClientConnection(socket, 1, place, events)
  return { wire, told, connection }
}

function echo(request: ClientRequest, response: ClientResponse, told: string[]): void {
  let body = ''
  const { head } = request
  const answer = () => {
    told.push(`${head.method} ${head.target} ${head.framing}(${body})`)
    response.writeHead(200, 'OK', ['Content-Length', String(head.target.length)])
    response.write(Buffer.from(head.target))
    response.end()
  }
  if (request.complete) {
    answer()
    return
  }
  request.take({
    data: (chunk) => {
      body += chunk.toString('latin1')
    },
    end: answer,
    aborted: () => told.push(`aborted(${body})`),
  })
  request.resume()
}

async function feed(wire: Wire, pieces: readonly string[]): Promise<void> {
  for (const piece of pieces) {
    wire.push(Buffer.from(piece, 'latin1'))
    await turn()
  }
}

const whole = [
  'GET /a HTTP/1.1\r\nHost: x\r\n\r\n',
  'POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello',
  '\r\nPUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;x=1\r\nabc\r\n2\r\nde\r\n0\r\nX-T: 1\r\n\r\n',
  'HEAD /d HTTP/1.1\r\nHost: x\r\n\r\n',
].join('')
const wholeTold = ['GET /a none()', 'POST /b length(hello)', 'PUT /c chunked(abcde)', 'HEAD /d none()']

test('requests that come in one piece are read and answered one after another', async () => {
  const { wire, told } = connected()
  await feed(wire, [whole])
  assert.deepEqual(told, wholeTold)
  assert.equal(wire.sent.match(/HTTP\/1\.1 200 OK\r\n/g)?.length, 4)
  assert.match(wire.sent, /Content-Length: 2\r\nConnection: keep-alive\r\n\r\n\/a/)
  assert.match(wire.sent, /\r\n\r\n$/, 'no body after HEAD')
})

test('any cut of them is read like the whole', async () => {
  for (let at = 1; at < whole.length; at++) {
    const { wire, told } = connected()
    await feed(wire, [whole.slice(0, at), whole.slice(at)])
    assert.deepEqual(told, wholeTold, `cut at ${at}`)
  }
  const { wire, told } = connected()
  await feed(wire, [...whole])
  assert.deepEqual(told, wholeTold, 'byte by byte')
})

const head = (line: string, ...fields: string[]) => [line, 'Host: x', ...fields, '', ''].join('\r\n')

const refused: readonly (readonly [string, string])[] = [
  ['400', 'GET  / HTTP/1.1\r\n\r\n'],
  ['400', 'GET /\r\n\r\n'],
  ['400', 'GET / HTTP/1.1 \r\n\r\n'],
  ['400', 'GET / HTTP/1.1\nHost: x\n\n\r\n\r\n'],
  ['400', 'GET / HTTP/1.1\nHost: x\n\n'],
  ['400', ' GET / HTTP/1.1\r\n'],
  ['400', 'get / HTTP/1.1\r\n'],
  ['400', '\x16\x03\x01\x02\x00'],
  ['400', '\n\nGET / HTTP/1.1\r\n\r\n'],
  ['400', 'GET /\x7f HTTP/1.1\r\n\r\n'],
  ['505 PRI', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['400 GET', 'GET / HTTP/0.9\r\n\r\n'],
  ['405 CONNECT', head('CONNECT a:1 HTTP/1.1')],
  ['417 POST', head('POST / HTTP/1.1', 'Content-Length: 1', 'Expect: coffee')],
  ['400 GET', head('GET / HTTP/1.1', 'X-A : 1')],
  ['400 GET', head('GET / HTTP/1.1', 'X-A: 1', '  2')],
  ['400 GET', head('GET / HTTP/1.1', ': 1')],
  ['400 GET', head('GET / HTTP/1.1', 'X-A')],
  ['400 GET', head('GET / HTTP/1.1', 'X-A: \x00')],
  ['400 GET', head('GET / HTTP/1.1', 'X-A: a\rb')],
  ['400 GET', head('GET / HTTP/1.1', 'X-A: a\nX-B: b')],
  ['400 POST', head('POST / HTTP/1.1', 'Content-Length: 3', 'Content-Length: 3')],
  ['400 POST', head('POST / HTTP/1.1', 'Content-Length: 3, 3')],
  ['400 POST', head('POST / HTTP/1.1', 'Content-Length: +3')],
  ['400 POST', head('POST / HTTP/1.1', 'Content-Length: 18446744073709551616')],
  ['400 POST', head('POST / HTTP/1.1', 'Content-Length: 3', 'Transfer-Encoding: chunked')],
  ['400 POST', head('POST / HTTP/1.1', 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked')],
  ['400 POST', head('POST / HTTP/1.1', 'Transfer-Encoding: gzip, chunked')],
  ['400 POST', head('POST / HTTP/1.0', 'Transfer-Encoding: chunked')],
  ['414', `GET /${'a'.repeat(300)} HTTP/1.1\r\n\r\n`],
  ['414', `GET /${'a'.repeat(300)}`],
  ['431', head('GET / HTTP/1.1', `X-A: ${'a'.repeat(300)}`)],
  ['431', `GET / HTTP/1.1\r\nX-A: ${'a'.repeat(300)}`],
]

test('what is no request, or could be read in two ways, is refused and nothing behind it looked at', async () => {
  for (const [verdict, text] of refused) {
    const { wire, told, connection } = connected()
    await feed(wire, [text, whole])
    assert.deepEqual(told, [verdict], JSON.stringify(text))
    assert.equal(wire.sent, `refused ${verdict.slice(0, 3)}`)
    assert.equal(connection.open, false)
    assert.ok(wire.writableEnded)
    wire.destroy()
  }
})

test('a body that cannot be read is told of, with what came before it', async () => {
  const start = head('POST / HTTP/1.1', 'Transfer-Encoding: chunked')
  for (const [wrong, status] of [
    ['x\r\n', 400],
    ['3\r\nabcd\r\n', 400],
    ['3\n', 400],
    ['-1\r\n', 400],
    ['0\r\nX A: 1\r\n\r\n', 400],
    [`1;${'a'.repeat(4000)}\r\na\r\n`.repeat(5), 413],
  ] as const) {
    const { wire, told } = connected()
    await feed(wire, [start, '2\r\nok\r\n', wrong])
    assert.equal(told[0], `malformed ${status}`, JSON.stringify(wrong))
    wire.destroy()
  }
})

test('whoever waits for a body that cannot be read hears that it will not come', async () => {
  const { wire, told } = connected()
  await feed(wire, [head('POST / HTTP/1.1', 'Transfer-Encoding: chunked'), '2\r\nok\r\n', 'x\r\n'])
  assert.deepEqual(told, ['malformed 400', 'aborted(ok)'])
  wire.destroy()
})

test('nothing follows a refusal, and a client that is let go loses no answer', async () => {
  let response: ClientResponse | undefined
  const late = connected({
    serve: (_, one) => {
      response = one
    },
  })
  await feed(late.wire, [head('POST / HTTP/1.1', 'Transfer-Encoding: chunked')])
  late.connection.refuse('refused 400')
  response?.writeHead(200, 'OK', ['Content-Length', '2'])
  response?.write(Buffer.from('ok'))
  response?.end()
  await turn()
  assert.equal(late.wire.sent, 'refused 400')
  assert.equal(late.wire.destroyed, false)
  late.wire.destroy()

  const sending = connected({
    serve: (_, one) => {
      one.writeHead(200, 'OK', ['Content-Length', '0'])
      one.end()
    },
  })
  await feed(sending.wire, [head('POST / HTTP/1.1', 'Content-Length: 9'), 'part'])
  sending.connection.closeIdle()
  await turn()
  assert.ok(sending.wire.writableEnded)
  assert.equal(sending.wire.destroyed, false, 'what is still sent is read first')
  sending.wire.destroy()
})

test('a body waits until somebody takes it, and no more is read meanwhile than has its place', async () => {
  let request: ClientRequest | undefined
  let response: ClientResponse | undefined
  let got = 0
  const { wire } = connected({
    serve: (one, other) => {
      request = one
      response = other
      one.take({ data: (chunk) => (got += chunk.length), end: () => {}, aborted: () => {} })
    },
  })
  await feed(wire, [head('POST / HTTP/1.1', 'Content-Length: 300000')])
  const part = 'a'.repeat(50_000)
  await feed(wire, [part, part])
  assert.equal(got, 0)
  assert.ok(wire.isPaused())
  request?.resume()
  assert.equal(got, 100_000)
  assert.ok(!wire.isPaused())
  await feed(wire, [part, part, part, part])
  assert.ok(request?.complete)
  assert.equal(got, 300_000)
  response?.writeHead(204, 'No Content', [])
  response?.end()
})

test('a body that nobody wants is read and dropped, and the next request answered', async () => {
  const { wire, told } = connected({
    serve: (request, response) => {
      told.push(request.head.target)
      response.writeHead(200, 'OK', ['Content-Length', '0'])
      response.end()
    },
  })
  await feed(wire, [head('POST /a HTTP/1.1', 'Content-Length: 5'), 'he', 'llo', head('GET /b HTTP/1.1')])
  assert.deepEqual(told, ['/a', '/b'])
})

test('a response has the framing that the client knows', async () => {
  const answer = async (line: string, fields: string[], status = 200) => {
    const { wire, told } = connected({
      serve: (_, response) => {
        response.writeHead(status, 'X', fields)
        response.write(Buffer.from('one'))
        response.write(Buffer.from('two'))
        response.end(['X-T', '1'])
      },
    })
    await feed(wire, [head(line)])
    return { sent: wire.sent, closed: told.includes('closed') || wire.writableEnded }
  }
  assert.deepEqual(await answer('GET / HTTP/1.1', []), {
    sent: 'HTTP/1.1 200 X\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\nX-T: 1\r\n\r\n',
    closed: false,
  })
  assert.deepEqual(await answer('GET / HTTP/1.0', []), {
    sent: 'HTTP/1.1 200 X\r\nConnection: close\r\n\r\nonetwo',
    closed: true,
  })
  assert.deepEqual(await answer('GET / HTTP/1.1', ['content-length', '6']), {
    sent: 'HTTP/1.1 200 X\r\ncontent-length: 6\r\nConnection: keep-alive\r\n\r\nonetwo',
    closed: false,
  })
  assert.deepEqual(await answer('GET / HTTP/1.1', ['Content-Length', '0'], 204), {
    sent: 'HTTP/1.1 204 X\r\nConnection: keep-alive\r\n\r\n',
    closed: false,
  })
  assert.deepEqual(await answer('HEAD / HTTP/1.1', ['Content-Length', '6'], 304), {
    sent: 'HTTP/1.1 304 X\r\nContent-Length: 6\r\nConnection: keep-alive\r\n\r\n',
    closed: false,
  })
})

test('a client that ends its side leaves, unless it is to be answered nevertheless', async () => {
  let response: ClientResponse | undefined
  const serve: Script['serve'] = (_, one) => {
    response = one
  }
  const leaving = connected({ serve })
  await feed(leaving.wire, [head('GET / HTTP/1.1')])
  leaving.wire.push(null)
  await once(leaving.wire, 'close')
  assert.deepEqual(leaving.told, ['left', 'closed'])

  const staying = connected({ serve, listens: true })
  await feed(staying.wire, [head('GET / HTTP/1.1')])
  staying.wire.push(null)
  await turn()
  response?.writeHead(200, 'OK', ['Content-Length', '2'])
  response?.write(Buffer.from('ok'))
  response?.end()
  await once(staying.wire, 'close')
  assert.deepEqual(staying.told, ['closed'])
  assert.match(staying.wire.sent, /Connection: close\r\n\r\nok$/)
})

test('a client that ends its side in the middle of a head is told so, and one between requests is let go', async () => {
  const within = connected()
  await feed(within.wire, ['GET / HT'])
  within.wire.push(null)
  await once(within.wire, 'close')
  assert.deepEqual(within.told, ['400', 'closed'])
  const between = connected()
  await feed(between.wire, [head('GET /a HTTP/1.1')])
  between.wire.push(null)
  await once(between.wire, 'close')
  assert.deepEqual(between.told, ['GET /a none()', 'closed'])
})

test('a client has its time for a head, for its first byte and between two requests', async () => {
  const silent = connected()
  silent.connection.check(monotonic() + 900)
  assert.ok(silent.connection.open)
  silent.connection.check(monotonic() + 1100)
  await once(silent.wire, 'close')
  assert.deepEqual(silent.told, ['closed'])
  const slow = connected()
  await feed(slow.wire, ['GET'])
  slow.connection.check(monotonic() + 1100)
  assert.deepEqual(slow.told, ['408'])
  slow.wire.destroy()
  const idle = connected()
  await feed(idle.wire, [head('GET /a HTTP/1.1')])
  idle.connection.check(monotonic() + 400)
  assert.ok(idle.connection.open)
  idle.connection.check(monotonic() + 600)
  assert.equal(idle.connection.open, false)
})

test('never throws, whatever a client sends, and answers at most once what it refuses', async () => {
  const lines = fc.constantFrom(
    ...[
      'GET / HTTP/1.1\r\n',
      'POST / HTTP/1.1\r\n',
      'Host: x\r\n',
      'Content-Length: 3\r\n',
      'Transfer-Encoding: chunked\r\n',
      'Expect: 100-continue\r\n',
      'Connection: upgrade\r\nUpgrade: x\r\n',
      '\r\n',
      '3\r\nabc\r\n',
      '0\r\n\r\n',
      'abc',
      '\n',
      ':',
      '\x00',
    ],
  )
  await fc.assert(
    fc.asyncProperty(fc.array(lines, { maxLength: 30 }), fc.boolean(), async (pieces, end) => {
      const { wire, told } = connected()
      await feed(wire, pieces)
      if (end && !wire.destroyed) wire.push(null)
      await turn()
      assert.ok(told.filter((word) => /^(?:malformed )?[45]\d\d/.test(word)).length <= 1, told.join())
      wire.destroy()
    }),
    { numRuns: 300 },
  )
})
