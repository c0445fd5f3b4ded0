import assert from 'node:assert/strict'
import { test } from 'node:test'
import { race, raceApart, raceChances } from '../../../sidecar/balance/race.ts'
import { seeded } from '../../support/dice.ts'

const cases: readonly { readonly starts: number[]; readonly rates: number[] }[] = [
  { starts: [0, 0, 0], rates: [3, 2, 1] },
  { starts: [1, 0, 2], rates: [1.5, 0.3, 1.2] },
  { starts: [4, 4, 5, 9], rates: [0.02, 0.5, 2, 1.4] },
  { starts: [7], rates: [1] },
  { starts: [-0.3, 0.25, -0.1, 1.5], rates: [0.5, 2, 1.4, 0.1] },
]

/** Each one's wins of many races. */
function wins(count: number, winner: () => number): number[] {
  const found = Array<number>(count).fill(0)
  const races = 200_000
  for (let i = 0; i < races; i++) found[winner()]! += 1 / races
  return found
}

function near(found: readonly number[], expected: readonly number[]): void {
  for (const [i, one] of found.entries()) {
    assert.ok(Math.abs(one - expected[i]!) < 0.005, `${found} and not ${expected}`)
  }
}

test('is won as if a time were drawn for each runner', () => {
  for (const [seed, { starts, rates }] of cases.entries()) {
    const dice = seeded(seed)
    const drawn = wins(starts.length, () => {
      const ends = starts.map((start, i) => start - Math.log(1 - dice()) / rates[i]!)
      return ends.indexOf(Math.min(...ends))
    })
    const from = Float64Array.from(starts)
    const at = Float64Array.from(rates)
    for (const run of [race, raceApart]) {
      near(
        wins(starts.length, () => run(from, at, starts.length, { random: dice })),
        drawn,
      )
    }
  }
})

test('tells the chances of its runners', () => {
  for (const [seed, { starts, rates }] of cases.entries()) {
    const dice = { random: seeded(seed + 10) }
    const chances = new Float64Array(starts.length)
    raceChances(Float64Array.from(starts), Float64Array.from(rates), starts.length, chances)
    assert.ok(Math.abs(chances.reduce((sum, one) => sum + one, 0) - 1) < 1e-12)
    const found = wins(starts.length, () =>
      race(Float64Array.from(starts), Float64Array.from(rates), starts.length, dice),
    )
    near(found, [...chances])
  }
})

test('looks at no more of its lists than it is told', () => {
  const dice = { random: seeded(30) }
  const starts = Float64Array.from([1, 1, 0])
  const rates = Float64Array.from([1, 1, 1000])
  for (let i = 0; i < 100; i++) {
    assert.ok(race(starts, rates, 2, dice) < 2)
    assert.ok(raceApart(starts, rates, 2, dice) < 2)
  }
})
