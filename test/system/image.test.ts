import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { compiled } from '../support/sidecar.ts'

const root = new URL('../../', import.meta.url).pathname

test('what the image copies is all that the program needs', () => {
  const app = mkdtempSync(join(tmpdir(), 'evenkeel-image-'))
  try {
    // Its last stage, with the dependencies that are here in the place of its own.
    const stage = readFileSync(join(root, 'Dockerfile'), 'utf8')
      .split(/^FROM /m)
      .at(-1)!
    for (const [, words = ''] of stage.matchAll(/^COPY (?!--from)(.+)$/gm)) {
      const names = words.split(/\s+/)
      const to = join(app, names.pop()!)
      for (const name of names)
        cpSync(join(root, name), names.length > 1 ? join(to, basename(name)) : to, { recursive: true })
    }
    symlinkSync(join(root, 'node_modules'), join(app, 'node_modules'))
    mkdirSync(join(app, 'etc'))
    const file = join(app, 'etc', 'evenkeel.conf')
    writeFileSync(
      file,
      `worker_processes 2;
       http {
         upstream u { zone u 64k; server 127.0.0.1:9; }
         server { listen 127.0.0.1:8080; location / { proxy_pass http://u; upstream_probe p; } }
       }`,
    )
    const { status, stderr } = spawnSync(join(app, 'sidecar/evenkeel'), ['-t', '-c', file], {
      encoding: 'utf8',
      env: { ...process.env, ...compiled },
    })
    assert.equal(status, 0, stderr)
    // The page is read when the admin server opens.
    const page = `import { pageEdition } from '${join(app, 'sidecar/admin/page.ts')}'; pageEdition()`
    const read = spawnSync(process.execPath, ['--input-type=module', '-e', page], { encoding: 'utf8' })
    assert.equal(read.status, 0, read.stderr)
  } finally {
    rmSync(app, { recursive: true, force: true })
  }
})
