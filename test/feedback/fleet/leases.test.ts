import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Demand, fairLease, type Wish, wanted } from '../../../feedback/fleet/leases.ts'

const demand = (more: Partial<Demand>): Demand => ({
  limit: 100,
  members: 4,
  conns: 0,
  peak: 0,
  have: 0,
  asked: true,
  keeps: false,
  free: 100,
  short: false,
  craved: false,
  ...more,
})

/** With a fair part of 25. */
const table: readonly [text: string, Partial<Demand>, Wish][] = [
  ['who needs nothing wants a fair part in reserve', { asked: false }, { want: 25, need: 0 }],
  ['and needs a place where it is asked', {}, { want: 25, need: 1 }],
  ['alone it wants the whole limit', { members: 1, asked: false }, { want: 100, need: 0 }],
  ['little use leaves the reserve as it is', { peak: 8, have: 25, free: 0 }, { want: 25, need: 8 }],
  ['who has more and does not need it keeps the reserve', { peak: 3, have: 50 }, { want: 25, need: 3 }],

  ['beyond it a quarter more than needed of late', { peak: 40, have: 60 }, { want: 50, need: 40 }],
  ['what is in progress counts', { peak: 3, conns: 40, have: 60 }, { want: 50, need: 40 }],
  ['where nothing is free, one more', { peak: 40, have: 60, free: 0 }, { want: 41, need: 40 }],
  ['at the end of a lease twice as many', { peak: 30, have: 30 }, { want: 60, need: 60 }],
  ['never more than the limit', { peak: 80, have: 80 }, { want: 100, need: 100 }],
  ['nothing but what is free', { peak: 30, have: 30, free: 8 }, { want: 38, need: 60 }],
  ['not even one more', { peak: 30, have: 30, free: 0 }, { want: 30, need: 60 }],
  ['a fair part others have to leave it', { peak: 20, have: 20, free: -5 }, { want: 25, need: 40 }],

  ['a reserve shrinks', { have: 25, free: 0, craved: true, asked: false }, { want: 6, need: 0 }],
  ['to what is needed', { peak: 20, have: 25, free: 0, craved: true }, { want: 22, need: 20 }],
  ['and one more', { peak: 20, have: 21, free: 0, craved: true }, { want: 21, need: 20 }],
  ['one place is kept where it is asked', { have: 1, free: 0, craved: true }, { want: 1, need: 1 }],
  ['none where not', { have: 1, free: 0, craved: true, asked: false }, { want: 0, need: 0 }],
  ['but for a while', { have: 1, free: 0, craved: true, asked: false, keeps: true }, { want: 1, need: 0 }],
  ['it does not shrink while anything is free', { have: 20, free: 1, craved: true }, { want: 20, need: 1 }],
  ['nor grow', { have: 9, free: 30, craved: true }, { want: 9, need: 1 }],
  ['beyond a fair part it does', { have: 40, free: 1, craved: true }, { want: 25, need: 1 }],
  ['a real need makes it grow', { peak: 9, have: 9, free: 30, craved: true }, { want: 25, need: 18 }],
  ['a first request too', { have: 0, free: 0, craved: true }, { want: 25, need: 1 }],

  ['half of what is free is left', { peak: 60, have: 60, short: true, free: 5 }, { want: 62, need: 100 }],
]

for (const [text, more, wish] of table) {
  test(`leases: ${text}`, () => assert.deepEqual(wanted(demand(more)), wish))
}

test('where another has less than a fair part it gives back bit by bit, and so much that it ends with one', () => {
  const saturated = { peak: 100, short: true, craved: true, free: 0 }
  let have = 100
  for (let i = 0; i < 20; i++) have = wanted(demand({ ...saturated, conns: have, have })).want
  assert.equal(wanted(demand({ ...saturated, conns: 100, have: 100 })).want, 62)
  assert.equal(have, 25)
  assert.equal(
    wanted(demand({ ...saturated, conns: 100, have: 62 })).want,
    62,
    'what it gave back must end first',
  )
})

test('a fair part is one at least, however many share', () => {
  assert.equal(fairLease(100, 4), 25)
  assert.equal(fairLease(10, 3), 3)
  assert.equal(fairLease(2, 50), 1)
  assert.equal(fairLease(5, 0), 5)
})
