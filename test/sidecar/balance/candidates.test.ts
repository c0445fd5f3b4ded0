import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Candidates, sample } from '../../../sidecar/balance/candidates.ts'
import { ask, env, peers } from '../../support/peers.ts'

const list = (count: number) => peers(Array.from({ length: count }, () => 1))

test('are all ready peers of a group that is not large', () => {
  const candidates = new Candidates(list(64), env())
  candidates.gather(ask(({ index }) => index % 2 === 0))
  assert.equal(candidates.count, 32)
  assert.equal(candidates.sharers, 32)
  assert.equal(candidates.sampled, false)
  assert.deepEqual(
    [...candidates.places.slice(0, 32)],
    Array.from({ length: 32 }, (_, i) => 2 * i),
  )
})

for (const [words, count, part] of [
  ['a large group', 500, 1],
  ['a large group of which some are ready', 500, 0.5],
  ['a large group of which few are ready', 2000, 0.05],
] as const) {
  test(`are different ready peers of ${words}, each as often`, () => {
    const all = list(count)
    const out = new Set(all.filter((_, i) => (i * 7919) % 1000 >= 1000 * part))
    const ready = count - out.size
    const candidates = new Candidates(all, env(4))
    const drawn = new Float64Array(count)
    const picks = 20_000
    for (let i = 0; i < picks; i++) {
      candidates.gather(ask((peer) => !out.has(peer)))
      assert.equal(candidates.count, sample)
      assert.equal(candidates.sampled, true)
      const places = candidates.places.slice(0, sample)
      assert.equal(new Set(places).size, sample)
      for (const [k, place] of places.entries()) {
        assert.ok(!out.has(all[place]!))
        assert.equal(candidates.indexes[k], all[place]!.index)
        drawn[place]! += 1
      }
    }
    const mean = (picks * sample) / ready
    for (const [place, times] of drawn.entries()) {
      if (out.has(all[place]!)) continue
      // Six standard deviations.
      assert.ok(Math.abs(times - mean) < 6 * Math.sqrt(mean), `${times} and not ${mean}`)
    }
  })
}

test('are all that are ready where a large group has only some', () => {
  const candidates = new Candidates(list(5000), env())
  candidates.gather(ask(({ index }) => index % 500 === 0))
  assert.equal(candidates.count, 10)
  assert.equal(candidates.sharers, 10)
  assert.equal(candidates.sampled, false)
})

test('any is a ready peer of the whole group, each as often', () => {
  for (const count of [10, 200]) {
    const candidates = new Candidates(list(count), env(6))
    const asked = ask(({ index }) => index !== 3)
    candidates.gather(asked)
    const drawn = new Float64Array(count)
    const picks = 1000 * count
    for (let i = 0; i < picks; i++) drawn[candidates.any(asked)!.index]! += 1
    assert.equal(drawn[3], 0)
    const mean = picks / (count - 1)
    for (const [index, times] of drawn.entries()) {
      if (index !== 3) assert.ok(Math.abs(times - mean) < 6 * Math.sqrt(mean), `${times}`)
    }
  }
})
