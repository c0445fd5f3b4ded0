import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backends } from '../../support/backend.ts'
import { ask, dial } from '../../support/client.ts'
import { eventually, lab } from '../../support/invariants.ts'

/** What the program may have, as if the limit had been so all the time: fewer than it has open leave it none. */
function limit(pid: number, descriptors: number): void {
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${descriptors}:`])
}

const few = 8
const many = 4096

for (const threads of [1, 2]) {
  test(`without descriptors peers are not blamed, nobody is left hanging, and all goes on by itself (${threads} threads)`, async () => {
    await using two = await backends([{ body: 'a' }, { body: 'b' }])
    const [a, b] = two.list
    await using front = await lab(
      `upstream up { server ${a!.address} max_fails=1; server ${b!.address} max_fails=1; keepalive 0; }
       server { listen 127.0.0.1:PORT; location / { proxy_pass http://up; } }`,
      two.list,
      {
        main: `worker_processes ${threads}; error_log error.log notice;`,
        alarms: /Too many open files/,
      },
    )
    const { sidecar } = front
    using client = await dial(front.port)
    assert.equal((await client.ask('/')).status, 200)
    using admin = await dial(sidecar.ports['ADMIN']!)
    assert.equal((await admin.ask('/healthz', { headers: { Host: '127.0.0.1' } })).status, 200)

    limit(sidecar.pid, few)
    // Whatever becomes of the test, the program can be looked at and ended.
    using _ = { [Symbol.dispose]: () => limit(sidecar.pid, many) }
    const began = performance.now()
    for (let i = 0; i < 20; i++) assert.equal((await client.ask('/')).status, 502)
    assert.ok(performance.now() - began < 3000)
    assert.equal((await admin.ask('/healthz', { headers: { Host: '127.0.0.1' } })).status, 200)
    // Whoever comes now is let go, or waits until there is room: the listener lives.
    const late = await Promise.all(Array.from({ length: 5 }, () => dial(front.port)))
    // Neither can be done, and both are said; what was stays in force.
    sidecar.signal('SIGHUP')
    const log = join(sidecar.folder, 'error.log')
    await eventually('the reload is refused', () => {
      return /was not reloaded; generation 1 goes on/.test(readFileSync(log, 'latin1'))
    })
    renameSync(join(sidecar.folder, 'access.log'), join(sidecar.folder, 'access.log.1'))
    sidecar.signal('SIGUSR1')
    await sleep(100)
    assert.ok(sidecar.running)
    assert.equal((await client.ask('/')).status, 502)

    limit(sidecar.pid, many)
    for (const one of late) one.close()
    await eventually('requests are answered again', async () => (await client.ask('/')).status === 200)
    assert.equal((await ask(front.port)).status, 200)
    for (const { health, state } of Object.values(await front.peers('up'))) {
      assert.deepEqual({ fails: health.fails, state }, { fails: 0, state: 'up' })
    }
    // A reload works again, and so does the next one.
    await sidecar.reload()
    await sidecar.reload()
    sidecar.signal('SIGUSR1')
    await eventually('a new log', async () => {
      await ask(front.port, '/last')
      try {
        return readFileSync(join(sidecar.folder, 'access.log'), 'latin1').includes('/last')
      } catch {
        return false
      }
    })
    assert.equal((await ask(front.port)).status, 200)
    const said = readFileSync(log, 'latin1').split('\n')
    const lines = said.filter((line) => /Too many open files/.test(line))
    assert.ok(lines.length > 0 && lines.length < 60, `${lines.length} lines`)
    assert.doesNotMatch(said.join('\n'), /at .*\.ts:\d+|Unhandled/)
  })
}
