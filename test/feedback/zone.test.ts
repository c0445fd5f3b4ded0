import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exemplarSize, readExemplar } from '../../feedback/exemplar.ts'
import { groupFields, peerFields } from '../../feedback/fields.ts'
import { Zone } from '../../feedback/zone.ts'
import type { Column } from '../../feedback/zone-numbers.ts'

/** Every column of a zone. */
function columns(zone: Zone): Column[] {
  return [
    ...peerFields.map((field) => zone.peers[field]),
    ...zone.reasons,
    ...zone.statuses,
    ...zone.grpcStatuses,
    ...zone.ignored,
    ...zone.headerHistogram,
    ...zone.responseHistogram,
    zone.headerSum,
    zone.responseSum,
  ]
}

/** Writes a different number everywhere, so that any two that share memory would show. */
function fill(zone: Zone): number[] {
  const all = [zone.group, zone.denials, zone.budget, ...zone.headerExemplars, ...columns(zone)]
  let n = 0
  for (const numbers of all) for (let i = 0; i < numbers.length; i++) numbers[i] = n += 1
  return all.flatMap((numbers) => [...numbers])
}

test('no two numbers of a zone share a place', () => {
  const zone = new Zone('z', 3)
  const written = fill(zone)
  assert.equal(new Set(written).size, written.length)
  assert.equal(written.length * 8, zone.buffer.byteLength - 64)
})

test('all numbers lie in one shared buffer', () => {
  const zone = new Zone('z', 2)
  for (const column of columns(zone)) assert.equal(column.buffer, zone.buffer)
})

test('a new slot is empty, but for a clean record of success', () => {
  const zone = new Zone('z', 2)
  fill(zone)
  zone.free(0)
  zone.peers.conns[0] = 0
  const index = zone.allocate()!
  const set = peerFields.filter((field) => zone.peers[field][index] !== 0)
  assert.deepEqual(set, ['tenant', 'weightFactor', 'ok'])
  assert.equal(zone.peers.ok[index], 1)
  const rest = columns(zone).slice(peerFields.length)
  assert.ok(rest.every((column) => column[index] === 0))
  const exemplars = zone.headerExemplars.map((all) => readExemplar(all, exemplarSize * index))
  assert.ok(exemplars.every((exemplar) => exemplar === undefined))
  assert.ok(zone.headerExemplars.every((all) => readExemplar(all, exemplarSize * (1 - index))))
  assert.ok(columns(zone).every((column) => column[1 - index] !== 0))
})

test('gives every slot once, and again once it is free', () => {
  const zone = new Zone('z', 3)
  assert.deepEqual([zone.allocate(), zone.allocate(), zone.allocate()], [0, 1, 2])
  assert.equal(zone.allocate(), undefined)
  zone.free(1)
  assert.equal(zone.room, 1)
  zone.peers.selected[1] = 5
  assert.equal(zone.allocate(), 1)
  assert.equal(zone.peers.selected[1], 0)
})

test('numbers of the group are read, set and added to by name', () => {
  const zone = new Zone('z', 1)
  for (const [i, field] of groupFields.entries()) zone.set(field, i)
  zone.add('retries', 2)
  zone.add('retriesWaiting', -1)
  const expected = groupFields.map((field, i) => {
    if (field === 'retries') return i + 2
    return field === 'retriesWaiting' ? i - 1 : i
  })
  assert.deepEqual(
    groupFields.map((field) => zone.get(field)),
    expected,
  )
})

test('growing keeps every number at its index, and which slots are taken', () => {
  const zone = new Zone('z', 2)
  fill(zone)
  zone.free(1)
  zone.peers.conns[1] = 0
  const before = columns(zone).map((column) => [...column])
  const fixed = [zone.group, zone.denials, zone.budget].map((numbers) => [...numbers])
  zone.grow(5)
  assert.equal(zone.capacity, 5)
  assert.deepEqual(
    columns(zone).map((column) => [...column.subarray(0, 2)]),
    before,
  )
  assert.ok(columns(zone).every((column) => column.length === 5 && column.subarray(2).every((n) => n === 0)))
  assert.deepEqual(
    [zone.group, zone.denials, zone.budget].map((numbers) => [...numbers]),
    fixed,
  )
  assert.equal(zone.room, 4)
  assert.equal(zone.allocate(), 1)
})

test('never shrinks', () => {
  const zone = new Zone('z', 4)
  const { buffer } = zone
  zone.grow(2)
  assert.equal(zone.capacity, 4)
  assert.equal(zone.buffer, buffer)
})
