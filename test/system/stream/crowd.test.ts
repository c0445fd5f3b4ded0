import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crowd, EchoPeer, faultsOf } from '../../support/crowd.ts'
import { eventually } from '../../support/invariants.ts'
import { start } from '../../support/sidecar.ts'

// `npm run bench -- sessions` does the same with 5,000 and 2,000.
const idle = process.env['TEST_LONG'] === '1' ? 5000 : 300
const active = process.env['TEST_LONG'] === '1' ? 2000 : 120

test('sessions that say nothing are all there when they speak again, whatever went on beside them', async () => {
  await using first = await new EchoPeer().listen()
  await using second = await new EchoPeer().listen()
  await using sidecar = await start(
    `worker_processes 2;
     stream {
       upstream echo { zone echo 1m; least_conn; server ${first.address}; server ${second.address}; }
       server { listen 127.0.0.1:PORT; proxy_pass echo; }
     }`,
  )
  const silent = await crowd(sidecar.port, idle)
  const busy = await crowd(sidecar.port, active, 100_000)
  for (let round = 0; round < 10; round++) {
    await Promise.all(busy.map((talker, i) => talker.say(1 + ((i * 613 + round * 97) & 16383))))
  }
  await Promise.all(silent.map((talker) => talker.say(16)))
  const open = [first.sockets.size, second.sockets.size]
  await Promise.all([...silent, ...busy].map((talker) => talker.end()))
  assert.deepEqual(faultsOf([...silent, ...busy]), [])
  // The fewest connections first, over both threads together.
  assert.equal(open[0]! + open[1]!, idle + active)
  assert.ok(Math.abs(open[0]! - open[1]!) <= 2, `${open}`)
  await eventually('the peers are let go', () => first.sockets.size + second.sockets.size === 0)
})
