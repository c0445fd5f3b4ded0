import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { needs, TestOrder } from '../../scripts/test-order.ts'

/** Runs files for as long as they are said to take. @returns what ran at the same time, each time that it changed */
function played(files: readonly string[]): { together: string[][]; seconds: number } {
  const order = new TestOrder(files)
  const ends = new Map<string, number>()
  const together: string[][] = []
  let now = 0
  for (;;) {
    for (let file = order.take(); file !== undefined; file = order.take()) {
      ends.set(file, now + (needs[file]?.[0] ?? 1))
    }
    if (ends.size === 0) return { together, seconds: now }
    together.push([...ends.keys()].sort())
    const [first] = [...ends].sort(([, one], [, other]) => one - other)
    now = first![1]
    ends.delete(first![0])
    order.ended(first![0])
  }
}

const heavy = ['test/a.test.ts', 'test/b.test.ts', 'test/c.test.ts']
const fleet = [
  'test/system/fleet/probes.test.ts',
  'test/system/fleet/split.test.ts',
  'test/system/fleet/limits.test.ts',
]

test('two ordinary files run at a time, and what judges times comes when few are left, all together', () => {
  const { together, seconds } = played([...fleet, ...heavy])
  assert.deepEqual(together[0], ['test/a.test.ts', 'test/b.test.ts'])
  for (const some of together) {
    const ordinary = some.filter((file) => heavy.includes(file)).length
    assert.ok(ordinary < (some.length > ordinary ? 2 : 3), `${some}`)
  }
  const all = [...fleet].sort().join()
  assert.ok(together.some((some) => some.join() === all))
  assert.equal(seconds, 1 + Math.max(...fleet.map((file) => needs[file]![0])))
})

test('what only waits runs beside all others', () => {
  const { together } = played([...heavy, 'test/support/redis.test.ts'])
  assert.deepEqual(together[0], ['test/a.test.ts', 'test/b.test.ts', 'test/support/redis.test.ts'])
})

test('a file that takes all there is runs alone, and none is left out', () => {
  const files = [...heavy, ...fleet, 'test/system/fleet/memory.test.ts']
  const { together } = played(files)
  assert.deepEqual([...new Set(together.flat())].sort(), files.sort())
  for (const some of together) {
    if (some.includes('test/system/fleet/memory.test.ts')) assert.ok(some.length <= 3, `${some}`)
  }
})

test('the files that are known are there', () => {
  const root = new URL('../../', import.meta.url)
  for (const file of Object.keys(needs)) assert.ok(existsSync(new URL(file, root)), file)
})
