import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { agent } from '../../probes/agent.ts'
import type { Answer } from '../../probes/probe.ts'
import { asking, rawPeer, tcpTarget, told } from '../support/asking.ts'
import { freePort } from '../support/free-port.ts'

/** What comes of asking an agent that does so with each connection. */
async function ask(script: (socket: Socket) => void, args: { send?: string } = {}): Promise<Answer> {
  await using peer = await rawPeer(script)
  return await agent.check(peer.target, args, asking({ signal: AbortSignal.timeout(300) }))
}

test('a line is read up to CR or LF, and nobody waits for more', async () => {
  for (const ending of ['\n', '\r\n', '\r']) {
    const answer = await ask((socket) => socket.write(`up 75%${ending}down\n`))
    assert.equal(told(answer), 'passed, agent says "up 75%"')
    assert.deepEqual(answer.orders, { operational: 'up', weightFactor: 0.75 })
    assert.ok(answer.responseMs < 200)
    assert.ok(answer.connectMs !== undefined && answer.connectMs <= answer.responseMs)
  }
})

test('a line that comes in pieces is one line', async () => {
  const answer = await ask((socket) => {
    socket.setNoDelay().write('dra')
    setTimeout(() => socket.write('in maxconn:'), 20)
    setTimeout(() => socket.write('5\n'), 40)
  })
  assert.deepEqual(answer.orders, { administrative: 'drain', maxConns: 5 })
})

test('the end of the connection ends the line', async () => {
  const answer = await ask((socket) => socket.end('maint'))
  assert.deepEqual(answer.orders, { administrative: 'maint' })
})

test('an order to go down is no failed probe, and its reason is said', async () => {
  const answer = await ask((socket) => socket.end('down #disk \x1b[31mfull\n'))
  assert.equal(told(answer), 'passed, agent says "down #disk \\x1b[31mfull"')
  assert.deepEqual(answer.orders, { operational: 'down' })
})

test('words that nobody knows are said', async () => {
  const answer = await ask((socket) => socket.end('up weight:300 \x07\n'))
  assert.equal(told(answer), 'passed, agent says "up weight:300 \\x07"; ignored "weight:300" "\\x07"')
})

test('an agent that is not there, is silent, closes, resets or babbles orders nothing', async () => {
  const port = await freePort()
  const gone = await agent.check(tcpTarget(port), {}, asking())
  assert.equal(told(gone), `passed, no agent: connect ECONNREFUSED 127.0.0.1:${port}`)
  const silent = await ask(() => {})
  assert.equal(told(silent), 'passed, agent orders nothing: no line in time')
  const part = await ask((socket) => socket.write('down'))
  assert.equal(told(part), 'passed, agent orders nothing: no line in time')
  const closed = await ask((socket) => socket.end())
  assert.equal(told(closed), 'passed, agent orders nothing: connection closed')
  const reset = await ask((socket) => socket.resetAndDestroy())
  assert.match(told(reset), /^passed, (agent orders nothing|no agent): .*ECONNRESET/)
  const long = await ask((socket) => socket.write(`${'up '.repeat(400)}\n`))
  assert.equal(told(long), 'passed, agent orders nothing: line of more than 1024 bytes')
  const empty = await ask((socket) => socket.write('\n'))
  assert.equal(told(empty), 'passed, agent says ""')
  for (const answer of [gone, silent, part, closed, reset, long, empty])
    assert.equal(answer.orders, undefined)
})

test('a line of as many bytes as may be is read', async () => {
  const line = 'up'.padEnd(1024)
  assert.deepEqual((await ask((socket) => socket.write(`${line}\n`))).orders, { operational: 'up' })
})

/** An agent that gives back what it was sent, once it has so many bytes, as the reason of its line. */
function echo(length: number): (socket: Socket) => void {
  return (socket) => {
    let came = Buffer.alloc(0)
    socket.on('data', (piece: Buffer) => {
      came = Buffer.concat([came, piece])
      if (came.length >= length) socket.end(`up #${came.toString('hex')}\n`)
    })
  }
}

test('what is to be sent goes first, with its escapes', async () => {
  const answer = await ask(echo(9), { send: 'data:a\\n\\r\\t\\\\\\x00\\xfFé' })
  assert.equal(answer.detail, `agent says "up #${Buffer.from('a\n\r\t\\\x00').toString('hex')}ffc3a9"`)
})

test('what is to be sent may stand in a file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'evenkeel-agent-'))
  try {
    const path = join(folder, 'words')
    writeFileSync(path, 'hi\\n')
    assert.equal((await ask(echo(4), { send: path })).detail, 'agent says "up #68695c6e"')
    assert.equal(await agent.caveat({ send: path }), undefined)
    const lost = join(folder, 'lost')
    const error = `ENOENT: no such file or directory, open '${lost}'`
    assert.equal(await agent.caveat({ send: lost }), `agents cannot be asked: ${error}`)
    assert.equal(told(await ask(() => {}, { send: lost })), `passed, agent was not asked: ${error}`)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('an escape that there is not is a mistake of the configuration', () => {
  const { address } = tcpTarget(1)
  assert.equal(agent.misfit(address, {}), undefined)
  assert.equal(agent.misfit(address, { send: 'data:' }), undefined)
  assert.equal(agent.misfit(address, { send: 'data:\\x41' }), undefined)
  assert.equal(agent.misfit(address, { send: '' }), 'invalid parameter "send="')
  for (const send of ['data:\\q', 'data:\\x4', 'data:\\xgg', 'data:end\\']) {
    assert.equal(agent.misfit(address, { send }), `invalid escape in "send=${send}"`)
  }
})
