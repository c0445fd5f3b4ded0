import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compare } from '../../../sidecar/simulate/compare.ts'
import { readContender } from '../../../sidecar/simulate/contenders.ts'
import { scenarios } from '../../../sidecar/simulate/scenarios.ts'
import { best, byDefault, planFor, servers, Verdicts } from '../../bench/simulate-targets.ts'

/*
 * What `npm run bench -- simulate` shows in full, here on one seed and in shorter runs, where these do not change what is
 * measured: the errors of a failing peer are a matter of how long it fails.
 */

const seconds: Readonly<Record<string, number>> = {
  homogeneous: 20,
  speeds: 20,
  'slow-peer': 45,
  stall: 40,
  'failing-peer': 90,
  pauses: 25,
  'speeds-many': 30,
  'stall-many': 40,
  errors: 20,
}

for (const load of [0.7, 0.9]) {
  test(`least_time is where it has to be at ${100 * load} % load`, () => {
    const contenders = ['least_conn', byDefault, best].map(readContender)
    const columns = scenarios
      .filter(({ name }) => load === 0.7 || ['homogeneous', 'speeds', 'slow-peer', 'errors'].includes(name))
      .map((scenario) => {
        const plan = planFor(scenario, load, seconds[scenario.name], 2)
        return compare({ plan, wanted: servers, keep: 0.9, contenders, runs: 1 })
      })
    const verdicts = new Verdicts()
    verdicts.judge(load, columns)
    assert.ok(verdicts.lines.length >= (load === 0.7 ? 35 : 14), `${verdicts.lines.length} targets`)
    assert.deepEqual(
      verdicts.lines.filter(({ met }) => met === false).map(({ text }) => text),
      [],
    )
  })
}
