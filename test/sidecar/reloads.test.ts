import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type Reloaded, Reloads } from '../../sidecar/reloads.ts'

/** Reloads that end when told to. */
function setup() {
  const ends: ((how: Reloaded) => void)[] = []
  let wall = 1000
  const reloads = new Reloads(
    () => new Promise((resolve) => ends.push(resolve)),
    () => wall++,
  )
  return { reloads, ends }
}

test('those who ask while a reload runs share the next one', async () => {
  const { reloads, ends } = setup()
  const first = reloads.ask()
  await turn()
  const second = reloads.ask()
  const third = reloads.ask()
  await turn()
  assert.equal(ends.length, 1)
  ends[0]!({ ok: true })
  assert.deepEqual(await first, { ok: true })
  await turn()
  assert.equal(ends.length, 2)
  ends[1]!({ ok: false, error: 'no' })
  assert.deepEqual(await Promise.all([second, third]), [
    { ok: false, error: 'no' },
    { ok: false, error: 'no' },
  ])
})

test('how the last one ended is remembered, and both kinds are counted', async () => {
  const { reloads, ends } = setup()
  const last = () => reloads.last
  assert.equal(last(), undefined)
  for (const how of [{ ok: true }, { ok: false, error: 'bad' }, { ok: true }] satisfies Reloaded[]) {
    const ended = reloads.ask()
    await turn()
    ends.at(-1)!(how)
    await ended
    assert.deepEqual(last()?.ok, how.ok)
  }
  assert.deepEqual(last(), { ok: true, at: 1002 })
  assert.deepEqual([reloads.succeeded, reloads.failed], [2, 1])
})

test('one that breaks has failed, and the next one is made all the same', async () => {
  let count = 0
  const reloads = new Reloads(async () => {
    count += 1
    if (count === 1) throw new Error('broken')
    return { ok: true }
  })
  assert.deepEqual(await reloads.ask(), { ok: false, error: 'broken' })
  assert.deepEqual(await reloads.ask(), { ok: true })
})
