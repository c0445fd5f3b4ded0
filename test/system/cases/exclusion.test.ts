import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backend, type Script } from '../../support/backend.ts'
import { ask } from '../../support/client.ts'
import { lab } from '../../support/invariants.ts'

test('a peer that came back and fails for ever is set aside as it was the first time', async () => {
  const fails: Script = (x) => x.reset()
  await using bad = await backend(fails)
  await using good = await backend({ body: 'good' })
  await using front = await lab(
    `upstream peers { zone peers 64k; keepalive 0; server ${bad.address} max_fails=3 fail_timeout=1s; server ${good.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [bad, good],
  )
  let asked = 0
  const until = async (holds: () => boolean) => {
    const end = performance.now() + 5000
    while (!holds()) {
      assert.ok(performance.now() < end, 'not in 5 s')
      const { status } = await ask(front.port)
      asked += 1
      assert.equal(status, 200)
    }
  }
  const more = (count: number) => {
    const wanted = asked + count
    return until(() => asked >= wanted)
  }

  await more(40)
  assert.equal(bad.requests.length, 3)
  bad.script = { body: 'bad' }
  // The one attempt that is let through after a second, and then its turns.
  await until(() => bad.requests.length >= 10)
  assert.equal((await front.peers('peers'))[bad.address]!.state, 'up')

  bad.script = fails
  const before = bad.requests.length
  await more(40)
  assert.equal(bad.requests.length, before + 3)
  const { state, health } = (await front.peers('peers'))[bad.address]!
  assert.deepEqual([state, health.unavailable, health.fails], ['unavailable', 2, 6])

  const last = bad.requests.at(-1)!.at
  await until(() => bad.requests.length >= before + 4)
  await until(() => performance.now() - last > 1600)
  assert.equal(bad.requests.length, before + 4)
  const gap = bad.requests.at(-1)!.at - last
  assert.ok(gap >= 995 && gap < 1500, `${gap} ms`)
  assert.equal((await front.peers('peers'))[bad.address]!.health.unavailable, 2)
  await front.settle(asked)
})
