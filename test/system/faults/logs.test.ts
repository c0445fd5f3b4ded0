import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Backend, backend } from '../../support/backend.ts'
import { Client, dial } from '../../support/client.ts'
import { eventually, residentBytes } from '../../support/invariants.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'

/* Log files that cannot be written: traffic goes on, what is lost is said once, and it is written again when it can be. */

let peer: Backend

before(async () => {
  peer = await backend({ body: 'ok' })
})

after(() => peer?.stop())

const folder = mkdtempSync(join(tmpdir(), 'evenkeel-logs-'))
after(() => rmSync(folder, { recursive: true, force: true }))
let serial = 0
const fresh = (name: string) => {
  serial += 1
  const path = join(folder, String(serial))
  mkdirSync(path)
  return join(path, name)
}

// Each thread has files of its own, and says of its own what becomes of them.
const config = (log: string, more = '') => `worker_processes 1; ${more}
http {
  log_format long '$request_uri $status ${'x'.repeat(400)}';
  access_log ${log} long;
  keepalive_requests 100000;
  server { listen 127.0.0.1:PORT; location / { proxy_pass http://${peer.address}; } }
}`

/** Asks so many times, several at once, and says how long the slowest took. @throws where one is not answered well */
async function traffic(sidecar: Sidecar, count: number, path = '/'): Promise<number> {
  let left = count
  let slowest = 0
  const one = async () => {
    using client = await dial(sidecar.port)
    while (left > 0) {
      left -= 1
      const began = performance.now()
      assert.equal((await client.ask(path)).status, 200)
      slowest = Math.max(slowest, performance.now() - began)
    }
  }
  await Promise.all([one(), one(), one(), one()])
  return slowest
}

const told = (sidecar: Sidecar, pattern: RegExp) => sidecar.stderr.match(pattern) ?? []
const full = /\[alert\].*No space left on device\), lines are dropped/g
/** What a file has; nothing where it is a device, which would have no end. */
const read = (path: string) => (isFile(path) ? readFileSync(path, 'latin1') : '')
const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true
/** What these tests make the program say. */
const alarms = /lines (?:are|were) dropped|No such file or directory/

test('a full disk under both logs stops nothing', async () => {
  await using sidecar = await start(config('/dev/full', 'error_log /dev/full info;'))
  await traffic(sidecar, 400)
  await sidecar.reload()
  sidecar.signal('SIGUSR1')
  await traffic(sidecar, 100)
  assert.ok(sidecar.running)
  assert.equal((await fetch(`${sidecar.admin}/healthz`)).status, 200)
  sidecar.signal('SIGTERM')
  assert.deepEqual(await sidecar.exited, { code: 0, signal: null })
})

test('a full disk under the access log is told once, and that there is room again', async () => {
  const log = fresh('access.log')
  symlinkSync('/dev/full', log)
  await using sidecar = await start(config(log), { alarms })
  await traffic(sidecar, 200)
  await sidecar.logged(full)
  await traffic(sidecar, 200)
  assert.equal(told(sidecar, full).length, 1)
  // As after a rotation onto another disk.
  unlinkSync(log)
  sidecar.signal('SIGUSR1')
  await eventually('there is a new file', () => isFile(log))
  await traffic(sidecar, 20, '/after')
  const [, lost] = await sidecar.logged(/is written to again, (\d+) lines were dropped/)
  assert.ok(Number(lost) > 300 && Number(lost) <= 400, `${lost} lines`)
  await eventually('all are written', () => read(log).split('\n').length === 21)
})

test('a file that may not become larger ends nothing, and goes on where it was made smaller', async () => {
  await using sidecar = await start(config('access.log'), {
    alarms,
    fileBlocks: 64,
    env: { NODE_DISABLE_COMPILE_CACHE: '1' },
  })
  const log = join(sidecar.folder, 'access.log')
  await traffic(sidecar, 200)
  await sidecar.logged(/\[alert\].*File too large\), lines are dropped/)
  assert.equal(statSync(log).size, 64 * 512)
  await traffic(sidecar, 50)
  assert.ok(sidecar.running)
  truncateSync(log, 400)
  await traffic(sidecar, 10, '/after')
  await sidecar.logged(/is written to again/)
  await eventually(
    'lines begin on lines of their own',
    () => read(log).match(/^\/after 200 x+$/gm)?.length === 10,
  )
})

test('a log folder that is gone costs nothing until logs are opened anew, and comes back', async () => {
  const log = fresh('access.log')
  const place = join(log, '..')
  await using sidecar = await start(config(log), { alarms })
  await traffic(sidecar, 10)
  renameSync(place, `${place}.gone`)
  await traffic(sidecar, 10)
  sidecar.signal('SIGUSR1')
  await sidecar.logged(/open\(\).*No such file or directory|\[alert\].*No such file or directory/)
  await traffic(sidecar, 10)
  await eventually('the old file has them', () => read(`${place}.gone/access.log`).split('\n').length === 31)
  // The log is open already: a reload does not need its folder.
  sidecar.signal('SIGHUP')
  await sidecar.logged(/configuration reloaded, generation 2/)
  await traffic(sidecar, 10)
  mkdirSync(place)
  sidecar.signal('SIGUSR1')
  await eventually('there is a new file', () => isFile(log))
  await traffic(sidecar, 10, '/after')
  await eventually('the new file has them', () => read(log).match(/^\/after/gm)?.length === 10)
})

/** Opens a FIFO to read from, without waiting for anybody. */
const openFifo = (path: string) => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)

function drain(fd: number): string {
  const piece = Buffer.alloc(1 << 16)
  let text = ''
  for (;;) {
    try {
      const count = readSync(fd, piece)
      if (count === 0) return text
      text += piece.toString('latin1', 0, count)
    } catch {
      return text
    }
  }
}

test('a FIFO whose reader stops, leaves and comes back holds nobody up and fills no memory', async () => {
  const log = fresh('access.log')
  execFileSync('mkfifo', [log])
  let reader = openFifo(log)
  await using sidecar = await start(config(log), { alarms })
  await traffic(sidecar, 50)
  await eventually('lines come', () => drain(reader).includes('/ 200'))
  const before = await residentBytes(sidecar.pid)
  // More than the pipe and what may wait for it hold: 64 KiB and 1 MiB.
  const slowest = await traffic(sidecar, 2000, `/${'y'.repeat(400)}`)
  assert.ok(slowest < 1000, `${slowest} ms`)
  await sidecar.logged(/takes nothing, lines are dropped/)
  const grown = (await residentBytes(sidecar.pid)) - before
  assert.ok(grown < 64 << 20, `${grown >> 20} MiB more`)
  let text = ''
  await eventually('it goes on from where it stopped', () => {
    text += drain(reader)
    return text.length > 1 << 20
  })
  for (const line of text.split('\n').slice(1, -1)) assert.match(line, /^\/y* 200 x{400}$/)
  await sidecar.logged(/is written to again/)
  closeSync(reader)
  await traffic(sidecar, 50)
  reader = openFifo(log)
  await traffic(sidecar, 20, '/after')
  text = ''
  await eventually('another reader gets lines', () => {
    text += drain(reader)
    return text.includes('/after 200')
  })
  closeSync(reader)
  assert.equal(told(sidecar, /lines are dropped/g).length, 1)
})

test('a FIFO that nobody reads is refused at the start, in a word, instead of waited for', async () => {
  const log = fresh('access.log')
  execFileSync('mkfifo', [log])
  await assert.rejects(start(config(log)), /open\(\) ".*access\.log" failed \(6: No such device or address\)/)
})

test('the record of a request that ends after its log could not be written is not lost with it', async () => {
  const log = fresh('access.log')
  symlinkSync('/dev/full', log)
  peer.script = async (x) => {
    if (x.target === '/slow') await eventually('go on', () => isFile(log))
    await x.reply({ body: 'ok' })
  }
  await using sidecar = await start(config(log), { alarms })
  using client = await dial(sidecar.port)
  await client.write(Client.bytes('/slow'))
  await traffic(sidecar, 20)
  await sidecar.logged(full)
  unlinkSync(log)
  sidecar.signal('SIGUSR1')
  assert.equal((await client.reply()).status, 200)
  await eventually('it is recorded', () => read(log).startsWith('/slow 200'))
  peer.script = { body: 'ok' }
})
