import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cohortFields } from '../../feedback/cohort.ts'
import { keepReport } from '../../feedback/report.ts'
import { Track } from '../../feedback/track.ts'
import { Reports } from '../../sidecar/balance/reports.ts'
import { group } from '../support/peers.ts'

const tracks = [1, 1, { track: 'canary' }, { track: 'canary' }]

test('without a split all peers are one cohort, whose numbers are those of the group', () => {
  const upstream = group(tracks, { backups: [1] })
  const cohort = upstream.cohort(upstream.peers[2])
  assert.equal(cohort, upstream.cohort(upstream.backups[0]))
  assert.deepEqual([cohort.peers.length, cohort.backups.length], [4, 1])
  for (const [i, field] of cohortFields.entries()) cohort[field] = i + 1
  assert.deepEqual(
    cohortFields.map((field) => upstream.zone.get(field)),
    [1, 2, 3, 4, 5],
  )
})

test('the numbers of a group follow its zone to another place', () => {
  const upstream = group(tracks)
  const cohort = upstream.cohort(undefined)
  cohort.median = 7
  upstream.zone.grow(100)
  assert.equal(cohort.median, 7)
  cohort.median = 8
  assert.equal(upstream.zone.get('median'), 8)
})

test('with a split each track is one, backups being of stable, and its numbers are those of the track', () => {
  const upstream = group(tracks, { backups: [1], split: true })
  const stable = upstream.cohort(upstream.peers[0])
  const canary = upstream.cohort(upstream.peers[3])
  assert.equal(stable, upstream.cohort(upstream.backups[0]))
  assert.deepEqual(
    [stable, canary].map(({ peers, backups }) => [peers.map(({ name }) => name).join(''), backups.length]),
    [
      ['ab', 1],
      ['cd', 0],
    ],
  )
  for (const [i, field] of cohortFields.entries()) {
    stable[field] = i + 1
    canary[field] = 10 * (i + 1)
  }
  assert.deepEqual(
    cohortFields.map((field) => [stable[field], canary[field], upstream.zone.get(field)]),
    [1, 2, 3, 4, 5].map((number) => [number, 10 * number, 0]),
  )
  const elsewhere = new Track('canary', upstream.tracks.get('canary')!.share())
  assert.deepEqual([...elsewhere.cohort], [10, 20, 30, 40, 50])
})

test('what peers of one track report says nothing of what is usual in another', () => {
  const value = { name: '$load', read: () => '', orca: false, inverse: false, expire: 0 }
  const learning = {
    mode: 'header',
    factor: 0.9,
    errors: 3,
    decay: 10_000,
    account: undefined,
    value,
  } as const
  const upstream = group(tracks, { split: true, method: 'feedback', learning })
  for (const [i, report] of [10, 30, 1000, 5000].entries())
    keepReport(upstream, upstream.peers[i]!, report, 0.9, 0, 1000)
  for (const [list, median] of [
    [upstream.peers.slice(0, 2), 20],
    [upstream.peers.slice(2), 3000],
  ] as const) {
    new Reports(upstream, list, learning, value).at(2000)
    const cohort = upstream.cohort(list[0])
    assert.deepEqual([cohort.median, cohort.reporting], [median, 2])
  }
})
