import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { InjectOptions } from 'fastify'
import { adopt, retire } from '../../../feedback/carry.ts'
import { fail } from '../../../feedback/health.ts'
import { Upstream } from '../../../feedback/upstream.ts'
import { Zone } from '../../../feedback/zone.ts'
import { type AdminOptions, adminApp } from '../../../sidecar/admin/server.ts'
import type { Plan } from '../../../sidecar/build/plans.ts'
import { Runtime } from '../../../sidecar/changes/runtime.ts'
import { fc } from '../../support/property.ts'
import { written } from '../changes/groups.ts'
import { facts, groupOf, now, wall } from './facts.ts'

const three =
  'zone app 64k; server 127.0.0.1:8081 weight=5; server 127.0.0.1:8082; server unix:/run/a.sock down;'

/** A program of groups with their files, without threads and clients. */
class Ground {
  readonly files: Plan[]
  readonly running = new Map<
    string,
    { readonly plan: Plan; readonly balancing: { readonly upstream: Upstream } }
  >()
  readonly lines: string[] = []
  /** What a refresh throws. */
  failure: Error | undefined
  refreshes = 0
  token: string | undefined
  readonly runtime = new Runtime({
    groups: () => this.running,
    refresh: async () => {
      this.refreshes += 1
      if (this.failure) throw this.failure
      this.#build()
    },
    now: () => now,
    wall: () => wall,
    tell: (text) => this.lines.push(text),
  })

  constructor(files: Readonly<Record<string, string>> = { app: three }) {
    this.files = Object.entries(files).map(([name, lines]) => ({ ...written(lines), name }))
    this.#build()
  }

  /** Reads another file of the group `app`. */
  reload(lines: string): void {
    this.files[0] = written(lines)
    this.#build()
    this.runtime.settle()
  }

  #build(): void {
    for (const plan of this.runtime.changed(this.files)) {
      const old = this.running.get(plan.name)?.balancing.upstream
      const { zone, peers, backups, removed } = adopt(old, plan.wanted, plan.name, now)
      retire(zone, removed)
      const kind = plan.name.startsWith('stream/') ? 'stream' : 'http'
      const rest = { method: 'round_robin', learning: undefined, responseTimeFactor: 0.9 } as const
      const upstream = new Upstream({ name: plan.name, kind, zone, peers, backups, ...rest })
      this.running.set(plan.name, { plan, balancing: { upstream } })
    }
  }

  upstream(name = 'app'): Upstream {
    return this.running.get(name)!.balancing.upstream
  }

  async ask(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'PUT',
    url: string,
    payload?: unknown,
    options: Partial<AdminOptions> & { headers?: Record<string, string>; from?: string } = {},
  ) {
    const from = facts({
      runtime: () => this.runtime,
      token: () => this.token,
      upstreams: () =>
        Array.from(this.running.values(), ({ balancing: { upstream } }) => ({
          ...groupOf(new Zone(upstream.name, 1), []),
          upstream,
        })),
    })
    const { headers = {}, from: remoteAddress = '127.0.0.1', ...rest } = options
    const app = adminApp(from, { readonly: false, local: true, unix: false, report: assert.fail, ...rest })
    const request: InjectOptions = {
      method,
      url,
      remoteAddress,
      headers: { 'content-type': 'application/json', ...headers },
    }
    if (payload !== undefined) request.payload = JSON.stringify(payload)
    const answer = await app.inject(request)
    await app.close()
    return answer
  }
}

const state = '/upstreams/app/peers/127.0.0.1:8081'

test('PATCH of a peer says what is in force now, and is told to the log with who asked', async () => {
  const ground = new Ground()
  const answer = await ground.ask('PATCH', state, { state: 'drain', weight: 2, max_conns: 10 })
  assert.equal(answer.statusCode, 200)
  const at = new Date(wall).toISOString()
  const by = '127.0.0.1'
  const peer = '127.0.0.1:8081'
  assert.deepEqual(answer.json(), {
    ok: true,
    changed: true,
    upstream: 'app',
    peers: [
      {
        name: peer,
        server: peer,
        state: 'draining',
        weight: 2,
        max_conns: 10,
        backup: false,
        active: 0,
        changed: ['state', 'weight', 'max_conns'],
      },
    ],
    changes: [
      { peer, change: 'state', value: 'drain', file: 'up', at, by },
      { peer, change: 'weight', value: 2, file: 5, at, by },
      { peer, change: 'max_conns', value: 10, file: 0, at, by },
    ],
  })
  assert.deepEqual(ground.lines, [
    'upstream "app": state of 127.0.0.1:8081 is drain, where the file says up, by 127.0.0.1',
    'upstream "app": weight of 127.0.0.1:8081 is 2, where the file says 5, by 127.0.0.1',
    'upstream "app": max_conns of 127.0.0.1:8081 is 10, where the file says 0, by 127.0.0.1',
  ])
  assert.equal(ground.refreshes, 1)
})

test('who asks over IPv6 from an IPv4 address is known by that', async () => {
  const ground = new Ground()
  await ground.ask('PATCH', state, { weight: 2 }, { from: '::ffff:10.1.2.3' })
  await ground.ask('PATCH', state, { weight: 3 }, { from: '2001:db8::1' })
  assert.deepEqual(
    ground.lines.map((line) => line.replace(/.* by /, '')),
    ['10.1.2.3', '2001:db8::1'],
  )
})

test('what is so already is answered, and nothing is done', async () => {
  const ground = new Ground()
  const answer = await ground.ask('PATCH', state, { weight: 5 })
  assert.deepEqual([answer.statusCode, answer.json().changed, ground.refreshes], [200, false, 0])
  assert.deepEqual([ground.lines, [...ground.runtime.counts()]], [[], []])
})

test('null takes a change back', async () => {
  const ground = new Ground()
  await ground.ask('PATCH', state, { weight: 2 })
  const answer = await ground.ask('PATCH', state, { weight: null })
  assert.deepEqual([answer.json().peers[0].weight, answer.json().changes], [5, []])
})

test('an address may be escaped or plain, of any family', async () => {
  const ground = new Ground({
    app: 'zone app 64k; server [::1]:80; server unix:/run/a.sock; server 127.0.0.1:8081;',
  })
  for (const [address, name] of [
    ['127.0.0.1%3A8081', '127.0.0.1:8081'],
    ['[::1]:80', '[::1]:80'],
    ['%5B%3A%3A1%5D%3A80', '[::1]:80'],
    ['unix:/run/a.sock', 'unix:/run/a.sock'],
    ['unix%3A%2Frun%2Fa.sock', 'unix:/run/a.sock'],
  ] as const) {
    const answer = await ground.ask('PATCH', `/upstreams/app/peers/${address}`, { max_conns: 3 })
    assert.deepEqual([answer.statusCode, answer.json().peers?.[0]?.name], [200, name], address)
  }
})

test('groups of stream are found by their name with a slash, plain or escaped', async () => {
  const ground = new Ground({
    app: three,
    'stream/app': 'zone app 64k; server 127.0.0.1:9001; server 127.0.0.1:9002;',
  })
  for (const [name, weight] of [
    ['stream/app', 2],
    ['stream%2Fapp', 3],
  ] as const) {
    const answer = await ground.ask('PATCH', `/upstreams/${name}/peers/127.0.0.1:9001`, { weight })
    assert.deepEqual([answer.statusCode, answer.json().peers?.[0]?.weight], [200, weight])
    assert.equal((await ground.ask('GET', `/upstreams/${name}`)).json().kind, 'stream')
  }
  assert.equal((await ground.ask('DELETE', '/upstreams/stream/app/changes')).statusCode, 200)
  assert.equal(ground.upstream('stream/app').peers[0]!.options.weight, 1)
})

test('GET lists groups with their peers and what is changed', async () => {
  const ground = new Ground()
  await ground.ask('PATCH', state, { state: 'down' })
  const { upstreams } = (await ground.ask('GET', '/upstreams')).json()
  assert.equal(upstreams.length, 1)
  const [{ name, zone, method, peers, changes }] = upstreams
  assert.deepEqual([name, zone, method, changes.length], ['app', 'app', 'round_robin', 1])
  assert.deepEqual(
    peers.map((peer: Record<string, unknown>) => [peer['name'], peer['state'], peer['changed']]),
    [
      ['127.0.0.1:8081', 'down', ['state']],
      ['127.0.0.1:8082', 'up', undefined],
      ['unix:/run/a.sock', 'down', undefined],
    ],
  )
})

test('POST adds a server, and DELETE takes it away again', async () => {
  const ground = new Ground()
  const added = await ground.ask('POST', '/upstreams/app/peers', {
    server: '10.0.0.4:80',
    weight: 2,
    backup: true,
  })
  assert.deepEqual(
    [
      added.statusCode,
      added.json().peers[0].name,
      added.json().peers[0].backup,
      added.json().changes[0].value,
    ],
    [200, '10.0.0.4:80', true, '10.0.0.4:80 weight=2 backup'],
  )
  assert.deepEqual(added.json().peers[0].changed, ['added'])
  const removed = await ground.ask('DELETE', '/upstreams/app/peers/10.0.0.4:80')
  assert.deepEqual([removed.statusCode, removed.json().changes], [200, []])
  assert.equal(ground.upstream().backups.length, 0)
})

test('a removed peer is listed until its last call has ended', async () => {
  const ground = new Ground()
  const peer = ground.upstream().peers[0]!
  peer.zone.peers.conns[peer.index] = 1
  const { peers, changes } = (await ground.ask('DELETE', state)).json()
  assert.deepEqual(
    [
      peers.map(({ state, active, removed }: Record<string, unknown>) => ({ state, active, removed })),
      changes[0].file,
    ],
    [[{ state: 'draining', active: 1, removed: true }], '127.0.0.1:8081 weight=5'],
  )
})

test('DELETE of the changes brings the file back', async () => {
  const ground = new Ground()
  await ground.ask('PATCH', state, { weight: 2 })
  await ground.ask('POST', '/upstreams/app/peers', { server: '10.0.0.4:80' })
  await ground.ask('DELETE', '/upstreams/app/peers/127.0.0.1:8082')
  const answer = await ground.ask('DELETE', '/upstreams/app/changes')
  assert.deepEqual([answer.statusCode, answer.json().changes], [200, []])
  assert.deepEqual(
    ground.upstream().peers.map(({ name, options }) => `${name} ${options.weight}`),
    ['127.0.0.1:8081 5', '127.0.0.1:8082 1', 'unix:/run/a.sock 1'],
  )
  assert.equal(ground.lines.at(-1), 'upstream "app": all is as in the file again, by 127.0.0.1')
})

test('up brings a peer back at once that its failures have set aside, and says so', async () => {
  const ground = new Ground()
  const peer = ground.upstream().peers[0]!
  fail(peer, false, now)
  assert.equal((await ground.ask('GET', '/upstreams/app')).json().peers[0].state, 'unavailable')
  const answer = await ground.ask('PATCH', state, { state: 'up' })
  assert.equal(answer.json().peers[0].state, 'up')
  assert.deepEqual(ground.lines, ['upstream "app": failures of 127.0.0.1:8081 are forgotten, by 127.0.0.1'])
})

test('up leaves what probes have found', async () => {
  const ground = new Ground()
  const peer = ground.upstream().peers[0]!
  peer.zone.peers.barred[peer.index] = 3
  assert.equal((await ground.ask('PATCH', state, { state: 'up' })).json().peers[0].state, 'unhealthy')
})

for (const [what, method, url, body, status, error] of [
  [
    'an unknown group',
    'PATCH',
    '/upstreams/nope/peers/a',
    { weight: 2 },
    404,
    'unknown upstream "nope"; there are: app',
  ],
  ['an unknown group', 'GET', '/upstreams/nope', undefined, 404, 'unknown upstream "nope"; there are: app'],
  [
    'an unknown peer',
    'PATCH',
    '/upstreams/app/peers/127.0.0.1:1',
    { weight: 2 },
    404,
    'no peer "127.0.0.1:1" in upstream "app"; there are: 127.0.0.1:8081, 127.0.0.1:8082, unix:/run/a.sock',
  ],
  ['a weight of 0', 'PATCH', state, { weight: 0 }, 422, 'invalid parameter "weight=0"'],
  ['a weight in words', 'PATCH', state, { weight: 'two' }, 422, '"weight" is a number, or null: "two"'],
  [
    'an unknown state',
    'PATCH',
    state,
    { state: 'off' },
    422,
    '"state" is one of "up", "down", "drain", or null',
  ],
  [
    'an unknown parameter',
    'PATCH',
    state,
    { max_fails: 2 },
    422,
    'invalid parameter "max_fails"; there are "state", "weight" and "max_conns"',
  ],
  ['nothing', 'PATCH', state, {}, 422, 'nothing is asked for: give "state", "weight" or "max_conns"'],
  ['no object', 'PATCH', state, [1], 422, 'the body is to be a JSON object'],
  ['no object', 'POST', '/upstreams/app/peers', 'x', 422, 'the body is to be a JSON object'],
  [
    'a peer twice',
    'POST',
    '/upstreams/app/peers',
    { server: '127.0.0.1:8081' },
    409,
    'upstream "app" has a peer "127.0.0.1:8081" already',
  ],
  [
    'what no line has',
    'POST',
    '/upstreams/app/peers',
    { server: 'a:1', __proto__x: 1 },
    422,
    'invalid parameter "__proto__x=1"',
  ],
] as const) {
  test(`${method} of ${what} is refused with ${status}: ${error}`, async () => {
    const ground = new Ground()
    const answer = await ground.ask(method, url, body)
    assert.deepEqual([answer.statusCode, answer.json()], [status, { error }])
    assert.equal(ground.refreshes, 0)
  })
}

test('what a method does not support is refused, and changes nothing', async () => {
  const ground = new Ground({
    app: 'zone app 64k; least_time header; server 127.0.0.1:8081; server 127.0.0.1:8082;',
  })
  const answer = await ground.ask('PATCH', state, { weight: 2 })
  const error = 'balancing method does not support parameter "weight=2"'
  assert.deepEqual([answer.statusCode, answer.json()], [422, { error }])
  assert.deepEqual([ground.runtime.list(), ground.refreshes], [[], 0])
})

test('wrong methods are named with those that are right', async () => {
  const ground = new Ground()
  for (const [method, url, allow] of [
    ['POST', '/upstreams/app', 'GET, HEAD'],
    ['GET', '/upstreams/app/peers', 'POST'],
    ['PUT', state, 'PATCH, DELETE'],
    ['GET', '/upstreams/app/changes', 'DELETE'],
  ] as const) {
    const answer = await ground.ask(method, url)
    assert.deepEqual([answer.statusCode, answer.headers['allow']], [405, allow], url)
  }
})

test('a token is asked for where one is configured, and a foreign page is refused', async () => {
  const ground = new Ground()
  ground.token = 'abc'
  for (const [method, url, body] of [
    ['PATCH', state, { weight: 2 }],
    ['POST', '/upstreams/app/peers', { server: '10.0.0.4:80' }],
    ['DELETE', state, undefined],
    ['DELETE', '/upstreams/app/changes', undefined],
  ] as const) {
    assert.equal((await ground.ask(method, url, body)).statusCode, 401)
    const given = { authorization: 'Bearer abc' }
    const foreign = { headers: { ...given, origin: 'http://evil.example' } }
    assert.equal((await ground.ask(method, url, body, foreign)).statusCode, 403)
    const form = { headers: { ...given, 'content-type': 'text/plain' } }
    assert.equal((await ground.ask(method, url, body, form)).statusCode, 415)
    assert.deepEqual(ground.runtime.list(), [])
    const elsewhere = { headers: { ...given, host: 'evil.example' } }
    assert.equal((await ground.ask(method, url, body, elsewhere)).statusCode, 421)
  }
  const given = { headers: { authorization: 'Bearer abc' } }
  assert.equal((await ground.ask('PATCH', state, { weight: 2 }, given)).statusCode, 200)
  assert.equal((await ground.ask('GET', '/upstreams')).statusCode, 200)
})

test('a readonly address has no groups to change', async () => {
  const ground = new Ground()
  for (const method of ['GET', 'PATCH'] as const) {
    assert.equal((await ground.ask(method, state, undefined, { readonly: true })).statusCode, 404)
  }
})

test('what cannot be put in force is as if nobody had asked for it', async () => {
  const ground = new Ground()
  ground.failure = new Error('no memory left')
  const answer = await ground.ask('PATCH', state, { weight: 2 })
  assert.deepEqual([answer.statusCode, answer.json()], [503, { error: 'no memory left' }])
  assert.deepEqual([ground.runtime.list(), ground.lines, [...ground.runtime.counts()]], [[], [], []])
})

test('wishes that come together are granted one after the other, and none is lost', async () => {
  const ground = new Ground()
  await Promise.all(
    Array.from({ length: 20 }, (_, at) =>
      ground.ask('POST', '/upstreams/app/peers', { server: `10.0.0.${at + 1}:80` }),
    ),
  )
  assert.equal(ground.upstream().peers.length, 23)
})

test('what was done is counted, by group', async () => {
  const ground = new Ground()
  await ground.ask('PATCH', state, { weight: 2, state: 'down' })
  await ground.ask('POST', '/upstreams/app/peers', { server: '10.0.0.4:80' })
  await ground.ask('DELETE', '/upstreams/app/peers/127.0.0.1:8082')
  ground.reload(three.replace('weight=5', 'weight=4'))
  await ground.ask('DELETE', '/upstreams/app/changes')
  assert.deepEqual(
    Array.from(ground.runtime.counts(), ({ upstream, deed, count }) => `${upstream} ${deed} ${count}`),
    ['app state 1', 'app weight 1', 'app add 1', 'app remove 1', 'app dropped 1', 'app reset 1'],
  )
})

test('the log says what a reload has dropped, and why', async () => {
  const ground = new Ground()
  await ground.ask('PATCH', state, { weight: 2 })
  ground.reload(three.replace('weight=5', 'weight=4'))
  assert.equal(
    ground.lines.at(-1),
    'upstream "app": weight=2 of 127.0.0.1:8081 no longer holds: the file says "weight=4" by now',
  )
})

test('/config shows what is changed beside what the file says, and /status marks the peer', async () => {
  const ground = new Ground()
  await ground.ask('PATCH', state, { weight: 2 })
  const config = (await ground.ask('GET', '/config?format=json')).json()
  const at = new Date(wall).toISOString()
  const change = { change: 'weight', value: 2, file: 5, at, by: '127.0.0.1' }
  assert.deepEqual(config.changes, [{ upstream: 'app', peer: '127.0.0.1:8081', ...change }])
  assert.match(
    (await ground.ask('GET', '/config')).body,
    /^changes:\n {2}- upstream: app\n {4}peer: 127.0.0.1:8081\n/m,
  )
  const status = (
    await ground.ask('GET', '/status/http/upstreams/app/peers/127.0.0.1:8081/evenkeel/changed')
  ).json()
  assert.deepEqual(status, { weight: { value: 2, file: 5, at, by: '127.0.0.1' } })
  await ground.ask('DELETE', '/upstreams/app/peers/127.0.0.1:8082')
  const removed = (await ground.ask('GET', '/status/http/upstreams/app/evenkeel/removed')).json()
  assert.deepEqual(removed, { '127.0.0.1:8082': { file: '127.0.0.1:8082', at, by: '127.0.0.1' } })
  await ground.ask('DELETE', '/upstreams/app/changes')
  assert.equal((await ground.ask('GET', '/config?format=json')).json().changes, undefined)
})

test('whatever is asked for is granted or refused with a reason, and the group stays whole', async () => {
  const ground = new Ground({ app: three, other: 'hash $uri consistent; server 127.0.0.1:8081;' })
  const texts = fc.oneof(
    fc.constantFrom(
      '127.0.0.1:8081',
      '127.0.0.1:8082',
      'unix:/run/a.sock',
      '10.0.0.4:80',
      '[::1]:80',
      '::',
      ':',
      '',
    ),
    // No name that would be looked up.
    fc.string({ maxLength: 12 }).map((text) => ` ${text}`),
  )
  const values = fc.oneof(
    fc.integer({ min: -1, max: 5 }),
    fc.constantFrom('up', 'down', 'drain', true, null),
    fc.jsonValue(),
  )
  const names = fc.constantFrom(
    'server',
    'weight',
    'max_conns',
    'state',
    'backup',
    'down',
    'track',
    'sid',
    '__proto__',
    'x',
  )
  const bodies = fc.oneof(
    fc.dictionary(names, values, { maxKeys: 3 }).filter(({ server }) => typeof server !== 'string'),
    fc.record({ server: texts }),
    fc.record({ server: texts, weight: values }),
    fc.jsonValue(),
  )
  const asks = fc.record({
    method: fc.constantFrom('PATCH', 'POST', 'DELETE'),
    group: fc.constantFrom('app', 'app', 'other', 'APP', 'nope', 'constructor'),
    address: texts,
    body: bodies,
  })
  await fc.assert(
    fc.asyncProperty(asks, async ({ method, group, address, body }) => {
      const peers = `/upstreams/${group}/peers`
      const url = method === 'POST' ? peers : `${peers}/${encodeURIComponent(address)}`
      const answer = await ground.ask(method, url, method === 'DELETE' ? undefined : body)
      const refusals = address === '' ? [404, 405, 409, 422] : [404, 409, 422]
      assert.ok([200, ...refusals].includes(answer.statusCode), `${answer.statusCode} ${answer.body}`)
      if (answer.statusCode !== 200) assert.match(answer.json().error, /\S/)
      const { peers: primaries } = ground.upstream()
      assert.ok(primaries.length > 0)
      for (const { options } of primaries) {
        assert.ok(options.weight >= 1 && options.max_conns >= 0 && !(options.down && options.drain))
      }
    }),
    { numRuns: 150 },
  )
})
