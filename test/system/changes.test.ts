import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Backend, backend, backends, type Exchange } from '../support/backend.ts'
import { type ChangeAnswer, change } from '../support/changing.ts'
import { dial } from '../support/client.ts'
import { mortal, replaced } from '../support/dying-threads.ts'
import { eventually, type PeerStatus } from '../support/invariants.ts'
import { launcher, type Sidecar, start } from '../support/sidecar.ts'
import { SteadyLoad } from '../support/steady-load.ts'

function config(servers: readonly string[], more = ''): string {
  return `
worker_processes 2;
${more}
http {
  access_log off;
  upstream u { zone u 64k; ${servers.map((server) => `server ${server};`).join(' ')} }
  server { listen 127.0.0.1:PORT; location / { proxy_pass http://u; } }
}`
}

/** How many of so many requests each peer gets, each over a connection of its own. */
async function spread(sidecar: Sidecar, peers: readonly Backend[], requests: number): Promise<string> {
  const before = peers.map((peer) => peer.requests.length)
  for (let i = 0; i < requests; i += 1) {
    const client = await dial(sidecar.port)
    assert.equal((await client.ask('/')).status, 200)
    client.close()
  }
  return peers.map((peer, i) => peer.requests.length - before[i]!).join('/')
}

const peersOf = (sidecar: Sidecar) =>
  sidecar.json<Record<string, PeerStatus>>('/status/http/upstreams/u/peers/')

/** A peer that answers what was asked of it before once it is told to. */
function held(): { readonly script: (x: Exchange) => Promise<void>; readonly release: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return {
    release: resolve,
    async script(x) {
      if (x.target === '/slow') await promise
      await x.reply({ body: 'x' })
    },
  }
}

test('a changed weight changes the shares at once, in all threads', async () => {
  await using peers = await backends([{ body: 'x' }, { body: 'x' }])
  const [a, b] = peers.list
  await using sidecar = await start(config([`${a!.address} weight=2`, b!.address]))
  assert.equal(await spread(sidecar, [a!, b!], 12), '8/4')
  const one = await change(sidecar, 'PATCH', `u/peers/${a!.address}`, { weight: 1 })
  const two = await change(sidecar, 'PATCH', `u/peers/${b!.address}`, { weight: 2 })
  assert.deepEqual([one.status, two.status, two.peers![0]!.weight], [200, 200, 2])
  assert.equal(await spread(sidecar, [a!, b!], 12), '4/8')
  await change(sidecar, 'DELETE', 'u/changes')
  assert.equal(await spread(sidecar, [a!, b!], 12), '8/4')
  assert.equal(await sidecar.generation(), 1)
})

test('a draining peer gets nothing new, and ends what it has begun', async () => {
  const slow = held()
  await using a = await backend(slow.script)
  await using b = await backend({ body: 'b' })
  await using sidecar = await start(config([a.address, `${b.address} backup`]))
  const client = await dial(sidecar.port)
  const answer = client.ask('/slow')
  await eventually('the request is there', () => a.requests.length === 1)
  const drained = await change(sidecar, 'PATCH', `u/peers/${a.address}`, { state: 'drain' })
  assert.equal(drained.peers![0]!.state, 'draining')
  assert.equal(await spread(sidecar, [a, b], 6), '0/6')
  assert.equal((await peersOf(sidecar))[a.address]!.selected.current, 1)
  slow.release()
  assert.equal((await answer).text, 'x')
  await change(sidecar, 'PATCH', `u/peers/${a.address}`, { state: 'up' })
  assert.equal(await spread(sidecar, [a, b], 6), '6/0')
  client.close()
})

test('a limit holds from the answer on', async () => {
  const slow = held()
  await using a = await backend(slow.script)
  await using b = await backend({ body: 'b' })
  await using sidecar = await start(config([a.address, `${b.address} backup`]))
  const client = await dial(sidecar.port)
  const answer = client.ask('/slow')
  await eventually('the request is there', () => a.requests.length === 1)
  assert.equal(await spread(sidecar, [a, b], 4), '4/0')
  await change(sidecar, 'PATCH', `u/peers/${a.address}`, { max_conns: 1 })
  assert.equal(await spread(sidecar, [a, b], 4), '0/4')
  await change(sidecar, 'PATCH', `u/peers/${a.address}`, { max_conns: null })
  assert.equal(await spread(sidecar, [a, b], 4), '4/0')
  slow.release()
  assert.equal((await answer).status, 200)
  client.close()
})

test('peers come and go under load, and no request is lost', async () => {
  await using a = await backend({ body: 'a', after: 2 })
  await using b = await backend({ body: 'b', after: 2 })
  await using c = await backend({ body: 'c', after: 2 })
  await using sidecar = await start(config([a.address, b.address]))
  const load = new SteadyLoad(sidecar.port, { clients: 6, every: 2, timed: false })
  for (let round = 0; round < 3; round += 1) {
    const before = c.requests.length
    const added = await change(sidecar, 'POST', 'u/peers', { server: c.address })
    assert.deepEqual([added.status, added.error], [200, undefined])
    await eventually('the new peer gets requests', () => c.requests.length > before + 20)
    const removed = await change(sidecar, 'DELETE', `u/peers/${c.address}`)
    assert.deepEqual([removed.status, removed.error], [200, undefined])
    await eventually('it has ended what it had', async () => !(c.address in (await peersOf(sidecar))))
    const after = c.requests.length
    const gone = await change(sidecar, 'DELETE', `u/peers/${a.address}`)
    assert.deepEqual([gone.status, gone.error], [200, undefined])
    const rest = b.requests.length
    await eventually('the others go on', () => b.requests.length > rest + 20)
    assert.equal(c.requests.length, after)
    assert.equal((await change(sidecar, 'POST', 'u/peers', { server: a.address })).status, 200)
  }
  await load.stop()
  assert.deepEqual(load.failures, [])
  assert.ok(load.answered > 100)
})

test('a removed peer ends what it has begun', async () => {
  const slow = held()
  await using a = await backend(slow.script)
  await using b = await backend({ body: 'b' })
  await using sidecar = await start(config([a.address, `${b.address} weight=1`]))
  const client = await dial(sidecar.port)
  const answers = Promise.all([client.ask('/slow'), (await dial(sidecar.port)).ask('/slow')])
  await eventually('one of them is at the peer', () => a.requests.length === 1)
  const removed = await change(sidecar, 'DELETE', `u/peers/${a.address}`)
  assert.equal(removed.peers![0]!.state, 'draining')
  assert.equal(await spread(sidecar, [a, b], 4), '0/4')
  slow.release()
  for (const answer of await answers) assert.equal(answer.status, 200)
  await eventually('it is gone', async () => !(a.address in (await peersOf(sidecar))))
  client.close()
})

test('changes survive a reload, until the file says something else of that very thing', async () => {
  await using peers = await backends([{ body: 'x' }, { body: 'x' }, { body: 'x' }])
  const [a, b, c] = peers.list
  const text = (weight: number) => config([`${a!.address} weight=${weight}`, `${b!.address} weight=3`])
  await using sidecar = await start(text(2))
  await change(sidecar, 'PATCH', `u/peers/${a!.address}`, { weight: 1, state: 'drain' })
  await change(sidecar, 'PATCH', `u/peers/${b!.address}`, { weight: 1 })
  await change(sidecar, 'POST', 'u/peers', { server: c!.address, weight: 2 })
  assert.equal(await spread(sidecar, [a!, b!, c!], 6), '0/2/4')
  await sidecar.reload()
  assert.equal(await spread(sidecar, [a!, b!, c!], 6), '0/2/4')
  await sidecar.reload(text(5))
  await sidecar.logged(
    new RegExp(
      `\\[notice\\] .*upstream "u": weight=1 of ${a!.address} no longer holds: the file says "weight=5" by now`,
    ),
  )
  const status = await peersOf(sidecar)
  assert.deepEqual(
    [a!, b!, c!].map(({ address }) => [status[address]!.weight, status[address]!.state]),
    [
      [5, 'draining'],
      [1, 'up'],
      [2, 'up'],
    ],
  )
  const { changes } = await sidecar.json<{ changes: { change: string }[] }>('/config?format=json')
  assert.deepEqual(
    changes.map(({ change }) => change),
    ['state', 'weight', 'added'],
  )
})

test('a file that is refused at a reload takes nothing back', async () => {
  await using peers = await backends([{ body: 'x' }, { body: 'x' }])
  const [a, b] = peers.list
  await using sidecar = await start(config([`${a!.address} weight=2`, b!.address]))
  await change(sidecar, 'PATCH', `u/peers/${a!.address}`, { weight: 1 })
  await sidecar.rewrite(config([`${a!.address} weight=9`, b!.address], 'nonsense;'))
  assert.equal((await sidecar.askReload()).status, 422)
  assert.equal(await spread(sidecar, [a!, b!], 6), '3/3')
})

test('reloads and changes side by side lose neither a change nor a request', async () => {
  await using peers = await backends([{ body: 'x' }, { body: 'x' }])
  const [a, b] = peers.list
  await using sidecar = await start(config([`${a!.address} weight=2`, b!.address]))
  const load = new SteadyLoad(sidecar.port, { clients: 4, every: 5, timed: false })
  const reloads = Array.from({ length: 8 }, async () => assert.equal((await sidecar.askReload()).status, 200))
  for (let i = 1; i <= 8; i += 1) {
    const added = await change(sidecar, 'POST', 'u/peers', { server: `127.0.0.3:${9000 + i}`, down: true })
    assert.deepEqual([added.status, added.error], [200, undefined])
    const weighed = await change(sidecar, 'PATCH', `u/peers/${b!.address}`, { weight: 1 + i })
    assert.equal(weighed.peers![0]!.weight, 1 + i)
    reloads.push(sidecar.askReload().then(({ status }) => assert.equal(status, 200)))
  }
  await Promise.all(reloads)
  await load.stop()
  assert.deepEqual(load.failures, [])
  const status = await peersOf(sidecar)
  assert.deepEqual([Object.keys(status).length, status[b!.address]!.weight], [10, 9])
})

test('a thread that comes in place of one that died serves by the changes', async () => {
  await using peers = await backends([{ body: 'x' }, { body: 'x' }])
  const [a, b] = peers.list
  const text = config([`${a!.address} weight=2`, b!.address])
  await using sidecar = await start(text, mortal)
  await change(sidecar, 'PATCH', `u/peers/${a!.address}`, { weight: 1 })
  for (let count = 1; count <= 2; count += 1) {
    sidecar.signal('SIGUSR2')
    await replaced(sidecar, count, 2)
  }
  assert.equal(await spread(sidecar, [a!, b!], 8), '4/4')
})

test('changes end with the program', async () => {
  await using peers = await backends([{ body: 'x' }, { body: 'x' }])
  const [a, b] = peers.list
  const text = config([`${a!.address} weight=2`, b!.address])
  {
    await using sidecar = await start(text)
    await change(sidecar, 'PATCH', `u/peers/${a!.address}`, { weight: 1 })
    const shown = execFileSync(launcher, ['-T', '-q', '-c', sidecar.file], { encoding: 'utf8' })
    assert.match(shown, /weight: 2/)
    assert.doesNotMatch(shown, /changes/)
  }
  await using sidecar = await start(text)
  assert.equal(await spread(sidecar, [a!, b!], 6), '4/2')
})

test('what the guide says to ask for does what it says', async () => {
  await using peers = await backends([{ body: 'x' }, { body: 'x' }])
  const [a, b] = peers.list
  await using sidecar = await start(config([a!.address, b!.address]).replaceAll(/\bu\b/g, 'backend'))
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  const [, script = ''] = /^## Changes while it runs\n.*?^```sh\n(.*?)^```$/ms.exec(readme) ?? []
  const here = script.replaceAll('127.0.0.1:8081', a!.address).replaceAll('127.0.0.1:8082', b!.address)
  const answers: ChangeAnswer[] = []
  for (const [, method = 'GET', path = '', body] of here.matchAll(
    /^ask (?:-X (\w+) )?\$api(\S*)(?: -d '(.*?)')?/gm,
  )) {
    const response = await fetch(`${sidecar.admin}/upstreams/backend${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body }),
    })
    // The admin server answers with an object, whatever the status.
    answers.push((await response.json()) as ChangeAnswer)
  }
  assert.deepEqual(
    answers.map(({ error, changes }) => error ?? changes!.map(({ change }) => change).join()),
    [
      'state',
      'state,weight,max_conns',
      'max_conns',
      'max_conns,added',
      'max_conns,added,removed',
      'max_conns,added,removed',
      '',
    ],
  )
})

test('a token is asked for, and pages of other sites are refused', async () => {
  await using peer = await backend({ body: 'x' })
  await using sidecar = await start(
    config([peer.address], 'admin_token_file /dev/null;').replace('admin_token_file /dev/null;', ''),
  )
  const token = join(sidecar.folder, 'token')
  writeFileSync(token, 'secret\n')
  await sidecar.reload(config([peer.address], 'admin_token_file token;'))
  const path = `u/peers/${peer.address}`
  const given = { authorization: 'Bearer secret' }
  for (const [headers, status] of [
    [{}, 401],
    [{ authorization: 'Bearer wrong' }, 401],
    [{ ...given, origin: 'http://evil.example' }, 403],
    [given, 200],
  ] as const) {
    assert.equal((await change(sidecar, 'PATCH', path, { weight: 2 }, headers)).status, status)
  }
  const unknown = await change(sidecar, 'PATCH', 'u/peers/127.0.0.1:1', { weight: 2 }, given)
  assert.deepEqual(
    [unknown.status, unknown.error],
    [404, `no peer "127.0.0.1:1" in upstream "u"; there are: ${peer.address}`],
  )
})
