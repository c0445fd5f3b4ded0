import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redisServer } from '../support/redis.ts'
import { type Cost, measure } from './fleet-measure.ts'
import { growth, isStarved, power, row, tooMuch } from './fleet-report.ts'

const times = { warm: 200, measured: 700 }

function cost(instances: number, cpu: number): Cost {
  const rates = { exchanges: 5 * instances, commands: 100 * instances, cpu, received: 1e6, sent: 2e6 }
  return {
    cell: { instances, peers: 1000, part: 1 },
    ms: 4000,
    ...rates,
    memory: 1e6,
    mean: 1,
    p99: 2,
    late: 0,
    own: 2,
  }
}

test('commands grow with the instances, and not with their square', async () => {
  await using server = await redisServer()
  const [two, eight] = [
    await measure(server, { instances: 2, peers: 10, part: 1 }, times),
    await measure(server, { instances: 8, peers: 10, part: 1 }, times),
  ]
  // A jitter of a tenth, and half a second of it.
  const ratio = eight.exchanges / two.exchanges
  assert.ok(ratio > 2.5 && ratio < 6, `${two.exchanges} and ${eight.exchanges} exchanges a second`)
  const [few, many] = [two.commands / two.exchanges, eight.commands / eight.exchanges]
  assert.ok(many < 1.3 * few, `${few} and ${many} commands for an exchange`)
  for (const found of [two, eight]) {
    assert.ok(found.late < 0.5)
    assert.ok(found.cpu > 0 && found.cpu < 1)
    assert.ok(found.mean > 0 && found.mean <= found.p99 + 1e-9)
    assert.ok(found.received > 0 && found.sent > 0 && found.memory > 0 && found.own > 0)
  }
})

test('the power of a growth is found', () => {
  assert.ok(Math.abs(power([1, 3, 10].map((x) => [x, 7 * x])) - 1) < 1e-9)
  assert.ok(Math.abs(power([1, 3, 10].map((x) => [x, 0.1 * x * x])) - 2) < 1e-9)
})

test('a growth says what one instance costs and with how many Redis is full', () => {
  const found = growth([cost(3, 0.06), cost(10, 0.2), cost(25, 0.5)])
  assert.ok(Math.abs(found.cpu - 1) < 1e-9 && Math.abs(found.commands - 1) < 1e-9)
  assert.ok(Math.abs(found.each - 0.02) < 1e-9 && found.spread < 1e-9)
  assert.equal(found.full, 50)
})

test('what would be too much for Redis is not tried, and the table says so', () => {
  const cell = { instances: 50, peers: 1000, part: 1 }
  assert.equal(tooMuch(cell, cost(25, 0.2)), undefined)
  assert.equal(tooMuch(cell, undefined), undefined)
  assert.equal(isStarved(cost(25, 0.5)), false)
  assert.equal(isStarved({ ...cost(25, 0.5), exchanges: 90 }), true)
  const full = tooMuch(cell, cost(25, 0.5))!
  assert.equal(full.expected, 1)
  assert.match(row(full), /^\| 1,000 \| 50 \| full \(100 % of a core\)/)
  assert.match(
    row(cost(25, 0.5)),
    /^\| 1,000 \| 25 \| 125 \| 2,500 \| 50 % \| 2\.0 % \| 1,000 \| 2,000 \| 1\.0 \|/,
  )
})
