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
  free: 100,
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

test('beyond a fair part it asks for nothing but what is free', () => {
  assert.equal(wanted(demand({ peak: 30, have: 30, free: 8 })), 38)
  assert.equal(wanted(demand({ peak: 30, have: 30, free: 0 })), 30)
  assert.equal(wanted(demand({ peak: 20, have: 20, free: 0 })), 25, 'a fair part others have to leave it')
  assert.equal(wanted(demand({ peak: 20, have: 20, free: -5 })), 25)
})

test('where nothing is free it keeps no more than one that it does not need', () => {
  assert.equal(wanted(demand({ peak: 20, have: 25, free: 0 })), 21)
  assert.equal(wanted(demand({ peak: 40, have: 60, free: 0 })), 41)
})

test('where another has less than a fair part it gives back bit by bit, and so much that it ends with one', () => {
  const saturated = { peak: 100, short: true, free: 0 }
  let have = 100
  for (let i = 0; i < 20; i++) have = wanted(demand({ ...saturated, conns: have, have }))
  assert.equal(wanted(demand({ ...saturated, conns: 100, have: 100 })), 81)
  assert.equal(have, 25)
  assert.equal(wanted(demand({ ...saturated, conns: 100, have: 81 })), 81, 'what it gave back must end first')
  assert.equal(
    wanted(demand({ peak: 60, have: 60, short: true, free: 5 })),
    62,
    'it leaves half of what is free',
  )
})

test('who has nothing to do keeps nothing where nothing is free, and does not take what was just given back', () => {
  assert.equal(wanted(demand({ free: 0, asked: false, have: 1 })), 0)
  assert.equal(wanted(demand({ free: 1, asked: false, have: 1 })), 1)
  assert.equal(wanted(demand({ free: 3, asked: false, have: 0 })), 0)
  assert.equal(wanted(demand({ free: 4, asked: false, have: 0 })), 1)
  assert.equal(wanted(demand({ free: 0, asked: true, have: 0 })), 1)
})

test('a fair part is one at least, however many share', () => {
  assert.equal(fairLease(100, 4), 25)
  assert.equal(fairLease(10, 3), 3)
  assert.equal(fairLease(2, 50), 1)
  assert.equal(fairLease(5, 0), 5)
})
