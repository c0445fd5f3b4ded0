import assert from 'node:assert/strict'
import { test } from 'node:test'
import { attemptReasons } from '../../../feedback/reasons.ts'
import { noCounts } from '../../../feedback/resolver-counts.ts'
import { explainUpstream } from '../../../sidecar/admin/explain.ts'
import type { UpstreamFacts } from '../../../sidecar/admin/facts.ts'
import type { NameFacts } from '../../../sidecar/admin/resolver-facts.ts'
import type { Change } from '../../../sidecar/admin/runtime-facts.ts'
import { group, now, runtime } from './facts.ts'

function known(host: string, over: Partial<NameFacts> = {}): NameFacts {
  return { host, service: undefined, addresses: [], ageMs: undefined, nextMs: 0, error: undefined, ...over }
}

function explained(of: UpstreamFacts, names: readonly NameFacts[], changes: readonly Change[] = []) {
  return explainUpstream(of, now, undefined, undefined, {
    resolvers: () => [{ zone: undefined, servers: ['127.0.0.1:53'], counts: noCounts(), names }],
    runtime: () => runtime({ list: () => changes }),
  })
}

function lines(text: string, word: string): string[] {
  return text.split('\n').filter((line) => line.startsWith(`  ${word} `) || line.startsWith(`  ${word}: `))
}

test('a group without peers says which of its names was not found, and why', () => {
  const shop = group('shop', {}, { followed: [{ host: 'shop.internal', service: 'http' }] })
  const lost = known('shop.internal', {
    service: 'http',
    ageMs: 61_000,
    nextMs: 1500,
    error: 'Host not found',
  })
  const { text, names } = explained(shop, [known('other.internal'), lost])
  assert.deepEqual(lines(text, 'name'), [
    '  name _http._tcp.shop.internal: no address, heard 61 s ago, asked for again in 2 s: Host not found',
  ])
  assert.deepEqual(names, [
    {
      name: '_http._tcp.shop.internal',
      addresses: [],
      age: 61_000,
      next: 1500,
      error: 'Host not found',
    },
  ])
})

test('names that are well are told by how many addresses they have, and how old these are', () => {
  const app = group('app', { a: {} }, { followed: [known('app.internal'), known('new.internal')] })
  const { text } = explained(app, [
    known('app.internal', { addresses: ['10.0.0.1', '10.0.0.2'], ageMs: 400, nextMs: 9600 }),
    known('new.internal'),
  ])
  assert.deepEqual(lines(text, 'name'), [
    '  name app.internal: 2 addresses, heard 1 s ago, asked for again in 10 s',
    '  name new.internal: no address, never heard, asked for now',
  ])
})

test('what was changed by hand stands beside what the file says', () => {
  const about = { upstream: 'app', at: 1_000_000_000_000, by: '192.0.2.1', whole: false } as const
  const { text, changes } = explained(
    group('app', { a: { down: true } }),
    [],
    [
      { ...about, kind: 'state', target: 'a', value: 'down', file: 'up' },
      { ...about, kind: 'added', target: 'b', whole: true, value: 'b weight=2', file: undefined },
      { ...about, kind: 'removed', target: 'c', value: undefined, file: 'c' },
      { ...about, upstream: 'other', kind: 'state', target: 'a', value: 'drain', file: 'up' },
    ],
  )
  const when = 'by 192.0.2.1 at 2001-09-09T01:46:40.000Z'
  assert.deepEqual(lines(text, 'changed'), [
    `  changed: state of a is down, where the file says up, ${when}`,
    `  changed: b weight=2 is added, ${when}`,
    `  changed: c is removed, ${when}`,
  ])
  assert.equal(changes?.length, 3)
})

test('nothing is said of names and changes where there are none', () => {
  const { text, names, changes } = explained(group('app', { a: {} }), [known('other.internal')])
  assert.deepEqual([names, changes], [undefined, undefined])
  assert.doesNotMatch(text, /name|changed/)
})

test('a peer that was set aside says how it has failed and when it is tried again', () => {
  const app = group('app', { a: { fail_timeout: 10_000 }, b: {} })
  const [a] = app.upstream.peers
  const { zone, index } = a!
  zone.peers.fails[index] = 1
  zone.peers.checkedAt[index] = now - 2500
  zone.reasons[attemptReasons.indexOf('refused')]![index] = 4
  zone.reasons[attemptReasons.indexOf('timeout_connect')]![index] = 1
  const { text, peers } = explained(app, [])
  assert.match(
    text,
    /^ {2}a: none, unavailable; 0 in flight, 1 failed, tried again in 8 s, since the start 4 refused 1 timeout_connect$/m,
  )
  assert.deepEqual(peers[0]!.reasons, { refused: 4, timeout_connect: 1 })
  assert.deepEqual([peers[0]!.tried_in, peers[1]!.tried_in], [7500, undefined])
})
