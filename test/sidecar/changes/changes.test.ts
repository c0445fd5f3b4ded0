import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PeerWish } from '../../../sidecar/admin/runtime-facts.ts'
import type { Plan } from '../../../sidecar/build/plans.ts'
import { Changes, type Made } from '../../../sidecar/changes/changes.ts'
import { revaluing } from '../../../sidecar/changes/revalue.ts'
import { adding, removing } from '../../../sidecar/changes/servers.ts'
import { fc } from '../../support/property.ts'
import { fits, type Hosts, inForce, read, written } from './groups.ts'

const wisher = { by: '127.0.0.1', at: 1000 }
const three =
  'zone app 64k; server 127.0.0.1:8081 weight=5; server 127.0.0.1:8082; server 127.0.0.1:8083 down;'

/** A group that is changed step by step. */
class Story {
  readonly plan: Plan
  made: readonly Made[] = []

  constructor(lines = three, hosts: Hosts = {}) {
    this.plan = written(lines, hosts)
  }

  get now(): Plan {
    return inForce(this.plan, this.made)
  }
  get peers(): string {
    return read(this.now)
  }

  change(address: string, wish: PeerWish): this {
    this.made = revaluing(this.now, this.made, address, wish, wisher).made
    return this
  }
  async add(server: Readonly<Record<string, unknown>>): Promise<this> {
    this.made = (await adding(this.now, this.made, server, wisher)).made
    return this
  }
  remove(address: string): this {
    this.made = removing(this.now, this.made, address, wisher).made
    return this
  }

  /** The group after a reload of the file, and why changes were dropped. */
  reload(lines: string, hosts: Hosts = {}): { readonly peers: string; readonly why: readonly string[] } {
    const plan = written(lines, hosts)
    const changes = new Changes().with('app', this.made)
    const { dropped, changes: left } = changes.after([plan], fits)
    const [changed] = changes.changed([plan], fits)
    assert.deepEqual(
      read(changed!),
      read(inForce(plan, left.of('app'))),
      'what is built is what is remembered',
    )
    return { peers: read(changed!), why: dropped.map(({ why }) => why) }
  }
}

test('changes state, weight and limit of one peer and leaves the others as they are', () => {
  const story = new Story().change('127.0.0.1:8082', { state: 'drain', weight: 3, max_conns: 10 })
  assert.equal(story.peers, '8081 weight=5, 8082 weight=3 max_conns=10 drain, 8083 down')
})

test('brings up a peer that the file has down', () => {
  assert.equal(new Story().change('127.0.0.1:8083', { state: 'up' }).peers, '8081 weight=5, 8082, 8083')
})

test('a peer is down or drains, and never both', () => {
  const story = new Story().change('127.0.0.1:8083', { state: 'drain' })
  assert.equal(story.peers, '8081 weight=5, 8082, 8083 drain')
})

test('null takes a change back, and leaves the others', () => {
  const story = new Story().change('127.0.0.1:8081', { weight: 2, state: 'down' })
  assert.equal(story.peers, '8081 weight=2 down, 8082, 8083 down')
  assert.equal(story.change('127.0.0.1:8081', { weight: null }).peers, '8081 weight=5 down, 8082, 8083 down')
})

test('what the file says anyway is no change', () => {
  const story = new Story().change('127.0.0.1:8081', { weight: 5, state: 'up', max_conns: 0 })
  assert.deepEqual(story.made, [])
  story.change('127.0.0.1:8081', { weight: 6 }).change('127.0.0.1:8081', { weight: 5 })
  assert.deepEqual(story.made, [])
})

test('a change remembers who made it, when, and what the file says', () => {
  const { made } = new Story().change('127.0.0.1:8081', { weight: 2 })
  const { upstream, kind, target, whole, value, file, at, by } = made[0]!
  assert.deepEqual(
    { upstream, kind, target, whole, value, file, at, by },
    {
      upstream: 'app',
      kind: 'weight',
      target: '127.0.0.1:8081',
      whole: false,
      value: 2,
      file: 5,
      at: 1000,
      by: '127.0.0.1',
    },
  )
})

test('a peer that is not there is named with those that are', () => {
  const story = new Story()
  assert.throws(() => story.change('127.0.0.1:9', { weight: 2 }), {
    status: 404,
    message:
      'no peer "127.0.0.1:9" in upstream "app"; there are: 127.0.0.1:8081, 127.0.0.1:8082, 127.0.0.1:8083',
  })
})

test('an address may be written as the line has it', () => {
  const story = new Story('server 127.0.0.1; server [::1]:8080; server unix:/run/a.sock;')
  story
    .change('127.0.0.1', { weight: 2 })
    .change('[::1]:8080', { weight: 3 })
    .change('unix:/run/a.sock', { weight: 4 })
  assert.equal(story.peers, '127.0.0.1:80 weight=2, [::1]:8080 weight=3, unix:/run/a.sock weight=4')
})

const hosts = { 'db.test': ['127.0.0.1', '127.0.0.2'] }
const named = 'zone app 64k; server db.test:80; server 127.0.0.3:80;'

test('the text of a line means all its addresses, those that come later too', () => {
  const story = new Story(named, hosts).change('db.test:80', { state: 'drain' })
  assert.equal(story.peers, '127.0.0.1:80 drain, 127.0.0.2:80 drain, 127.0.0.3:80')
  const { peers } = story.reload(named, { 'db.test': ['127.0.0.2', '127.0.0.9'] })
  assert.equal(peers, '127.0.0.2:80 drain, 127.0.0.9:80 drain, 127.0.0.3:80')
})

test('one address of a name can be changed, and again after it was away', () => {
  const story = new Story(named, hosts).change('127.0.0.2:80', { weight: 4 })
  assert.equal(story.peers, '127.0.0.1:80, 127.0.0.2:80 weight=4, 127.0.0.3:80')
  assert.equal(story.reload(named, { 'db.test': ['127.0.0.1'] }).peers, '127.0.0.1:80, 127.0.0.3:80')
  assert.deepEqual(story.reload(named, { 'db.test': ['127.0.0.1'] }).why, [])
})

test('what is said of one address holds before what is said of its line', () => {
  const story = new Story(named, hosts)
    .change('db.test:80', { state: 'drain' })
    .change('127.0.0.1:80', { state: 'up' })
  assert.equal(story.peers, '127.0.0.1:80, 127.0.0.2:80 drain, 127.0.0.3:80')
})

test('the last word on a line holds for each of its addresses', () => {
  const story = new Story(named, hosts)
    .change('127.0.0.1:80', { state: 'down' })
    .change('db.test:80', { state: 'drain' })
  assert.equal(story.peers, '127.0.0.1:80 drain, 127.0.0.2:80 drain, 127.0.0.3:80')
})

test('the line of a service is meant by its own text, whatever its targets are called', () => {
  const plan = written(named, hosts)
  const wanted = plan.wanted.map((peer) =>
    peer.server === 'db.test:80' ? { ...peer, server: `${peer.name}.target`, line: 'db.test:80' } : peer,
  )
  const { made } = revaluing({ ...plan, wanted }, [], 'db.test:80', { weight: 7 }, wisher)
  const changed = new Changes().with('app', made).apply('app', wanted)
  assert.equal(read({ wanted: changed }), '127.0.0.1:80 weight=7, 127.0.0.2:80 weight=7, 127.0.0.3:80')
})

test('adds a server with the parameters that a line of the file takes, behind the others', async () => {
  const story = await new Story().add({
    server: '127.0.0.1:8084',
    weight: 2,
    max_fails: 3,
    fail_timeout: '5s',
  })
  assert.equal(story.peers, '8081 weight=5, 8082, 8083 down, 8084 weight=2')
  const { options, server } = story.now.wanted.at(-1)!
  assert.deepEqual([server, options.max_fails, options.fail_timeout], ['127.0.0.1:8084', 3, 5000])
})

test('an added server is a backup where it says so', async () => {
  const story = await new Story().add({ server: '127.0.0.1:8084', backup: true })
  assert.equal(story.peers, '8081 weight=5, 8082, 8083 down, 8084 backup')
})

for (const [server, status, message] of [
  [{ server: '127.0.0.1:8084', weight: 0 }, 422, 'invalid parameter "weight=0"'],
  [{ server: '127.0.0.1:8084', wait: 1 }, 422, 'invalid parameter "wait=1"'],
  [{ server: '127.0.0.1:8084', weight: [1] }, 422, 'invalid parameter "weight=[1]"'],
  [{ server: '127.0.0.1:0' }, 422, 'invalid port in upstream "127.0.0.1:0"'],
  [{ weight: 2 }, 422, '"server" is missing: it is the address of the server to add'],
  [{ address: '127.0.0.1:8084' }, 422, 'invalid parameter "address"; the address is given as "server"'],
  [{ server: 'no.such.host.invalid:80' }, 422, 'host not found in upstream "no.such.host.invalid:80"'],
  [{ server: '127.0.0.1:8081' }, 409, 'upstream "app" has a peer "127.0.0.1:8081" already'],
  [
    { server: 'a.test', resolve: true },
    422,
    'parameter "resolve" is for the file: a server that is added has the addresses of now',
  ],
] as const) {
  test(`a server is refused in the words that the file has: ${message}`, async () => {
    await assert.rejects(new Story().add(server), { status, message })
  })
}

test('what a method does not support is refused as in the file', async () => {
  const lines = 'zone app 64k; least_time header; server 127.0.0.1:8081; server 127.0.0.1:8082;'
  const story = await new Story(lines).add({ server: '127.0.0.1:8084', weight: 2 })
  const message = 'balancing method does not support parameter "weight=2"'
  assert.equal(fits(story.plan, story.made), message)
  const other = new Story(lines).change('127.0.0.1:8082', { weight: 2 })
  assert.equal(fits(other.plan, other.made), message)
})

for (const [wish, message] of [
  [{ weight: 0 }, 'invalid parameter "weight=0"'],
  [{ weight: 1.5 }, 'invalid parameter "weight=1.5"'],
  [{ max_conns: -1 }, 'invalid parameter "max_conns=-1"'],
] as const) {
  test(`a value is refused in the words that the file has: ${message}`, () => {
    const story = new Story().change('127.0.0.1:8081', wish)
    assert.equal(fits(story.plan, story.made), message)
  })
}

test('only a group with a zone takes servers and lets them go', async () => {
  const story = new Story('server 127.0.0.1:8081; server 127.0.0.1:8082;')
  const refused = {
    status: 409,
    message: 'upstream "app" has no "zone": servers can be added and removed only where there is one',
  }
  await assert.rejects(story.add({ server: '127.0.0.1:8084' }), refused)
  assert.throws(() => story.remove('127.0.0.1:8081'), refused)
  assert.equal(story.change('127.0.0.1:8081', { weight: 3 }).peers, '8081 weight=3, 8082')
})

test('removes a peer, and what was changed of it', () => {
  const story = new Story().change('127.0.0.1:8082', { weight: 3 }).remove('127.0.0.1:8082')
  assert.equal(story.peers, '8081 weight=5, 8083 down')
  assert.deepEqual(
    story.made.map(({ kind, target, file }) => [kind, target, file]),
    [['removed', '127.0.0.1:8082', '127.0.0.1:8082']],
  )
})

test('the last primary stays', () => {
  const story = new Story('zone app 64k; server 127.0.0.1:8081; server 127.0.0.1:8082 backup;')
  assert.throws(() => story.remove('127.0.0.1:8081'), {
    status: 409,
    message: '"127.0.0.1:8081" is the last primary of upstream "app": set its state to "down" instead',
  })
  assert.equal(story.remove('127.0.0.1:8082').peers, '8081')
})

test('a removed peer comes back as it stands in the file', async () => {
  const story = new Story().remove('127.0.0.1:8081')
  await assert.rejects(story.add({ server: '127.0.0.1:8081', weight: 2 }), {
    status: 409,
    message:
      'peer "127.0.0.1:8081" is in the file: give "server":"127.0.0.1:8081" alone, and it comes back as it stands there',
  })
  await story.add({ server: '127.0.0.1:8081' })
  assert.equal(story.peers, '8081 weight=5, 8082, 8083 down')
  assert.deepEqual(story.made, [])
})

test('a server that was added goes without a trace', async () => {
  const story = await new Story().add({ server: '127.0.0.1:8084' })
  story.change('127.0.0.1:8084', { weight: 3 }).remove('127.0.0.1:8084')
  assert.deepEqual(story.made, [])
})

test('one address of a name that was added can go alone', async () => {
  const story = await new Story().add({ server: 'localhost:8085' })
  const added = story.now.wanted.slice(3).map(({ name }) => name)
  assert.ok(added.length > 0)
  for (const name of added) story.remove(name)
  assert.deepEqual(story.made, [])
})

test('one address of a name in the file can be removed, or all', () => {
  assert.equal(new Story(named, hosts).remove('127.0.0.2:80').peers, '127.0.0.1:80, 127.0.0.3:80')
  const story = new Story(named, hosts).remove('127.0.0.2:80').remove('db.test:80')
  assert.equal(story.peers, '127.0.0.3:80')
  assert.equal(story.made.length, 1)
  assert.throws(() => story.change('db.test:80', { weight: 2 }), { status: 404 })
})

test('a removed name comes back by its text, without being looked up', async () => {
  const story = new Story(named, hosts).remove('db.test:80')
  await story.add({ server: 'db.test:80' })
  assert.equal(story.peers, '127.0.0.1:80, 127.0.0.2:80, 127.0.0.3:80')
})

test('changes survive a reload of the same file', async () => {
  const story = await new Story().change('127.0.0.1:8081', { weight: 2 }).remove('127.0.0.1:8082').add({
    server: '127.0.0.1:8084',
  })
  assert.deepEqual(story.reload(three), { peers: '8081 weight=2, 8083 down, 8084', why: [] })
})

test('changes survive a reload of a file that says something else of other things', () => {
  const story = new Story().change('127.0.0.1:8081', { weight: 2 })
  const other = three
    .replace('8081 weight=5', '8081 weight=5 max_conns=7')
    .replace('8083 down', '8083 weight=9')
  assert.deepEqual(story.reload(other), { peers: '8081 weight=2 max_conns=7, 8082, 8083 weight=9', why: [] })
})

test('the file holds where it says something else of that very thing', () => {
  const story = new Story().change('127.0.0.1:8081', { weight: 2, state: 'drain' })
  assert.deepEqual(story.reload(three.replace('weight=5', 'weight=4')), {
    peers: '8081 weight=4 drain, 8082, 8083 down',
    why: ['the file says "weight=4" by now'],
  })
  assert.deepEqual(story.reload(three.replace('weight=5', 'weight=5 down')), {
    peers: '8081 weight=2 down, 8082, 8083 down',
    why: ['the file says "state=down" by now'],
  })
})

test('a change of a peer that the file no longer has is dropped', () => {
  const story = new Story().change('127.0.0.1:8082', { weight: 2 })
  assert.deepEqual(story.reload('zone app 64k; server 127.0.0.1:8081 weight=5;'), {
    peers: '8081 weight=5',
    why: ['the file does not have it any more'],
  })
})

test('changes of a group that the file no longer has are dropped', () => {
  const { made } = new Story().change('127.0.0.1:8082', { weight: 2 })
  const { dropped, changes } = new Changes().with('app', made).after([], fits)
  assert.deepEqual([dropped.map(({ why }) => why), changes.list], [['the group is gone'], []])
})

test('an added peer is the file’s once that has it', async () => {
  const story = await new Story().add({ server: '127.0.0.1:8084', weight: 2 })
  assert.deepEqual(story.reload(`${three} server 127.0.0.1:8084 weight=7;`), {
    peers: '8081 weight=5, 8082, 8083 down, 8084 weight=7',
    why: ['the file has it now'],
  })
})

test('an added peer is the file’s in whatever way that writes its address', async () => {
  const story = await new Story().add({ server: '127.0.0.1:80' })
  assert.deepEqual(story.reload(`${three} server 127.0.0.1;`), {
    peers: '8081 weight=5, 8082, 8083 down, 127.0.0.1:80',
    why: ['the file has it now'],
  })
})

test('what was changed of an added peer stays where the file agrees with what was added', async () => {
  const story = await new Story().add({ server: '127.0.0.1:8084', weight: 2 })
  story.change('127.0.0.1:8084', { state: 'drain', weight: 3 })
  assert.deepEqual(story.reload(`${three} server 127.0.0.1:8084 weight=2 down;`), {
    peers: '8081 weight=5, 8082, 8083 down, 8084 weight=3 down',
    why: ['the file has it now', 'the file says "state=down" by now'],
  })
})

test('a removed peer stays removed as long as its line is the same', () => {
  const story = new Story().remove('127.0.0.1:8081')
  assert.deepEqual(story.reload(three.replace('8082', '8085')).peers, '8085, 8083 down')
  assert.deepEqual(story.reload(three.replace('weight=5', 'weight=5 max_fails=2')), {
    peers: '8081 weight=5, 8082, 8083 down',
    why: ['its line in the file is another one'],
  })
})

test('what the method of the file does not support is dropped', () => {
  const story = new Story('zone app 64k; server 127.0.0.1:8081; server 127.0.0.1:8082;')
  story.change('127.0.0.1:8081', { weight: 2, state: 'drain' })
  assert.deepEqual(
    story.reload('zone app 64k; least_time header; server 127.0.0.1:8081; server 127.0.0.1:8082;'),
    {
      peers: '8081 drain, 8082',
      why: ['balancing method does not support parameter "weight=2"'],
    },
  )
})

test('a reload whose file is refused forgets nothing', () => {
  const { made } = new Story().change('127.0.0.1:8081', { weight: 2 })
  const changes = new Changes().with('app', made)
  changes.changed([written(three.replace('weight=5', 'weight=4'))], fits)
  assert.equal(
    read({ wanted: changes.apply('app', written(three).wanted) }),
    '8081 weight=2, 8082, 8083 down',
  )
})

/** A step of a story. */
const step = fc.oneof(
  fc.record({
    port: fc.integer({ min: 8081, max: 8086 }),
    wish: fc.record(
      {
        state: fc.constantFrom('up', 'down', 'drain', null),
        weight: fc.option(fc.integer({ min: 1, max: 9 })),
        max_conns: fc.option(fc.integer({ min: 0, max: 9 })),
      },
      { requiredKeys: [] },
    ),
  }),
  fc.record({ port: fc.integer({ min: 8081, max: 8086 }), add: fc.constant(true) }),
  fc.record({ port: fc.integer({ min: 8081, max: 8086 }), remove: fc.constant(true) }),
)

test('to apply changes twice is to apply them once, whatever they are, and peers keep their order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const story = new Story()
      for (const one of steps) {
        const address = `127.0.0.1:${one.port}`
        try {
          if ('add' in one) await story.add({ server: address })
          else if ('remove' in one) story.remove(address)
          else story.change(address, one.wish as PeerWish)
        } catch (error) {
          // No such peer, one that is there already, the last one: then nothing happens.
          assert.ok(error instanceof Error && 'status' in error, String(error))
        }
      }
      const changes = new Changes().with('app', story.made)
      const once = changes.apply('app', story.plan.wanted)
      assert.deepEqual(changes.apply('app', once), once)
      const file = story.plan.wanted.map(({ name }) => name)
      const kept = once.map(({ name }) => name).filter((name) => file.includes(name))
      assert.deepEqual(
        kept,
        file.filter((name) => kept.includes(name)),
        'the order of the file',
      )
      assert.deepEqual(changes.after([story.plan], fits).dropped, [], 'the same file contradicts nothing')
      assert.equal(new Set(once.map(({ name }) => name)).size, once.length, 'nobody is there twice')
    }),
    { numRuns: 200 },
  )
})
