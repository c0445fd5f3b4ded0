// Active checks: peers that probes take out and bring back, under the real program.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Exchange, Script } from '../../support/backend.ts'
import { ask } from '../../support/client.ts'
import { at, peers } from '../../support/configured.ts'
import { eventually } from '../../support/invariants.ts'
import { seed } from '../../support/seed.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'

/** Answers clients with a letter, and probes at `/health` with a status that can be changed. */
class Checked {
  status = 200
  probes = 0
  readonly script: Script = (exchange: Exchange) => {
    if (exchange.target !== '/health') return exchange.reply({ body: this.letter })
    this.probes += 1
    return exchange.reply({ status: this.status, body: 'health' })
  }
  readonly letter: string
  constructor(letter: string) {
    this.letter = letter
  }
}

/** The guide's example with another interval, so that a test need not wait for it. */
async function example(interval = '5s'): Promise<string> {
  const text = await seed('active-checks', at)
  return `http { ${text.replace('listen 80;', 'listen 127.0.0.1:PORT;').replace('5s', interval)} }`
}

async function letters(sidecar: Sidecar, count: number): Promise<string> {
  let said = ''
  for (let i = 0; i < count; i++) {
    const reply = await ask(sidecar.port, '/')
    said += reply.status === 200 ? reply.text : `(${reply.status})`
  }
  return said
}

function states(sidecar: Sidecar, group = 'backend'): Promise<string[]> {
  return sidecar
    .json<Record<string, { state: string }>>(`/status/http/upstreams/${group}/peers/`)
    .then((all) => Object.values(all).map(({ state }) => state))
}

test('three checks in a row that fail take a peer out, and two that pass bring it back', async () => {
  await using two = await peers(2)
  const [a, b] = [new Checked('A'), new Checked('B')]
  two.list[0]!.script = a.script
  two.list[1]!.script = b.script
  await using sidecar = await start(await example('40ms'))
  assert.equal(await letters(sidecar, 4), 'ABAB')
  b.status = 503
  await sidecar.logged(
    /\[warn\] \S+ peer 127\.0\.0\.2:\d+ of upstream "backend" is unhealthy: probe "backend_probe" failed 3 times: status 503/,
  )
  assert.deepEqual(await states(sidecar), ['up', 'unhealthy'])
  assert.equal(await letters(sidecar, 4), 'AAAA')
  const probes = b.probes
  b.status = 200
  await sidecar.logged(/is healthy: probe "backend_probe" passed 2 times/)
  assert.ok(b.probes - probes >= 2)
  assert.deepEqual(await states(sidecar), ['up', 'up'])
  await eventually('the peer answers again', async () => (await letters(sidecar, 2)).includes('B'))
})
