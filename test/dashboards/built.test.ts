import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { built } from '../../dashboards/build.ts'

const folder = new URL('../../dashboards/', import.meta.url)

test('what is committed is what the dashboards say: npm run dashboards', () => {
  for (const [name, text] of built()) {
    assert.ok(readFileSync(new URL(name, folder), 'utf8') === text, `dashboards/${name} is not current`)
  }
})

test('building twice gives the same bytes', () => {
  assert.deepEqual([...built()], [...built()])
})

test('nothing is left of dashboards that are no longer built', () => {
  const files = globSync('grafana/*', { cwd: folder.pathname })
  assert.deepEqual(
    files.toSorted(),
    [...built().keys()].filter((name) => name.startsWith('grafana/')).toSorted(),
  )
})
