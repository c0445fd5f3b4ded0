import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { start } from '../support/sidecar.ts'

const folder = mkdtempSync(join(tmpdir(), 'evenkeel-mistakes-'))
after(() => rmSync(folder, { recursive: true }))

/** The environment of a program into which a mistake of our own was put. */
function withMistake(name: string, code: string): Record<string, string> {
  const file = join(folder, name)
  writeFileSync(file, code)
  return { NODE_OPTIONS: `--import ${file}` }
}

const config = 'http { access_log off; server { listen 127.0.0.1:PORT; location / { return 200 "ok"; } } }'

test('a mistake of our own while it serves is an alert in the log, and it goes on serving', async () => {
  const env = withMistake(
    'late.mjs',
    `process.on('SIGUSR2', () => {
      setTimeout(() => { throw new Error('thrown late') })
      Promise.reject(new Error('rejected late'))
    })`,
  )
  await using sidecar = await start(config, { env, alarms: /Error: \w+ late;/ })
  sidecar.signal('SIGUSR2')
  await sidecar.logged(/\[alert\] .*Error: thrown late; at .*late\.mjs:2/)
  await sidecar.logged(/\[alert\] .*Error: rejected late; at .*late\.mjs:3/)
  assert.equal(await (await fetch(sidecar.url)).text(), 'ok')
})

test('a mistake of our own before it serves ends the start, and says where it is', async () => {
  const env = withMistake(
    'early.mjs',
    `import { Server } from 'node:net'
    Server.prototype.listen = () => { throw new TypeError('too early') }`,
  )
  await assert.rejects(
    start(config, { env }),
    /ended before it was ready.*\[emerg\] TypeError: too early; at .*early\.mjs:2/s,
  )
})
