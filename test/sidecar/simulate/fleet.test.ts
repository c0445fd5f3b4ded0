import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Comparison, compare, type Row } from '../../../sidecar/simulate/compare.ts'
import { readContender } from '../../../sidecar/simulate/contenders.ts'
import { scenarios } from '../../../sidecar/simulate/scenarios.ts'
import { best, byDefault, planFor, servers } from '../../bench/simulate-targets.ts'

/*
 * What `npm run bench -- fleet-benefit` shows in full, here on one seed and in shorter runs.
 */

function shared(name: string, seconds: number, methods: readonly string[], instances = 20): Comparison {
  const scenario = scenarios.find((scenario) => scenario.name === name)
  assert.ok(scenario)
  const plan = { ...planFor(scenario, 0.7, seconds, 3), instances }
  const contenders = methods.map(readContender)
  return compare({ plan, wanted: servers, keep: 0.9, contenders, runs: 1, fleet: 200 })
}

function rows({ rows }: Comparison, words: string): [alone: Row, fleet: Row] {
  const [alone, fleet] = rows.filter((row) => row.words === words)
  assert.ok(alone && fleet && !alone.fleet && fleet.fleet)
  return [alone, fleet]
}

test('a peer that fails everything costs sidecars that share half as many requests, at most', () => {
  const [alone, fleet] = rows(shared('failing-peer', 60, [byDefault]), byDefault)
  assert.ok(alone.figures.errors > 0.001, `${alone.figures.errors}`)
  assert.ok(fleet.figures.errors <= alone.figures.errors / 2, `${fleet.figures.errors}`)
  assert.ok(fleet.ratios.p99 <= 1.1 * alone.ratios.p99, `${fleet.ratios.p99}`)
})

test('a peer that stands still gets less of sidecars that share', () => {
  const comparison = shared('stall', 36, [byDefault], 60)
  const { stage } = comparison
  const [alone, fleet] = rows(comparison, byDefault)
  const share = ({ figures }: Row) => figures.shares[stage.faulty]! / stage.fairShare(stage.faulty)
  assert.ok(share(fleet) <= 0.7 * share(alone), `${share(fleet)}, and alone ${share(alone)}`)
})

test('where nothing happens sharing changes nothing', () => {
  for (const name of ['homogeneous', 'speeds']) {
    const comparison = shared(name, 18, [byDefault, best])
    for (const words of [byDefault, best]) {
      const [alone, fleet] = rows(comparison, words)
      // With `best` only failures say anything: not one choice is another.
      if (words === best) assert.deepEqual(fleet.figures, alone.figures)
      const moved = fleet.ratios.p99 / alone.ratios.p99
      assert.ok(moved > 0.9 && moved < 1.1, `${words}, ${name}: ${moved}`)
    }
  }
})

test('a method that learns nothing has nothing to share, and is tried once', () => {
  const { rows } = shared('homogeneous', 12, ['round_robin', 'least_time last_byte plain', byDefault], 4)
  assert.deepEqual(
    rows.map(({ words, fleet }) => [words, fleet]),
    [
      ['round_robin', false],
      ['least_time last_byte plain', false],
      [byDefault, false],
      [byDefault, true],
    ],
  )
})
