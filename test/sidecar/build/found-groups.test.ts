import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { Variables } from '../../../feedback/variables.ts'
import { Selection } from '../../../sidecar/balance/pick.ts'
import { type Found, FoundGroups, mostFoundGroups } from '../../../sidecar/build/found-groups.ts'
import type { LiveGroup } from '../../../sidecar/build/groups.ts'
import type { ResolverSpec } from '../../../sidecar/membership.ts'
import type { Answer, Answers } from '../../../sidecar/resolve/answers.ts'

const variables = new Variables({ version: '1' })
const levels = { http: { factor: undefined, variables }, stream: { factor: undefined, variables } }
const spec: ResolverSpec = {
  servers: [{ host: '127.0.0.1', port: 53 }],
  validMs: undefined,
  ipv4: true,
  ipv6: true,
  timeoutMs: 1000,
  statusZone: undefined,
}

/** Found groups, of names that have what `hosts` says. */
class Bench {
  hosts: Answer | Promise<Answer> = { kind: 'found', hosts: ['10.0.0.1'] }
  /** How many resolvers there are. */
  resolvers = 0
  readonly found = new FoundGroups(levels, () => {
    this.resolvers += 1
    // Nothing else of it is asked for.
    return { of: () => this.hosts } as unknown as Answers
  })

  at(host: string, port = 80, who: ResolverSpec | undefined = spec): Found {
    return this.found.finder('http', who)({ kind: 'tcp', host, port })
  }
}

function group(found: Found): LiveGroup {
  assert.ok('balancing' in found)
  return found
}

function peers(found: Found): string {
  return group(found)
    .balancing.upstream.peers.map(({ name }) => name)
    .join(' ')
}

test('a name has one group for each port, as long as its addresses stay', () => {
  const bench = new Bench()
  const one = bench.at('app.example')
  assert.equal(peers(one), '10.0.0.1:80')
  assert.equal(bench.at('app.example'), one)
  assert.equal(group(one).balancing.upstream.name, 'app.example:80')
  assert.notEqual(bench.at('app.example', 81), one)
  assert.deepEqual([bench.found.size, bench.resolvers], [2, 1])
})

test('what is known of an address stays while others of its name come and go', () => {
  const bench = new Bench()
  bench.hosts = { kind: 'found', hosts: ['10.0.0.1', '10.0.0.2'] }
  const before = group(bench.at('app.example'))
  const attempt = new Selection(before.balancing, new Call()).next()
  assert.equal(attempt?.peer?.name, '10.0.0.1:80')
  bench.hosts = { kind: 'found', hosts: ['10.0.0.1', '10.0.0.3'] }
  const after = group(bench.at('app.example'))
  assert.equal(peers(after), '10.0.0.1:80 10.0.0.3:80')
  assert.equal(after.pool, before.pool)
  const [kept] = after.balancing.upstream.peers
  assert.equal(kept?.zone.peers.selected[kept.index], 1)
  // A request that began before the change goes on by what there is now.
  assert.equal(before.forms?.latest, after)
})

test('a name that two resolvers know has a group for each, and resolvers that are alike are one', () => {
  const bench = new Bench()
  const one = bench.at('app.example')
  const other = { ...spec, servers: [{ host: '127.0.0.2', port: 53 }] }
  const two = bench.at('app.example', 80, other)
  assert.notEqual(one, two)
  assert.equal(bench.at('app.example', 80, { ...spec }), one)
  assert.equal(bench.at('app.example', 80, { ...other }), two)
  assert.equal(bench.resolvers, 2)
})

test('an address is looked up by nobody, and a name where there is nobody is told so', () => {
  const bench = new Bench()
  for (const who of [spec, undefined]) {
    assert.equal(
      peers(bench.found.finder('http', who)({ kind: 'tcp', host: '10.9.9.9', port: 1 })),
      '10.9.9.9:1',
    )
    assert.equal(peers(bench.found.finder('http', who)({ kind: 'tcp', host: '::1', port: 1 })), '[::1]:1')
    assert.equal(peers(bench.found.finder('stream', who)({ kind: 'unix', path: '/a' })), 'unix:/a')
  }
  assert.equal(bench.found.size, 3)
  assert.deepEqual(bench.found.finder('http', undefined)({ kind: 'tcp', host: 'app.example', port: 80 }), {
    status: 502,
    text: 'no resolver defined to resolve app.example',
  })
})

test('what has to be waited for comes to a group, or to what keeps it from being found', async () => {
  const bench = new Bench()
  bench.hosts = Promise.resolve<Answer>({ kind: 'found', hosts: ['10.0.0.1'] })
  const found = bench.at('app.example')
  assert.ok(found instanceof Promise)
  assert.equal(peers(await found), '10.0.0.1:80')
  bench.hosts = Promise.resolve<Answer>({ kind: 'failed', why: '3: Host not found' })
  assert.deepEqual(await bench.at('app.example'), {
    status: 502,
    text: 'app.example could not be resolved (3: Host not found)',
  })
})

test('of very many the longest unused is forgotten, and keeps no connection', () => {
  const bench = new Bench()
  const first = group(bench.at('first.example'))
  for (let i = 0; i < 2 * mostFoundGroups; i++) {
    bench.at(`n${i}.example`)
    assert.equal(bench.at('busy.example'), bench.at('busy.example'))
  }
  const busy = bench.at('busy.example')
  assert.equal(bench.found.size, mostFoundGroups)
  assert.equal(first.pool.left('10.0.0.1:80'), true)
  assert.equal(group(busy).pool.left('10.0.0.1:80'), false)
  assert.notEqual(bench.at('first.example'), first)
})

test('after its end nothing is kept any more', () => {
  const bench = new Bench()
  const { pool } = group(bench.at('app.example'))
  bench.found.close()
  assert.deepEqual([bench.found.size, pool.left('10.0.0.1:80'), pool.full], [0, true, true])
  // A request that is still under way by the old routes.
  assert.equal(group(bench.at('app.example')).pool.full, true)
})
