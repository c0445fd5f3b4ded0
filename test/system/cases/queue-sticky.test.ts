// Requests whose session binds them to one peer, in a group that has others wait.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Backend, backend } from '../../support/backend.ts'
import { ask } from '../../support/client.ts'
import { eventually, type Lab, lab } from '../../support/invariants.ts'
import { Gate, queueStatus, wait } from '../../support/queued.ts'

/** Two peers with room for one request each; `route` names them `a` and `b`. */
function inFront(a: Backend, b: Backend): Promise<Lab> {
  return lab(
    `upstream peers { zone peers 64k; server ${a.address} max_conns=1 sid=a; server ${b.address} max_conns=1 sid=b;
       sticky route $arg_to; sticky_strict on; queue 20 timeout=20s; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [a, b],
    { main: 'worker_processes 1;' },
  )
}

test('one that may go to its own peer alone waits for that one, and holds up nobody who may go elsewhere', async () => {
  const gates = [new Gate(), new Gate()] as const
  await using a = await backend(gates[0].script)
  await using b = await backend(gates[1].script)
  await using front = await inFront(a, b)
  const held = [ask(front.port, '/0?to=a'), ask(front.port, '/1?to=b')]
  await eventually('both are full', () => a.busy === 1 && b.busy === 1)
  for (const [i, target] of ['/2?to=a', '/3?to=a', '/4', '/5?to=b', '/6'].entries()) {
    held.push(ask(front.port, target))
    await wait(front.sidecar, i + 1)
  }
  for (const target of ['/4', '/5?to=b', '/6']) {
    gates[1].let()
    await eventually(`${target} has its turn`, () => b.requests.at(-1)?.target === target)
  }
  assert.equal((await queueStatus(front.sidecar)).waiting, 2)
  assert.deepEqual(a.targets, ['/0?to=a'])
  // One that comes now finds room at the other, although some wait.
  gates[1].open()
  assert.equal((await ask(front.port, '/7')).status, 200)
  gates[0].open()
  for (const { status } of await Promise.all(held)) assert.equal(status, 200)
  assert.deepEqual(a.targets, ['/0?to=a', '/2?to=a', '/3?to=a'])
  assert.equal(b.targets.at(-1), '/7')
  await front.settle(8)
})

test('nobody waits for a peer that the group has not', async () => {
  const gate = new Gate()
  await using a = await backend(gate.script)
  await using b = await backend(gate.script)
  await using front = await inFront(a, b)
  const held = [ask(front.port, '/0?to=a'), ask(front.port, '/1?to=a')]
  await wait(front.sidecar, 1)
  for (const target of ['/2?to=c', '/3?to=c']) {
    const from = performance.now()
    assert.equal((await ask(front.port, target)).status, 502)
    assert.ok(performance.now() - from < 2000)
  }
  assert.equal((await queueStatus(front.sidecar)).queued, 1)
  gate.open()
  await Promise.all(held)
  await front.settle(4)
})
