import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Demand, fairLease, wanted } from '../../../feedback/fleet/leases.ts'

const demand = (more: Partial<Demand>): Demand => ({
  limit: 100,
  members: 4,
  conns: 0,
  peak: 0,
  have: 0,
  asked: true,
  short: false,
  ...more,
})

test('an instance that needs nothing asks for one place, so that its first request finds it', () => {
  assert.equal(wanted(demand({ asked: false })), 1)
})

test('ordinarily it asks for a quarter more than it needed of late', () => {
  assert.equal(wanted(demand({ peak: 8, have: 20 })), 10)
  assert.equal(wanted(demand({ peak: 3, conns: 40, have: 50 })), 50)
})

test('at the end of its lease it asks for twice as many, and never for more than the limit', () => {
  assert.equal(wanted(demand({ peak: 10, have: 10 })), 20)
  assert.equal(wanted(demand({ peak: 80, have: 80 })), 100)
})

test('where somebody goes short it keeps a fair part, and whatever is in progress', () => {
  assert.equal(wanted(demand({ peak: 60, conns: 10, have: 60, short: true })), 25)
  assert.equal(wanted(demand({ peak: 60, conns: 50, have: 60, short: true })), 50)
  assert.equal(wanted(demand({ peak: 4, conns: 2, have: 20, short: true })), 5)
})

test('where somebody goes short and it has nothing to do it keeps nothing', () => {
  assert.equal(wanted(demand({ short: true, asked: false, have: 1 })), 0)
  assert.equal(wanted(demand({ short: true, asked: true, have: 0 })), 1)
})

test('a fair part is one at least, however many share', () => {
  assert.equal(fairLease(100, 4), 25)
  assert.equal(fairLease(10, 3), 3)
  assert.equal(fairLease(2, 50), 1)
  assert.equal(fairLease(5, 0), 5)
})
