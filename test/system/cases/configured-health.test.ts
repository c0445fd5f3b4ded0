// What the guides' configurations say of peers that fail, come back, or stand by.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend } from '../../support/backend.ts'
import { at, inFront, letters, peers, port } from '../../support/configured.ts'
import { eventually, spread } from '../../support/invariants.ts'
import { seed } from '../../support/seed.ts'

test('the backup is asked only while no primary peer can answer, and there is nothing to switch back', async () => {
  await using three = await peers(2)
  const spare = await three.add({ body: 'S' }, { host: '127.0.0.51', port })
  const { 'backend1.example.com': first, ...rest } = at
  const text = await seed('backup', { 'backend1.example.com;': `${first} fail_timeout=1s;`, ...rest })
  await using lab = await inFront(text, three)
  assert.equal(await letters(lab, 4), 'ABAB')
  await three.list[0]!.stop()
  assert.equal(spread([...(await letters(lab, 4))]), 'B: 4')
  await three.list[1]!.stop()
  assert.equal(await letters(lab, 4), 'SSSS')
  assert.equal(spare.requests.length, 4)
  three.list[0] = await backend({ body: 'A' }, { host: '127.0.0.1', port })
  await eventually('the primary peer answers again', async () => (await letters(lab, 1)) === 'A')
  assert.equal(await letters(lab, 3), 'AAA')
  await lab.settle(undefined, { seen: false })
})

test('both peers are set aside after three failures each, and the backup takes over', async () => {
  await using three = await peers(3)
  for (const one of three.list.slice(0, 2)) one.script = (x) => x.reset()
  await using lab = await inFront(await seed('failover', at), three)
  assert.equal(await letters(lab, 8), 'CCCCCCCC')
  assert.deepEqual(
    three.list.map((one) => one.requests.length),
    [3, 3, 8],
  )
  const status = await lab.peers('backend')
  assert.equal(status[`127.0.0.1:${port}`]?.state, 'unavailable')
  assert.equal(status[`127.0.0.1:${port}`]?.health.unavailable, 1)
  assert.equal(status[`127.0.0.3:${port}`]?.backup, true)
  await lab.settle(8)
})

test('a recovered peer climbs to its weight', async () => {
  await using two = await peers(2)
  const line = (await seed('slow-start', at)).replace('30s', '2s fail_timeout=1s')
  await using lab = await inFront(`upstream backend { ${line} server 127.0.0.2:${port}; }`, two)
  two.list[0]!.script = (x) => x.reset()
  assert.equal(await letters(lab, 2), 'BB')
  two.list[0]!.script = { body: 'A' }
  await eventually('the first answer after the failure', async () => (await letters(lab, 1)) === 'A')
  const from = performance.now()
  const during = async (untilMs: number) => {
    let said = ''
    while (performance.now() - from < untilMs) {
      said += await letters(lab, 1)
      await sleep(4)
    }
    return (said.split('A').length - 1) / said.length
  }
  const early = await during(600)
  await sleep(600)
  const late = await during(1900)
  assert.equal((await lab.peers('backend'))[`127.0.0.1:${port}`]?.state, 'recovering')
  assert.ok(early < 0.25, `share of ${early} in the first third`)
  assert.ok(late > early && late < 0.55, `share of ${late} in the last third, ${early} in the first`)
  await sleep(Math.max(0, 2050 - (performance.now() - from)))
  assert.equal(spread([...(await letters(lab, 20))]), 'A: 10, B: 10')
  await lab.settle(undefined)
})
