import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { LogFile } from '../../../sidecar/telemetry/log-file.ts'
import { endTurns, PipeTurn, shareTurns } from '../../../sidecar/telemetry/pipe-turns.ts'
import { finished, thread } from '../../support/thread.ts'

const folder = mkdtempSync(join(tmpdir(), 'evenkeel-turns-'))
after(() => rmSync(folder, { recursive: true }))
/** A named pipe with a reader; `release` lets the reader see its end once all writers have closed it. */
function named(name: string) {
  const path = join(folder, name)
  execFileSync('mkfifo', [path])
  // For reading and writing: that does not wait for anybody, and writers find a reader.
  const fd = openSync(path, 'r+')
  return { path, reader: spawn('cat', [path]), release: () => closeSync(fd) }
}

const turns = shareTurns()

/** Writes 60 lines of 10,001 bytes, each of one letter, and ends when all of them have gone. */
const body = `
  const { LogFile } = await load('sidecar/telemetry/log-file.ts')
  const { joinTurns } = await load('sidecar/telemetry/pipe-turns.ts')
  joinTurns(data.turns, data.row)
  const file = new LogFile(data.path)
  for (let i = 0; i < 60; i++) {
    file.write(data.letter.repeat(10_000) + '\\n')
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  await new Promise((resolve) => setTimeout(resolve, 1500))
  file.close()
`

test('long lines of several threads do not mix in a pipe that is read slowly', async () => {
  const { path, reader, release } = named('slow.pipe')
  let text = ''
  reader.stdout.setEncoding('latin1').on('data', (piece: string) => {
    text += piece
    reader.stdout.pause()
    setTimeout(() => reader.stdout.resume(), 2)
  })
  const ended = once(reader, 'close')
  await finished(...[...'abc'].map((letter, row) => thread(body, { path, letter, row, turns })))
  release()
  await ended
  const lines = text.trimEnd().split('\n')
  const odd = lines.filter((line) => !/^(?:a{10000}|b{10000}|c{10000})$/.test(line))
  assert.deepEqual(odd, [])
  assert.equal(lines.length, 180)
})

test('the turn of a thread that died in the midst of a line is over, and the next line begins anew', async () => {
  const { path, reader, release } = named('torn.pipe')
  let text = ''
  reader.stdout.setEncoding('latin1').on('data', (piece: string) => {
    text += piece
  })
  const file = new LogFile(path)
  const words = new Int32Array(turns)
  const turn = new PipeTurn(path)
  assert.equal(turn.take(), true)
  const at = words.findIndex((word) => word !== 0)
  turn.free()
  // As thread 2 leaves it.
  words[at] = 3 + 1000
  file.write('late\n')
  await sleep(50)
  assert.equal(text, '')
  endTurns(1)
  assert.equal(words[at], 1003)
  endTurns(2)
  for (const end = performance.now() + 3000; text === '' && performance.now() < end; ) await sleep(5)
  assert.equal(text, '\nlate\n')
  assert.equal(words[at], 0)
  file.close()
  release()
  await once(reader, 'close')
})
