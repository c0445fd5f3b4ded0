import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { neededBy } from '../../scripts/ensure.ts'

const root = new URL('../..', import.meta.url).pathname
const module = new URL('../../scripts/ensure.ts', import.meta.url).href
const ask = `import { ensure } from ${JSON.stringify(module)}
  await ensure(${JSON.stringify(['chromium', 'redis-server'])}, console.log).catch((error) => console.log(error.message))`

/** What a process with only this folder to find programs in says to being asked for two. */
function asked(folder: string): string[] {
  const child = spawnSync(process.execPath, ['--input-type=module-typescript', '-e', ask], {
    env: { PATH: folder, TMPDIR: folder },
    encoding: 'utf8',
  })
  assert.equal(child.status, 0, child.stderr)
  return child.stdout.trimEnd().split('\n')
}

const byHand =
  'tests need chromium and redis-server on the PATH: ' +
  "install chromium, fonts-dejavu-core and redis-server (Debian's names)"

test('where programs cannot be installed it is said what to install', () => {
  assert.deepEqual(asked('/nowhere'), [byHand])
})

test('what is missing is installed on Debian by root, without services, and what is there is left alone', () => {
  const folder = mkdtempSync(join(tmpdir(), 'evenkeel-ensure-'))
  try {
    const script = (name: string, ...lines: string[]) =>
      writeFileSync(join(folder, name), ['#!/bin/sh', ...lines, ''].join('\n'), { mode: 0o755 })
    script('redis-server')
    script(
      'apt-get',
      `echo "$@" $DEBIAN_FRONTEND $RUNLEVEL >> ${folder}/called`,
      'case "$2" in install)',
      `  [ -x /usr/sbin/policy-rc.d ] && echo kept from starting services >> ${folder}/called`,
      `  echo > ${folder}/chromium; /bin/chmod 755 ${folder}/chromium;;`,
      'esac',
    )
    const policy = existsSync('/usr/sbin/policy-rc.d')
    const said = asked(folder)
    if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) {
      assert.deepEqual(said, [
        byHand.replace(/ and redis-server/g, '').replace('chromium, ', 'chromium and '),
      ])
      return
    }
    assert.deepEqual(said, ['installing chromium and fonts-dejavu-core for the tests'])
    assert.deepEqual(readFileSync(join(folder, 'called'), 'utf8').trimEnd().split('\n'), [
      '-q update noninteractive 1',
      '-q install -y --no-install-recommends chromium fonts-dejavu-core noninteractive 1',
      'kept from starting services',
    ])
    assert.equal(existsSync('/usr/sbin/policy-rc.d'), policy)
    assert.deepEqual(asked(folder), [''])
    // What apt-get says to a failure is passed on.
    rmSync(join(folder, 'chromium'))
    script('apt-get', 'echo reading; echo E: no such package >&2; exit 100')
    assert.match(
      asked(folder).at(-1)!,
      /^tests need chromium on the PATH: .* \(apt-get update: 100: E: no such package\)$/,
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('test files need what the modules ask for that they import, over any number of steps', () => {
  const needed = (file: string) => neededBy([join(root, 'test', file)])
  assert.deepEqual(needed('support/redis.test.ts'), ['openssl', 'redis-server'])
  assert.deepEqual(needed('support/prometheus.test.ts'), ['prometheus', 'promtool'])
  assert.deepEqual(needed('support/chromium.test.ts'), ['chromium'])
  assert.deepEqual(needed('feedback/fleet/link.test.ts'), ['openssl', 'redis-server'])
  assert.deepEqual(needed('feedback/ewma.test.ts'), [])
})
