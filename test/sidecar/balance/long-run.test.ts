import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { observe } from '../../../feedback/observe.ts'
import type { Attempt } from '../../../feedback/outcome.ts'
import { Selection } from '../../../sidecar/balance/pick.ts'
import { RoundRobin } from '../../../sidecar/balance/round-robin.ts'
import { seeded } from '../../support/dice.ts'
import { ask, env, peers } from '../../support/peers.ts'
import { fc } from '../../support/property.ts'
import { variants } from '../../support/variants.ts'

const weights = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 6, size: 'max' })

test('round robin gives each exactly its weight in every round', () => {
  fc.assert(
    fc.property(weights, fc.nat(3), (weights, before) => {
      const list = peers(weights)
      const balancer = new RoundRobin(list)
      const round = weights.reduce((a, b) => a + b)
      // From a point in the middle as well: the order of turns comes again.
      for (let i = 0; i < before; i++) balancer.pick(ask())
      const given = weights.map(() => 0)
      for (let i = 0; i < 3 * round; i++) given[balancer.pick(ask())!.index]! += 1
      assert.deepEqual(
        given,
        weights.map((weight) => 3 * weight),
      )
    }),
    { numRuns: 200, seed: 1 },
  )
})

test('round robin never falls behind by a round, whoever was out before', () => {
  fc.assert(
    fc.property(weights, fc.array(fc.nat(63), { maxLength: 200, size: 'max' }), (weights, past) => {
      const list = peers(weights)
      const balancer = new RoundRobin(list)
      for (const out of past) balancer.pick(ask(({ index }) => ((out >> index) & 1) === 0))
      const round = weights.reduce((a, b) => a + b)
      const given = weights.map(() => 0)
      for (let i = 1; i <= 4 * round; i++) {
        given[balancer.pick(ask())!.index]! += 1
        for (const [index, count] of given.entries()) {
          const due = (i * weights[index]!) / round
          // What is left of the past is at most what a round of it could leave.
          assert.ok(Math.abs(count - due) <= weights.length + 1, `after ${i}: ${count} of ${due.toFixed(1)}`)
        }
      }
    }),
    { numRuns: 200, seed: 1 },
  )
})

for (const variant of variants) {
  if (!variant.method.supports.includes('weight')) continue
  test(`${variant.title}: weights hold in the long run, after whatever has been`, () => {
    fc.assert(
      fc.property(weights, fc.array(fc.nat(63), { maxLength: 50, size: 'max' }), (weights, past) => {
        const scene = env(4)
        const group = variant.make(weights, scene)
        const { upstream } = group
        const dice = seeded(weights.length)
        const running: Attempt[] = []
        const end = () => {
          const attempt = running.shift()!
          attempt.ending = 'ok'
          attempt.peerStatus = 200
          observe(attempt, attemptCall, scene.now())
        }
        // What a peer reports of itself is the same for all of them.
        const attemptCall = Object.assign(new Call(), { args: '1' })
        const request = () => {
          scene.clock.move(1)
          const call = new Call()
          call.target = `/items/${Math.floor(1e9 * dice())}`
          call.remoteAddr = Array.from({ length: 4 }, () => Math.floor(256 * dice())).join('.')
          const attempt = new Selection(group, call, scene).next()
          if (attempt !== undefined) running.push(attempt)
          return attempt?.peer
        }
        for (const out of past) {
          for (const { index } of upstream.peers) upstream.zone.peers.barred[index] = (out >> index) & 1
          request()
          if (running.length > 40) end()
        }
        upstream.zone.peers.barred.fill(0)
        const picks = 3000
        const total = weights.reduce((a, b) => a + b)
        const given = weights.map(() => 0)
        for (let i = 0; i < 600 + picks; i++) {
          while (running.length > 40) end()
          const { index } = request()!
          if (i >= 600) given[index]! += 1
        }
        for (const [index, weight] of weights.entries()) {
          const share = given[index]! / picks
          assert.ok(Math.abs(share - weight / total) < 0.06, `${weight} of ${weights}: ${share}`)
        }
      }),
      { numRuns: 12, seed: 1 },
    )
  })
}
