import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JoinedMemory } from '../../../sidecar/build/joined-memory.ts'
import { join, prepare, type Running } from '../../../sidecar/build/running.ts'
import { shareMemory } from '../../../sidecar/build/shared-memory.ts'
import { loadText } from '../../../sidecar/config/load.ts'

const options = { prefix: '/', version: '1' }

/** Which groups are shared, in this thread and in one that joins it. */
async function shared(main: string): Promise<string[]> {
  const text = `${main} http {
    upstream a { server 127.0.0.1:1; }
    upstream b { server 127.0.0.1:1; fleet off; }
    server { listen 8080; location / { proxy_pass http://127.0.0.1:2; } }
  }`
  const loaded = loadText(text, 'test.conf', 'nginx')
  const prepared = await prepare(loaded, options, undefined, 1)
  const running = prepared.commit()
  const memory = new JoinedMemory(0, () => {})
  memory.use(structuredClone(shareMemory(prepared.plans, running)))
  const served = join(loaded.model, structuredClone(prepared.plans), options, memory, undefined)
  assert.deepEqual(names(served), names(running))
  return names(running)
}

function names({ groups }: Running): string[] {
  return [...groups].filter(([, group]) => group.balancing.upstream.fleet).map(([name]) => name)
}

test('a fleet shares every group, one that a host stands for too, but those that keep out', async () => {
  assert.deepEqual(await shared('fleet redis://127.0.0.1:1;'), ['a', '127.0.0.1:2'])
})

test('without a fleet no group is shared', async () => {
  assert.deepEqual(await shared(''), [])
})
