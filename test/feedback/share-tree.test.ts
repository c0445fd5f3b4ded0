import assert from 'node:assert/strict'
import { test } from 'node:test'
import { peerAt, setShare, sumShares, totalShare } from '../../feedback/share-tree.ts'
import { Zone } from '../../feedback/zone.ts'
import { fc } from '../support/property.ts'

/** Whole numbers add up without rounding, so the places can be compared exactly. */
const changes = (capacity: number) =>
  fc.array(fc.tuple(fc.integer({ min: 0, max: capacity - 1 }), fc.integer({ min: 0, max: 9 })), {
    maxLength: 60,
  })

/** The peer by a walk over the shares. */
function walked(shares: Iterable<number>, point: number): number {
  let rest = point
  let index = 0
  for (const share of shares) {
    if (rest < share) return index
    rest -= share
    index += 1
  }
  return index
}

test('finds the peer in whose share a point lies, after any changes', () => {
  for (const capacity of [1, 2, 7, 64, 100]) {
    fc.assert(
      fc.property(changes(capacity), (list) => {
        const zone = new Zone('z', capacity)
        for (const [index, share] of list) setShare(zone, index, share)
        const { share } = zone.peers
        const total = share.reduce((sum, one) => sum + one, 0)
        assert.equal(totalShare(zone), total)
        for (let point = 0; point < total; point++) assert.equal(peerAt(zone, point), walked(share, point))
      }),
      { numRuns: 50 },
    )
  }
})

test('sums up afresh to the same', () => {
  const zone = new Zone('z', 100)
  const same = new Zone('z', 100)
  for (let i = 0; i < 100; i++) {
    setShare(zone, i, (i * 13) % 17)
    same.peers.share[i] = (i * 13) % 17
  }
  sumShares(same)
  assert.deepEqual([...same.peers.tree], [...zone.peers.tree])
})

test('never gives a peer without a share what lies within the total', () => {
  const zone = new Zone('z', 33)
  for (const index of [4, 17, 32]) setShare(zone, index, 0.1)
  const total = totalShare(zone)
  for (let i = 0; i < 1000; i++) {
    assert.ok([4, 17, 32].includes(peerAt(zone, (total * i) / 1000)))
  }
})
