import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { LogFile } from '../../../sidecar/telemetry/log-file.ts'
import { LogFiles } from '../../../sidecar/telemetry/log-files.ts'
import { until } from '../../support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'evenkeel-log-'))
after(() => rmSync(folder, { recursive: true }))
let files = 0
const fresh = () => join(folder, `${++files}.log`)

/** Waits until a file has what is expected, and shows what it has when it never does. */
async function content(path: string, expected: string): Promise<void> {
  for (const end = performance.now() + 3000; performance.now() < end; await sleep(5)) {
    if (readFileSync(path, 'latin1') === expected) return
  }
  assert.equal(readFileSync(path, 'latin1'), expected)
}

test('lines of one turn arrive in order, byte for byte, and go on arriving', async () => {
  const path = fresh()
  const file = new LogFile(path)
  file.write('one\n')
  file.write('tw\xf6\n')
  await content(path, 'one\ntw\xf6\n')
  file.write('three\n')
  await content(path, 'one\ntw\xf6\nthree\n')
  file.close()
})

test('a file that is there is added to', async () => {
  const path = fresh()
  for (const line of ['one\n', 'two\n']) {
    const file = new LogFile(path)
    file.write(line)
    file.close()
  }
  await content(path, 'one\ntwo\n')
})

test('many lines at once arrive whole and in order', async () => {
  const path = fresh()
  const file = new LogFile(path)
  const lines = Array.from({ length: 5000 }, (_, i) => `${i} ${'x'.repeat(i % 90)}\n`)
  for (const line of lines) file.write(line)
  await content(path, lines.join(''))
  assert.equal(file.dropped, 0)
  file.close()
})

test('a file that cannot be opened is an error in the words of nginx', () => {
  assert.throws(() => new LogFile('/nowhere/at/all.log'), {
    message: 'open() "/nowhere/at/all.log" failed (2: No such file or directory)',
  })
  assert.throws(() => new LogFile(folder), { message: `open() "${folder}" failed (21: Is a directory)` })
})

test('after a rotation lines go to a new file of the name, and none is lost', async () => {
  const path = fresh()
  const file = new LogFile(path)
  file.write('before\n')
  renameSync(path, `${path}.1`)
  file.write('still before\n')
  assert.equal(file.reopen(), undefined)
  file.write('after\n')
  await content(`${path}.1`, 'before\nstill before\n')
  await content(path, 'after\n')
  file.close()
})

test('a rotation in the midst of writing loses nothing', async () => {
  const path = fresh()
  const file = new LogFile(path)
  const lines = Array.from({ length: 300 }, (_, i) => `line ${i}\n`)
  for (const [i, line] of lines.entries()) {
    file.write(line)
    if (i % 50 === 49) {
      renameSync(path, `${path}.${i}`)
      file.reopen()
    }
    if (i % 7 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  file.close()
  await sleep(20)
  const all = [...lines.keys()]
    .filter((i) => i % 50 === 49)
    .map((i) => readFileSync(`${path}.${i}`, 'latin1'))
  const found = [...all, readFileSync(path, 'latin1')].join('').split(/(?<=\n)/)
  assert.deepEqual(found.sort(), lines.sort())
})

test('when the folder is gone at a rotation, that is told and the old file stays', async () => {
  const own = mkdtempSync(join(folder, 'gone-'))
  const path = join(own, 'a.log')
  const logs = new LogFiles()
  const told: string[] = []
  logs.trouble = (text) => told.push(text)
  const file = logs.open(path)
  renameSync(own, `${own}.moved`)
  logs.reopen()
  assert.deepEqual(told, [`open() "${path}" failed (2: No such file or directory)`])
  file.write('late\n')
  await content(join(`${own}.moved`, 'a.log'), 'late\n')
  file.close()
})

test('one path is one file, whatever it is called', () => {
  const logs = new LogFiles()
  const path = fresh()
  assert.equal(logs.open(path), logs.open(path))
  assert.equal(logs.open('stdout'), logs.open('/dev/stdout'))
  assert.notEqual(logs.open('stdout'), logs.open('stderr'))
})

test('a file that a new configuration does not name is closed, and a late line to it still arrives', async () => {
  const logs = new LogFiles()
  const [kept, left] = [fresh(), fresh()]
  const [a, b] = [logs.open(kept), logs.open(left)]
  a.write('a\n')
  b.write('b\n')
  logs.keepOnly([kept])
  assert.equal(logs.open(kept), a)
  assert.notEqual(logs.open(left), b)
  b.write('late\n')
  await content(kept, 'a\n')
  await content(left, 'b\nlate\n')
  logs.keepOnly([])
  b.close()
})

test('a full device drops lines and counts them, tells it once and throws nothing', async () => {
  const logs = new LogFiles()
  const told: string[] = []
  logs.trouble = (text) => told.push(text)
  const file = logs.open('/dev/full')
  for (let i = 0; i < 3; i++) {
    file.write('one\n')
    file.write('two\n')
    await until(() => logs.dropped === 2 * (i + 1))
  }
  assert.deepEqual(told, ['write() to "/dev/full" failed (28: No space left on device), lines are dropped'])
  logs.keepOnly([])
  assert.equal(logs.dropped, 6)
})

test('lines that come all the time are written together, and one after a rest at once', async () => {
  const path = fresh()
  const file = new LogFile(path)
  file.write('first\n')
  await content(path, 'first\n')
  await sleep(30)
  file.write('second\n')
  await content(path, 'first\nsecond\n')
  const lengths = new Set<number>()
  let all = 'first\nsecond\n'.length
  for (let i = 0; i < 50; i++) {
    file.write('x\n')
    all += 2
    await sleep(1)
    lengths.add(statSync(path).size)
  }
  await until(() => statSync(path).size === all)
  assert.ok(lengths.size < 25, `${lengths.size} writes of 50 lines`)
  file.close()
})

test('lines that nobody takes are dropped once a megabyte of them waits', () => {
  const file = new LogFile(fresh())
  const line = `${'x'.repeat(1023)}\n`
  // In one turn, so that the disk has no say.
  for (let i = 0; i < 5000; i++) file.write(line)
  assert.ok(file.dropped > 1000, `dropped ${file.dropped}`)
  file.close()
})

// What needs a process of its own.

const modules = new URL('../../../sidecar/telemetry/', import.meta.url).href
const prelude = `
import { logFiles } from '${modules}log-files.ts'
const log = logFiles.open('stdout')
const until = async (done) => { while (!done()) await new Promise((go) => setTimeout(go, 5)) }
const say = (text) => process.stderr.write(text)
`

interface Ran {
  readonly child: ChildProcess
  stderr: string
  readonly ended: Promise<number | null>
}

/** Runs a module with a log on standard output, a pipe. */
function run(code: string, shell?: string): Ran {
  const words = [process.execPath, '--input-type=module', '-e', prelude + code]
  const child = shell
    ? spawn('sh', ['-c', `${shell}; exec "$@"`, 'sh', ...words])
    : spawn(words[0]!, words.slice(1))
  const ran: Ran = {
    child,
    stderr: '',
    ended: once(child, 'close').then(([status]) => status as number | null),
  }
  child.stderr!.on('data', (chunk: Buffer) => {
    ran.stderr += chunk.toString()
  })
  return ran
}

async function output(ran: Ran): Promise<string> {
  let text = ''
  ran.child.stdout!.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
  })
  assert.equal(await ran.ended, 0, ran.stderr)
  return text
}

test('what waits when the process ends is written', async () => {
  const ran = run(`log.write('last\\n'); process.exit(0)`)
  assert.equal(await output(ran), 'last\n')
})

test('when the reader of standard output goes away the process lives, and lines are counted as dropped', async () => {
  const ran = run(`
    log.write('first\\n')
    const timer = setInterval(() => log.write('more\\n'), 1)
    await until(() => logFiles.dropped > 5)
    clearInterval(timer)
    say('alive ' + (logFiles.dropped > 5))
  `)
  await once(ran.child.stdout!, 'data')
  ran.child.stdout!.destroy()
  assert.equal(await ran.ended, 0, ran.stderr)
  assert.equal(ran.stderr, 'alive true')
})

test('a reader that stops reading holds nothing up, neither work nor the end of the process', async () => {
  const ran = run(`
    const line = 'x'.repeat(999) + '\\n'
    let slowest = 0
    for (let i = 0; i < 50; i++) {
      const from = performance.now()
      for (let n = 0; n < 100; n++) log.write(line)
      await new Promise((go) => setImmediate(go))
      slowest = Math.max(slowest, performance.now() - from)
    }
    say(JSON.stringify({ slowest, dropped: logFiles.dropped }))
    process.exit(0)
  `)
  ran.child.stdout!.pause()
  const stalled = once(ran.child, 'exit')
  const [status] = await stalled
  ran.child.stdout!.destroy()
  await ran.ended
  assert.equal(status, 0, ran.stderr)
  // The kernel takes tens of kilobytes, the log keeps a megabyte: of five some four are lost.
  const { slowest, dropped } = JSON.parse(ran.stderr) as { slowest: number; dropped: number }
  assert.ok(dropped > 3000, `dropped ${dropped}`)
  assert.ok(slowest < 500, `a turn took ${slowest} ms`)
})

test('a reader that was slow gets whole lines in order', async () => {
  const ran = run(`
    for (let i = 0; i < 400; i++) log.write(i + ' ' + 'x'.repeat(900) + '\\n')
    await until(() => process.stdin.destroyed || false)
  `)
  // Nothing is read until the pipe is full.
  await sleep(150)
  let text = ''
  ran.child.stdout!.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
  })
  while (text.split('\n').length < 401) await sleep(5)
  ran.child.kill()
  await ran.ended
  const lines = text.trimEnd().split('\n')
  assert.deepEqual(
    lines.map((line) => line.replace(/ x{900}$/, '')),
    Array.from({ length: 400 }, (_, i) => `${i}`),
  )
})

/** What a thread does: writes lines of one letter each. Its text is what is run. */
async function threadWork(module: string): Promise<void> {
  const { logFiles } = (await import(module)) as typeof import('../../../sidecar/telemetry/log-files.ts')
  const log = logFiles.open('stdout')
  for (let i = 0; i < 1500; i++) {
    log.write(`${String.fromCharCode(97 + (i % 26)).repeat(1 + ((i * 7) % 700))}\n`)
    if (i % 20 === 0) await new Promise((go) => setImmediate(go))
  }
}

test('lines of several threads do not mix in a pipe', async () => {
  const ran = run(`
    const { Worker } = await import('node:worker_threads')
    const code = '(' + ${JSON.stringify(threadWork.toString())} + ")('${modules}log-files.ts')"
    const workers = [1, 2, 3].map(() => new Worker(code, { eval: true }))
    await Promise.all(workers.map((worker) => new Promise((go) => worker.on('exit', go))))
  `)
  const lines = (await output(ran)).split('\n')
  assert.equal(lines.pop(), '')
  assert.equal(lines.length, 4500)
  assert.deepEqual(
    lines.filter((line) => !/^([a-z])\1*$/.test(line)),
    [],
  )
})

test('a full disk loses lines, and the next ones that fit begin on a line of their own', async () => {
  const path = fresh()
  // The size of files stands in for that of the disk: 512 or 1024 bytes, as the shell counts.
  const ran = run(
    `
    const file = logFiles.open('${path}')
    for (let i = 0; i < 40; i++) file.write(i + ' ' + 'x'.repeat(60) + '\\n')
    await until(() => file.dropped > 0)
    const before = file.dropped
    // Nor is there room for the next ones.
    file.write('lost\\n')
    await until(() => file.dropped > before)
    const { truncateSync, statSync } = await import('node:fs')
    truncateSync('${path}', 400)
    file.write('room again\\n')
    await until(() => statSync('${path}').size > 400)
    say(String(file.dropped))
    `,
    `trap '' XFSZ; ulimit -f 1`,
  )
  assert.equal(await ran.ended, 0, ran.stderr)
  const lines = readFileSync(path, 'latin1').split('\n')
  assert.equal(lines.at(-2), 'room again')
  assert.ok(Number(ran.stderr) >= 20, `dropped ${ran.stderr}`)
})
