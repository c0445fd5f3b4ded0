import assert from 'node:assert/strict'
import { test } from 'node:test'
import { obey } from '../../feedback/agent.ts'
import { recall } from '../../feedback/held.ts'
import { begin, observe } from '../../feedback/observe.ts'
import { Attempt } from '../../feedback/outcome.ts'
import { enrol, judgeProbe } from '../../feedback/probe-health.ts'
import { anyWaiting, enterQueue, leaveQueue, overflowQueue } from '../../feedback/waiting.ts'
import { Zone } from '../../feedback/zone.ts'
import { group } from '../support/peers.ts'

test('each way out of the queue has its count, and the time is summed', () => {
  const zone = new Zone('z', 1)
  assert.equal(anyWaiting(zone), false)
  for (let i = 0; i < 4; i++) enterQueue(zone, i)
  overflowQueue(zone)
  assert.equal(anyWaiting(zone), true)
  leaveQueue(zone, 'picked', 10)
  leaveQueue(zone, 'left', 20)
  leaveQueue(zone, 'timeout', 40)
  const counts = (
    ['queued', 'queueWaiting', 'queueDropped', 'queueTimedout', 'queueOverflows', 'queueMs'] as const
  ).map((field) => zone.get(field))
  assert.deepEqual(counts, [4, 1, 1, 1, 1, 70])
  leaveQueue(zone, 'closed', 0)
  assert.equal(anyWaiting(zone), false)
})

test('a request knows whether others wait in other threads', () => {
  const main = new Zone('z', 1, 2)
  const [one, other] = [Zone.attach(main.share(), 0), Zone.attach(main.share(), 1)]
  assert.equal(enterQueue(one, 0), false)
  assert.equal(enterQueue(one, 1), false)
  assert.equal(enterQueue(other, 0), true)
  assert.equal(enterQueue(one, 2), true)
})

test('what waited in a thread that is no more does not count any more', () => {
  const main = new Zone('z', 1, 2)
  const [one, other] = [Zone.attach(main.share(), 0), Zone.attach(main.share(), 1)]
  enterQueue(one, 0)
  enterQueue(one, 1)
  enterQueue(other, 0)
  recall(main, 0)
  assert.equal(main.get('queueWaiting'), 1)
  assert.equal(main.get('queued'), 3)
})

test('whatever may make a peer ready rings for those that wait', () => {
  const upstream = group([1, 1])
  const { zone } = upstream
  const [peer] = upstream.peers as [(typeof upstream.peers)[number]]
  const rule = { name: 'p', fails: 1, passes: 1, essential: true, persistent: false }
  const { checkup } = enrol(peer, [rule], false, 1000)
  const attempt = new Attempt(upstream, peer, 1000, '')
  begin(attempt, 1000)
  attempt.ending = 'ok'
  enterQueue(zone, 0)
  const rings = (act: () => void): number => {
    const before = zone.bell.rings
    act()
    return zone.bell.rings - before
  }
  assert.equal(
    rings(() => observe(attempt, undefined, 1001)),
    1,
  )
  assert.ok(rings(() => judgeProbe(checkup, checkup.standings[0]!, true, 1002)) > 0)
  assert.ok(rings(() => obey(peer, { maxConns: 5 })) > 0)
  assert.ok(rings(() => obey(peer, { administrative: 'ready' })) > 0)
})
