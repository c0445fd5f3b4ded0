import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { ConfigWatch } from '../../sidecar/config-watch.ts'

/** A folder and a watch that counts what it is told; `next` waits for the next telling. */
function setup(t: TestContext, rhythm = { settle: 20, poll: 60_000 }) {
  const folder = mkdtempSync(join(tmpdir(), 'evenkeel-watch-'))
  let told = 0
  let heard = () => {}
  const watch = new ConfigWatch(() => {
    told += 1
    heard()
  }, rhythm)
  t.after(() => {
    watch.watch([])
    rmSync(folder, { recursive: true })
  })
  const next = (withinMs = 2000) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('nothing was told')), withinMs)
      heard = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  return { folder, watch, next, told: () => told, path: (name: string) => join(folder, name) }
}

test('a file that is written again is told once, however many steps that takes', async (t) => {
  const { watch, next, told, path } = setup(t)
  writeFileSync(path('a.conf'), 'one')
  watch.watch([path('a.conf')])
  const changed = next()
  for (const text of ['t', 'tw', 'two']) writeFileSync(path('a.conf'), text)
  await changed
  await wait(60)
  assert.equal(told(), 1)
})

test('a file replaced by another of its name is told', async (t) => {
  const { watch, next, path } = setup(t)
  writeFileSync(path('a.conf'), 'one')
  watch.watch([path('a.conf')])
  const changed = next()
  writeFileSync(path('a.conf.new'), 'one')
  renameSync(path('a.conf.new'), path('a.conf'))
  await changed
})

test('the swap of a folder behind a symbolic link is told, as a mounted ConfigMap does it', async (t) => {
  const { watch, next, told, path } = setup(t)
  for (const name of ['v1', 'v2', 'v3']) {
    mkdirSync(path(name))
    writeFileSync(path(`${name}/a.conf`), name)
  }
  symlinkSync('v1', path('..data'))
  symlinkSync('..data/a.conf', path('a.conf'))
  watch.watch([path('a.conf')])
  for (const name of ['v2', 'v3']) {
    const changed = next()
    symlinkSync(name, path('..data_tmp'))
    renameSync(path('..data_tmp'), path('..data'))
    await changed
  }
  assert.equal(told(), 2)
})

test('a file that is gone is waited for, and told when it is back', async (t) => {
  const { watch, next, told, path } = setup(t)
  writeFileSync(path('a.conf'), 'one')
  watch.watch([path('a.conf')])
  rmSync(path('a.conf'))
  await wait(100)
  assert.equal(told(), 0)
  const changed = next()
  writeFileSync(path('a.conf'), 'two')
  await changed
})

test('other files of the folder are nobody’s business, and neither is what was read since', async (t) => {
  const { watch, told, path } = setup(t)
  writeFileSync(path('a.conf'), 'one')
  watch.watch([path('a.conf')])
  writeFileSync(path('b.conf'), 'one')
  writeFileSync(path('a.conf'), 'two')
  watch.noted()
  await wait(100)
  assert.equal(told(), 0)
})

test('an included file is watched once it is named', async (t) => {
  const { watch, next, path } = setup(t)
  writeFileSync(path('a.conf'), 'one')
  watch.watch([path('a.conf')])
  mkdirSync(path('conf.d'))
  writeFileSync(path('conf.d/b.conf'), 'one')
  watch.watch([path('a.conf'), path('conf.d/b.conf')])
  const changed = next()
  writeFileSync(path('conf.d/b.conf'), 'two')
  await changed
})

test('a change without an event is found by looking', async (t) => {
  const { folder, watch, next, path } = setup(t, { settle: 20, poll: 50 })
  // The folder is replaced as a whole: the watch stays with the old one.
  const real = join(folder, 'real')
  mkdirSync(real)
  writeFileSync(join(real, 'a.conf'), 'one')
  watch.watch([path('real/a.conf')])
  const changed = next()
  renameSync(real, path('old'))
  mkdirSync(real)
  writeFileSync(join(real, 'a.conf'), 'two')
  await changed
})

test('a watch that has ended tells nothing', async (t) => {
  const { watch, told, path } = setup(t)
  writeFileSync(path('a.conf'), 'one')
  watch.watch([path('a.conf')])
  watch.watch([])
  writeFileSync(path('a.conf'), 'two')
  await wait(100)
  assert.equal(told(), 0)
})
