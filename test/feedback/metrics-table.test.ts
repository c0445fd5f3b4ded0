import assert from 'node:assert/strict'
import { test } from 'node:test'
import { groupFields, peerFields } from '../../feedback/fields.ts'
import { metricsTable } from '../../feedback/metrics-table.ts'
import { ServerZone } from '../../feedback/server-zone.ts'
import { SessionBook } from '../../feedback/sessions/book.ts'
import { Sessions } from '../../feedback/sessions/sessions.ts'
import { Zone } from '../../feedback/zone.ts'
import { scrape } from '../../sidecar/admin/metrics.ts'
import { read } from '../sidecar/admin/checker.ts'
import { facts, fleet, group, resolver, runtime, shadow, sticky } from '../sidecar/admin/facts.ts'

/** The families of ours on a page of metrics where every peer has something of everything. */
async function families() {
  const value = { name: '$load', read: () => '', orca: false, inverse: false, expire: 0 }
  const learning = {
    mode: 'header',
    factor: 0.9,
    errors: 3,
    decay: 10_000,
    account: undefined,
    value,
  } as const
  const rules = { create: [], lookup: [], timeout: 1000, at: 'end', refresh: true } as const
  const backend = group(
    'backend',
    { a: { max_conns: 4 } },
    {
      learning,
      expected: 25,
      shadow: shadow(),
      queue: { number: 1, timeout: 1000 },
      sticky: sticky(),
      sessions: new SessionBook('backend', rules, new Sessions('learned', 4)),
      backupSwitch: { after: undefined },
    },
  )
  const { zone } = backend.upstream
  for (const field of peerFields) zone.peers[field].fill(1)
  for (const column of [...zone.statuses, ...zone.grpcStatuses]) column.fill(1)
  for (const track of backend.upstream.tracks.values()) track.answered(200, 5, undefined)
  const db = group('stream/db', { a: {} }, { kind: 'stream' })
  for (const field of peerFields) db.upstream.zone.peers[field].fill(1)
  const names = [
    { host: 'a', service: undefined, addresses: [], ageMs: 1, nextMs: 1, error: undefined },
  ] as const
  const secure = new ServerZone('shop')
  secure.secure = true
  const shared = facts({
    serverZones: () => new Map([['shop', secure]]),
    groups: [backend, db],
    fleet: () => fleet(),
    runtime: () => runtime(),
    resolvers: () => [resolver({ names })],
  })
  const page = read(await scrape(shared, 'text'))
  return [...page.values()].filter(({ name }) => name.startsWith('evenkeel_'))
}

test('the table says of every metric what /metrics says of it, and has no other', async () => {
  const shown = (await families()).map(({ name, type, help }) => `${name} ${type} ${help}`)
  const listed = metricsTable.map(({ name, type, help }) => `${name} ${type} ${help}`)
  assert.deepEqual(listed.toSorted(), shown.toSorted())
})

test('the table has the labels that the samples have', async () => {
  const listed = new Map(metricsTable.map(({ name, labels }) => [name, labels.join(' ')]))
  for (const { name, samples } of await families()) {
    assert.ok(samples.size > 0, name)
    for (const sample of samples.keys()) {
      const labels = [...sample.matchAll(/[{,](\w+)="/g)].map(([, label]) => label)
      assert.equal(labels.filter((label) => label !== 'le').join(' '), listed.get(name), sample)
    }
  }
})

test('every metric has the prefix, counters end in _total, and times are in seconds', () => {
  for (const { name, type } of metricsTable) {
    assert.match(name, /^evenkeel_[a-z_]+$/)
    assert.equal(name.endsWith('_total'), type === 'counter', name)
    assert.doesNotMatch(name, /_(?:ms|milliseconds|kilobytes|percent)(?:_|$)/)
  }
  const names = metricsTable.map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
})

test('every number of the table comes from a place that there is', () => {
  const elsewhere = [
    'configuration',
    'balancer',
    'listeners',
    'program',
    'fleet',
    'track',
    'resolvers',
    'sessions',
    'changes',
    'status_zone',
  ]
  const places = new Set<string>([
    ...peerFields,
    ...groupFields,
    ...Object.keys(new Zone('z', 1)),
    ...elsewhere,
  ])
  for (const { name, from } of metricsTable) {
    for (const place of from.split(', ')) assert.ok(places.has(place), `${name} comes from ${place}`)
  }
})
