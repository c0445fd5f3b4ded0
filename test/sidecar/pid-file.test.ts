import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { PidError, removePid, signalPid, writePid } from '../../sidecar/pid-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'evenkeel-pid-'))
after(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'evenkeel.pid')

test('the file holds the process id, and only its own process removes it', () => {
  writePid(file)
  assert.equal(readFileSync(file, 'utf8'), `${process.pid}\n`)
  writeFileSync(file, '1\n')
  removePid(file)
  assert.ok(existsSync(file))
  writePid(file)
  removePid(file)
  assert.ok(!existsSync(file))
})

test('a file that is not there is named', () => {
  assert.throws(
    () => signalPid(file, 'SIGHUP'),
    new PidError(`open() "${file}" failed (2: No such file or directory)`),
  )
})

for (const text of ['', 'abc', '-5', '0']) {
  test(`"${text}" is no process id to send a signal to`, () => {
    writeFileSync(file, text)
    assert.throws(() => signalPid(file, 'SIGHUP'), new PidError(`invalid PID number "${text}" in "${file}"`))
  })
}

test('a process that has ended is told apart from one that was given its number', async () => {
  const child = spawn('sleep', ['60'])
  await once(child, 'spawn')
  writeFileSync(file, String(child.pid))
  assert.throws(() => signalPid(file, 'SIGHUP'), /is not evenkeel: .* is left over from one that has ended/)
  child.kill()
  await once(child, 'exit')
  assert.throws(
    () => signalPid(file, 'SIGHUP'),
    new PidError(`kill(${child.pid}, SIGHUP) failed (3: No such process)`),
  )
})

test('a running evenkeel gets the signal', async () => {
  const child = spawn('sleep', ['60'], { argv0: 'evenkeel' })
  await once(child, 'spawn')
  writeFileSync(file, String(child.pid))
  signalPid(file, 'SIGINT')
  const [, signal] = await once(child, 'exit')
  assert.equal(signal, 'SIGINT')
})
