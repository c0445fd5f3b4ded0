import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Backends, backend } from '../../support/backend.ts'
import { ask } from '../../support/client.ts'
import { lab, residentBytes, spread } from '../../support/invariants.ts'

const location = 'location / { proxy_pass http://peers; }'

test('eight million points with 49 of 50 servers down are there in seconds, and a reload leaves them alone', async () => {
  await using up = await backend({ body: 'up' })
  const down = Array.from({ length: 49 }, (_, i) => `server 127.0.1.${i}:8080 weight=1000 down;`)
  const began = performance.now()
  await using front = await lab(
    `upstream peers { hash $uri consistent; ${down.join(' ')} server ${up.address} weight=1000; }
     server { listen 127.0.0.1:PORT; ${location} }`,
    [up],
  )
  const started = performance.now() - began
  assert.ok(started < 10_000, `${started} ms to start`)
  const from = performance.now()
  for (let i = 0; i < 100; i++) assert.equal((await ask(front.port, `/key/${i}`)).text, 'up')
  const each = (performance.now() - from) / 100
  assert.ok(each < 20, `${each} ms a request`)

  const before = await residentBytes(front.sidecar.pid)
  for (let i = 0; i < 3; i++) await front.sidecar.reload()
  const more = (await residentBytes(front.sidecar.pid)) - before
  // One ring of that size, with what is needed to make it, is a hundred.
  assert.ok(more < 60 * 2 ** 20, `${Math.round(more / 2 ** 20)} MiB more after three reloads`)
  assert.equal((await ask(front.port, '/key/0')).text, 'up')
  await front.settle(101)
})

test('of large weights too, a server that goes takes its keys alone with it, and brings them back', async () => {
  await using five = new Backends()
  for (const letter of 'ABCDE') await five.add({ body: letter })
  const servers = five.list.map((peer) => `server ${peer.address} weight=100;`)
  const text = (list: readonly string[]) => `http {
    upstream peers { hash $uri consistent; ${list.join(' ')} }
    server { listen 127.0.0.1:PORT; ${location} } }`
  await using front = await lab(
    `upstream peers { hash $uri consistent; ${servers.join(' ')} }
     server { listen 127.0.0.1:PORT; ${location} }`,
    five.list,
  )
  const places = async () => {
    const found: string[] = []
    for (let i = 0; i < 150; i++) found.push((await ask(front.port, `/key/${i}`)).text)
    return found
  }
  const before = await places()
  assert.equal(new Set(before).size, 5, spread(before))
  await front.settle(150)
  await front.sidecar.reload(text(servers.toSpliced(2, 1)))
  const without = await places()
  for (const [i, letter] of without.entries()) {
    if (before[i] === 'C') assert.notEqual(letter, 'C')
    else assert.equal(letter, before[i])
  }
  assert.ok(
    new Set(without.filter((_, i) => before[i] === 'C')).size > 1,
    'its keys are spread over the others',
  )
  await front.sidecar.reload(text(servers))
  assert.deepEqual(await places(), before)
})
