import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { test } from 'node:test'
import { chosenFiles } from '../../scripts/test-files.ts'

const all = globSync('test/**/*.test.ts').sort()

test('each file is in one of the two runs, and in that of all', () => {
  const [plain, integration] = [chosenFiles([]), chosenFiles(['--integration'])]
  assert.deepEqual([...plain, ...integration].sort(), all)
  assert.deepEqual(chosenFiles(['--all']), all)
  assert.ok(plain.length > 250, `${plain.length}`)
})

test('what needs more than Node is with the others of that kind, and so is what is a long run in small', () => {
  const integration = chosenFiles(['--integration'])
  for (const file of [
    'system/fleet/health',
    'system/console/keys',
    'system/tls/clients',
    'probes/bullmq',
    'soak/soak',
    'system/scrape',
    'system/churn',
  ]) {
    assert.ok(integration.includes(`test/${file}.test.ts`), file)
  }
  assert.ok(!integration.includes('test/system/stream/sessions.test.ts'))
})

test('words choose of all files, and of those of integration where that is asked for', () => {
  const fleet = all.filter((file) => file.includes('system/fleet/'))
  assert.deepEqual(chosenFiles(['system/fleet/']), fleet)
  assert.deepEqual(chosenFiles(['--integration', 'bullmq', 'units']), ['test/probes/bullmq.test.ts'])
  assert.deepEqual(chosenFiles(['no-such-file']), [])
})

test('an option that is unknown is said', () => {
  assert.throws(() => chosenFiles(['--fast']), /unknown option --fast/)
})
