import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Answer, Asking } from '../../probes/probe.ts'
import { streamTcp } from '../../probes/stream-tcp.ts'
import { asking, openSockets, rawPeer, socketsBackTo, told } from '../support/asking.ts'

type Args = Parameters<typeof streamTcp.check>[1]

/** Asks a peer of that script. */
async function ask(
  script: (socket: Socket) => void,
  args: Args,
  over: Partial<Asking> = {},
): Promise<Answer> {
  await using peer = await rawPeer(script)
  return await streamTcp.check(peer.target, args, asking(over))
}

/** Answers each piece with what it is told to. */
const says =
  (...pieces: string[]) =>
  (socket: Socket) =>
    socket.on('data', () => {
      const piece = pieces.shift()
      if (piece !== undefined) socket.write(piece, 'latin1')
    })

const soon = () => ({ signal: AbortSignal.timeout(100) })
const has = (text: string) => ({ holds: ({ body }: Answer) => body.includes(text) })

test('without anything to send the connection is enough, and nothing is sent', async () => {
  let came = ''
  const answer = await ask((socket) => socket.on('data', (piece) => (came += piece)), {})
  assert.equal(told(answer), 'passed, ')
  assert.ok(answer.connectMs! >= 0)
  assert.equal(answer.headerMs, undefined)
  assert.equal(came, '')
})

test('what is sent is sent as it stands, and the first byte of an answer is enough', async () => {
  let came = ''
  const script = (socket: Socket) =>
    socket.on('data', (piece: Buffer) => {
      came += piece.toString('latin1')
      socket.write('+')
    })
  const answer = await ask(script, { send: 'data:PING\\r\\n\\x00\\xff' })
  assert.equal(came, 'PING\r\n\x00\xff')
  assert.equal(told(answer), 'passed, 1 byte came')
  assert.equal(answer.body, '+')
  assert.ok(answer.connectMs! <= answer.headerMs! && answer.headerMs! <= answer.responseMs)
})

test('what is to be sent may stand in a file, and one that cannot be read says nothing of the peer', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'evenkeel-send-'))
  try {
    const path = join(folder, 'words')
    writeFileSync(path, 'hi\\n')
    const answer = await ask((socket) => socket.on('data', (piece) => socket.write(piece)), { send: path })
    assert.equal(answer.body, 'hi\\n')
    assert.equal(await streamTcp.caveat({ send: path }), undefined)
    const lost = join(folder, 'lost')
    const error = `ENOENT: no such file or directory, open '${lost}'`
    assert.equal(await streamTcp.caveat({ send: lost }), `peers cannot be asked: ${error}`)
    const unread = await ask(() => {}, { send: lost })
    assert.equal(unread.failure?.local, true)
    assert.equal(unread.detail, error)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('a peer that closes or resets without a word has not answered', async () => {
  const ends = await ask((socket) => socket.on('data', () => socket.end()), { send: 'data:x' })
  assert.equal(told(ends), 'not passed, error closed, connection closed by the peer')
  const resets = await ask((socket) => socket.on('data', () => socket.resetAndDestroy()), { send: 'data:x' })
  assert.equal(told(resets), 'not passed, error reset, read ECONNRESET')
})

test('a silent peer has not answered in time', async () => {
  const answer = await ask(() => {}, { send: 'data:x' }, soon())
  assert.equal(told(answer), 'not passed, timeout timeout_read, no answer in time')
})

test('with max_response=0 no answer is waited for, and what was sent arrives', async () => {
  const before = openSockets()
  let came = ''
  let heard = () => {}
  const all = new Promise<void>((resolve) => {
    heard = resolve
  })
  await using peer = await rawPeer((socket) => {
    socket.write('a greeting that nobody reads')
    socket.on('data', (piece) => (came += piece)).on('end', heard)
  })
  const answer = await streamTcp.check(peer.target, { send: 'data:bye', max_response: '0' }, asking())
  assert.equal(told(answer), 'passed, ')
  assert.equal(answer.body, '')
  await all
  assert.equal(came, 'bye')
  await socketsBackTo(before)
})

test('with a test it hears until the test holds, however the answer is cut', async () => {
  const answer = await ask(
    (socket) =>
      socket.on('data', () => {
        for (const [i, piece] of ['+P', 'ON', 'G\r\n'].entries())
          setTimeout(() => socket.write(piece), 10 * i)
      }),
    { send: 'data:PING\\r\\n' },
    has('PONG'),
  )
  assert.equal(told(answer), 'passed, 7 bytes came')
  assert.equal(answer.body, '+PONG\r\n')
})

test('with a test and nothing to send, the peer is one that speaks first', async () => {
  const answer = await ask((socket) => socket.write('220 mail ready\r\n'), {}, has('220'))
  assert.equal(told(answer), 'passed, 16 bytes came')
})

test('an answer that the test does not hold for is handed on as it is, at its end or when the time is over', async () => {
  const ended = await ask((socket) => socket.end('-LOADING'), { send: 'data:x' }, has('PONG'))
  assert.equal(told(ended), 'passed, 8 bytes came')
  const late = await ask(says('-LOADING'), { send: 'data:x' }, { ...has('PONG'), ...soon() })
  assert.equal(told(late), 'passed, 8 bytes came')
  assert.equal(late.body, '-LOADING')
})

test('no more is kept than is to be kept, and then it is over', async () => {
  const endless = (socket: Socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write('x'.repeat(5000)));
    }
    socket.on('drain', more)
    more()
  }
  const before = openSockets()
  const answer = await ask(endless, { send: 'data:x', max_response: '7k' }, has('y'))
  assert.equal(answer.body, 'x'.repeat(7 * 1024))
  await socketsBackTo(before)
})
