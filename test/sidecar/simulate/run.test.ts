import assert from 'node:assert/strict'
import { test } from 'node:test'
import { centralQueue } from '../../../sidecar/simulate/central.ts'
import { compare } from '../../../sidecar/simulate/compare.ts'
import { readContender } from '../../../sidecar/simulate/contenders.ts'
import { erlangC } from '../../../sidecar/simulate/erlang.ts'
import { Instances } from '../../../sidecar/simulate/instances.ts'
import type { Trace } from '../../../sidecar/simulate/machines.ts'
import { measure } from '../../../sidecar/simulate/measure.ts'
import { run } from '../../../sidecar/simulate/run.ts'
import { scenarios } from '../../../sidecar/simulate/scenarios.ts'
import { type Plan, Stage } from '../../../sidecar/simulate/stage.ts'
import { workload } from '../../../sidecar/simulate/workload.ts'
import { planFor, servers } from '../../bench/simulate-targets.ts'

function plan(name: string, load: number, seconds: number, more: Partial<Plan> = {}): Plan {
  const scenario = scenarios.find((scenario) => scenario.name === name)
  assert.ok(scenario)
  return { ...planFor(scenario, load, seconds), ...more }
}

/** One method in one scenario, with all that can be looked at afterwards. */
function simulated(words: string, one: Plan) {
  const stage = new Stage(one)
  const work = workload(stage)
  const instances = new Instances(readContender(words), servers, 0.9, one.instances, one.seed)
  const trace = run(stage, work, instances)
  return { stage, work, instances, trace, figures: measure(stage, work, trace) }
}

const near = (found: number, expected: number, part: number) =>
  assert.ok(
    Math.abs(found - expected) <= part * expected,
    `${found} and not ${expected} within ${100 * part} %`,
  )

test("one queue waits as Erlang's formula says", () => {
  for (const [load, part] of [
    [0.7, 0.15],
    [0.9, 0.1],
  ] as const) {
    const stage = new Stage(plan('homogeneous', load, 240))
    const work = workload(stage)
    const { waiting, wait, mean } = measure(stage, work, centralQueue(stage, work))
    const theory = erlangC(40, load, 10)
    near(waiting, theory.chance, part)
    near(wait, theory.meanMs, 2 * part)
    // Service, and the way there and back.
    near(mean - wait, 10.5, 0.01)
  }
})

test('one queue goes by speed, and not to a peer that stands still, fails or crawls', () => {
  const count = (trace: Trace, stage: Stage, peer: number) => {
    const { from, to } = stage.window
    return work.at.reduce(
      (sum, at, id) => sum + (at + 0.25 >= from && at + 0.25 < to && trace.peer[id] === peer ? 1 : 0),
      0,
    )
  }
  const speeds = new Stage(plan('speeds', 0.3, 5))
  let work = workload(speeds)
  const trace = centralQueue(speeds, work)
  assert.ok(count(trace, speeds, 19) > 2 * count(trace, speeds, 10))
  for (const name of ['slow-peer', 'failing-peer']) {
    const stage = new Stage(plan(name, 0.7, 6))
    work = workload(stage)
    assert.equal(count(centralQueue(stage, work), stage, 0), 0, name)
  }
  const stalled = new Stage(plan('stall', 0.7, 12))
  work = workload(stalled)
  const stuck = centralQueue(stalled, work).took.filter((took) => took > 500)
  // What the two workers had when they stopped.
  assert.ok(stuck.length <= 2, `${stuck.length} were stuck`)
})

test('with all workers of one peer and one sidecar every method is the one queue', () => {
  const one = plan('homogeneous', 0.8, 10, { speeds: [1], workers: 4, instances: 1 })
  const stage = new Stage(one)
  const work = workload(stage)
  const best = centralQueue(stage, work)
  for (const words of ['round_robin', 'least_time header']) {
    const instances = new Instances(readContender(words), servers.slice(0, 1), 0.9, 1, 1)
    const trace = run(stage, work, instances)
    for (let id = 0; id < work.count; id++) assert.ok(Math.abs(trace.took[id]! - best.took[id]!) < 1e-6)
  }
})

test('every request is answered once, in the order of coming at each peer, and nothing stays in progress', () => {
  for (const words of ['random two', 'least_time last_byte best']) {
    const { work, trace, instances } = simulated(words, plan('stall', 0.9, 12))
    const before = servers.map(() => ({ id: -1, start: 0 }))
    for (let id = 0; id < work.count; id++) {
      const peer = trace.peer[id]!
      assert.ok(peer >= 0 && trace.took[id]! >= 0.5, `request ${id} of ${words}`)
      const start = work.at[id]! + trace.waited[id]!
      assert.ok(start >= before[peer]!.start - 1e-6, `${id} overtook ${before[peer]!.id}`)
      before[peer] = { id, start }
    }
    for (const { upstream } of instances.groups) {
      const { conns, waiting } = upstream.zone.peers
      assert.ok(upstream.peers.every(({ index }) => conns[index] === 0 && waiting[index] === 0))
    }
  }
})

test('round robin deals out evenly, least_time by speed', () => {
  const even = simulated('round_robin', plan('speeds', 0.05, 60)).figures.shares
  for (const share of even) near(share, 0.05, 0.01)
  const slow = plan('speeds', 0.05, 120, { instances: 1 })
  const { stage, figures } = simulated('least_time header decay=0', slow)
  const rates = stage.speeds.map((speed) => 1 / (10 / speed + 0.5))
  const all = rates.reduce((sum, rate) => sum + rate)
  for (const [peer, share] of figures.shares.entries()) near(share, rates[peer]! / all, 0.2)
})

test('a failing peer attracts whoever counts by time alone', () => {
  const errors = (words: string) => simulated(words, plan('failing-peer', 0.7, 30)).figures.errors
  near(errors('round_robin'), 0.05, 0.05)
  assert.ok(errors('least_time last_byte plain') > 0.3)
  assert.ok(errors('least_time last_byte') < 0.005)
})

test('keys stay with their peer', () => {
  const { work, trace } = simulated('hash $request_uri', plan('homogeneous', 0.5, 6, { keys: 50 }))
  const peers = new Map<number, Set<number>>()
  for (let id = 0; id < work.count; id++) {
    const key = work.key[id]!
    peers.set(key, (peers.get(key) ?? new Set()).add(trace.peer[id]!))
  }
  assert.equal(peers.size, 50)
  assert.ok([...peers.values()].every((set) => set.size === 1))
})

test('a backup has nothing to do while there is somebody else, and no load is reckoned by it', () => {
  const backup = { ...servers[2]!, options: { ...servers[2]!.options, backup: true } }
  const contenders = [readContender('least_conn')]
  const one = plan('homogeneous', 0.6, 10, { speeds: [1, 1, 0] })
  const wanted = [servers[0]!, servers[1]!, backup]
  const { stage, rows, central } = compare({ plan: one, wanted, keep: 0.9, contenders, runs: 1 })
  assert.equal(stage.workers, 4)
  assert.equal(rows[0]!.figures.shares[2], 0)
  assert.equal(central.shares[2], 0)
})

test('when nobody may be asked the request fails at once', () => {
  const full = servers.slice(0, 2).map((one) => ({ ...one, options: { ...one.options, max_conns: 1 } }))
  const one = plan('homogeneous', 0.9, 10, { speeds: [1, 1], instances: 1 })
  const stage = new Stage(one)
  const work = workload(stage)
  const trace = run(stage, work, new Instances(readContender('round_robin'), full, 0.9, 1, 1))
  const { errors } = measure(stage, work, trace)
  // Two places for requests that would take 3.78 at a time, the way included: Erlang's B formula.
  near(errors, 3.78 ** 2 / 2 / (1 + 3.78 + 3.78 ** 2 / 2), 0.05)
})

test('all methods see the same requests, whoever else is compared', () => {
  const one = plan('pauses', 0.7, 8)
  const figures = (words: readonly string[]) =>
    compare({ plan: one, wanted: servers, keep: 0.9, contenders: words.map(readContender), runs: 1 })
  const alone = figures(['random two'])
  const among = figures(['least_time last_byte best', 'random two', 'round_robin'])
  assert.deepEqual(among.rows[1], alone.rows[0])
  assert.deepEqual(among.central, alone.central)
  assert.equal(among.rows[0]!.figures.requests, among.rows[2]!.figures.requests)
})
