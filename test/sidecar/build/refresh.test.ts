import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { Selection } from '../../../sidecar/balance/pick.ts'
import { retireLeaving } from '../../../sidecar/build/groups.ts'
import { rebuild, refreshment } from '../../../sidecar/build/refresh.ts'
import { type Prepared, prepare, type Running } from '../../../sidecar/build/running.ts'
import { loadText } from '../../../sidecar/config/load.ts'
import type { FollowedName, FoundAddress, Membership } from '../../../sidecar/membership.ts'
import { latest } from '../../../sidecar/proxy/pools.ts'

/** An address as DNS would give it. */
function found(host: string, more: Partial<FoundAddress> = {}): FoundAddress {
  return {
    address: { kind: 'tcp', host, port: 80 },
    target: undefined,
    weight: undefined,
    secondary: false,
    ...more,
  }
}

/** A configuration whose names have the addresses that the test gives them. */
class Bench {
  readonly names = new Map<string, readonly FoundAddress[]>()
  readonly followed: FollowedName[] = []
  prepared!: Prepared
  running!: Running
  readonly membership: Membership = {
    expect: async (names) => {
      this.followed.push(...names)
    },
    resolved: ({ host }) => this.names.get(host) ?? [],
    changed: (plans) => plans,
  }

  async load(text: string): Promise<void> {
    const loaded = loadText(`http { ${text} }`, 'test.conf', 'nginx')
    this.prepared = await prepare(loaded, { prefix: '/tmp', version: '0' }, undefined, 0, this.membership)
    this.running = this.prepared.commit()
  }

  refresh() {
    const { plans, lines, failures } = refreshment(this.prepared.basis, this.membership, this.running)
    this.running = rebuild(this.prepared.basis, plans, this.running)
    retireLeaving(this.running)
    return { lines, failures: failures.map(({ message }) => message) }
  }

  group(name = 'u') {
    return this.running.groups.get(name)!
  }

  /** Primaries, and backups after a bar: `SERVER@ADDRESS*WEIGHT`. */
  shown(name = 'u'): string {
    const { peers, backups } = this.group(name).balancing.upstream
    const text = (list: typeof peers) =>
      list.map(({ server, name, options }) => `${server}@${name}*${options.weight}`).join(' ')
    return backups.length > 0 ? `${text(peers)} | ${text(backups)}` : text(peers)
  }
}

test('a line that is followed stands for the addresses that its name has', async () => {
  const bench = new Bench()
  bench.names.set('web.example', [found('10.0.0.1'), found('10.0.0.2')])
  await bench.load(
    'upstream u { zone u 64k; server web.example resolve weight=3; server 10.0.0.9:81 resolve; }',
  )
  assert.equal(bench.shown(), 'web.example@10.0.0.1:80*3 web.example@10.0.0.2:80*3 10.0.0.9:81@10.0.0.9:81*1')
  assert.deepEqual(
    bench.followed.map(({ host, port, service }) => [host, port, service]),
    [['web.example', 80, undefined]],
  )
})

test('services are primaries and backups by their priority, with their weights unless the line has one', async () => {
  const bench = new Bench()
  bench.names.set('shop.example', [
    found('10.0.0.1', { target: 'a.example', weight: 5 }),
    found('10.0.0.2', { target: 'b.example', weight: 7, secondary: true }),
  ])
  const line = 'server shop.example service=http resolve'
  await bench.load(`upstream u { zone u 64k; ${line}; }
    upstream v { zone v 64k; ${line} weight=2; }
    upstream w { zone w 64k; server 10.0.0.9; ${line} backup; }`)
  assert.equal(bench.shown('u'), 'a.example@10.0.0.1:80*5 | b.example@10.0.0.2:80*7')
  assert.equal(bench.shown('v'), 'a.example@10.0.0.1:80*2 | b.example@10.0.0.2:80*2')
  assert.equal(bench.shown('w'), '10.0.0.9@10.0.0.9:80*1 | a.example@10.0.0.1:80*5')
})

test('a peer that stays keeps its numbers, a new one has none, and one that is gone gets nothing more', async () => {
  const bench = new Bench()
  bench.names.set('web.example', [found('10.0.0.1'), found('10.0.0.2')])
  await bench.load('upstream u { zone u 64k; server web.example resolve; }')
  const [gone, stays] = bench.group().balancing.upstream.peers
  const { zone } = gone!
  zone.peers.selected[gone!.index] = 11
  zone.peers.selected[stays!.index] = 22
  bench.names.set('web.example', [found('10.0.0.2'), found('10.0.0.3')])
  assert.deepEqual(bench.refresh(), {
    lines: ['upstream "u": added 10.0.0.3:80, removed 10.0.0.1:80'],
    failures: [],
  })
  const { peers } = bench.group().balancing.upstream
  assert.deepEqual(
    peers.map((peer) => [peer.name, peer.zone.peers.selected[peer.index]]),
    [
      ['10.0.0.2:80', 22],
      ['10.0.0.3:80', 0],
    ],
  )
  assert.deepEqual([gone!.retired, gone!.dismissed, stays!.retired], [true, false, false])
  assert.equal(bench.running.refreshed, true)
})

test('a group that has its peers already goes on as it is, and one that changes is found from its old form', async () => {
  const bench = new Bench()
  bench.names.set('a.example', [found('10.0.0.1')])
  bench.names.set('b.example', [found('10.0.0.2')])
  await bench.load(`upstream a { zone a 64k; server a.example resolve; }
    upstream b { zone b 64k; server b.example resolve; }`)
  const [a, b] = [bench.group('a'), bench.group('b')]
  bench.names.set('b.example', [])
  assert.deepEqual(bench.refresh().lines, ['upstream "b": removed 10.0.0.2:80'])
  assert.equal(bench.group('a'), a)
  assert.notEqual(bench.group('b'), b)
  assert.equal(latest(b), bench.group('b'))
  assert.equal(bench.group('b').pool, b.pool)
  assert.deepEqual(bench.refresh(), { lines: [], failures: [] })
})

test('a group that cannot have what it should stays as it is, and the others change', async () => {
  const bench = new Bench()
  bench.names.set('a.example', [found('10.0.0.1')])
  bench.names.set('b.example', [found('10.0.0.2')])
  await bench.load(`upstream a { zone a 64k; hash $uri consistent; server a.example resolve; }
    upstream b { zone b 64k; server b.example resolve; }`)
  bench.names.set('a.example', [found('10.0.0.1', { weight: 1_000_000 })])
  bench.names.set('b.example', [found('10.0.0.3')])
  const { lines, failures } = bench.refresh()
  assert.deepEqual(lines, ['upstream "b": added 10.0.0.3:80, removed 10.0.0.2:80'])
  assert.match(failures.join(), /^upstream "a" has too many hash points$/)
  assert.deepEqual(
    [bench.shown('a'), bench.shown('b')],
    ['a.example@10.0.0.1:80*1', 'b.example@10.0.0.3:80*1'],
  )
})

for (const method of [
  'round_robin',
  'least_conn;',
  'random;',
  'random two least_conn;',
  'ip_hash;',
  'hash $uri;',
  'hash $uri consistent;',
  'least_time header;',
  'least_time last_byte best;',
  'least_time last_byte plain;',
  'feedback $upstream_http_x_load;',
  'split $cookie_track; server other.example resolve track=canary;',
  'shadow least_conn;',
  'sticky cookie srv;',
  'backup_switch permanent;',
]) {
  test(`${method.replace(/;.*/, '')}: a group of a name without addresses refuses, and serves once it has some`, async () => {
    const bench = new Bench()
    await bench.load(
      `upstream u { zone u 64k; ${method === 'round_robin' ? '' : method} server web.example resolve; }`,
    )
    const pick = () => {
      const call = new Call()
      call.remoteAddr = '127.0.0.1'
      return new Selection(bench.group().balancing, call).next()?.peer?.name
    }
    assert.equal(pick(), undefined)
    bench.names.set('web.example', [found('10.0.0.1'), found('10.0.0.2')])
    bench.refresh()
    assert.match(pick() ?? '', /^10\.0\.0\.[12]:80$/)
    bench.names.set('web.example', [])
    bench.refresh()
    assert.equal(pick(), undefined)
  })
}
