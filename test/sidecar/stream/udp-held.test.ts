import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HeldDatagrams, mostClients, mostDatagrams, mostOfOne } from '../../../sidecar/stream/udp-held.ts'

const bytes = Buffer.from('x')

test('what a client sends is held in order until it waits no more', () => {
  const held = new HeldDatagrams()
  assert.equal(held.hold('a', bytes), undefined)
  held.begin('a', Buffer.from('1'))
  held.begin('b', Buffer.from('other'))
  assert.equal(held.hold('a', Buffer.from('2')), 'held')
  assert.equal(held.end('a').join(' '), '1 2')
  assert.equal(held.hold('a', bytes), undefined)
  assert.equal(held.size, 1)
})

test('one client, many clients and many datagrams are held so far and no further', () => {
  const held = new HeldDatagrams()
  held.begin('a', bytes)
  const outcomes = Array.from({ length: 100 }, () => held.hold('a', bytes))
  assert.equal(outcomes.filter((how) => how === 'held').length, mostOfOne - 1)
  held.end('a')
  for (let i = 0; i < mostClients; i++) {
    assert.equal(held.full, false)
    held.begin(`${i}`, bytes)
  }
  assert.equal(held.full, true)
  let more = 0
  for (let i = 0; i < mostClients; i++)
    for (let n = 0; n < 5; n++) if (held.hold(`${i}`, bytes) === 'held') more += 1
  assert.equal(more, mostDatagrams - mostClients)
  for (let i = 0; i < mostClients; i++) held.end(`${i}`)
  assert.deepEqual([held.full, held.size], [false, 0])
})
