import assert from 'node:assert/strict'
import {
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend, backends, echo } from '../support/backend.ts'
import { type Client, dial, webSocket } from '../support/client.ts'
import { nothingInFlight, peersOf } from '../support/discovered.ts'
import { freePort } from '../support/free-port.ts'
import { eventually } from '../support/invariants.ts'
import { start } from '../support/sidecar.ts'

function config(servers: readonly string[], more = ''): string {
  return `
http {
  access_log off;
  upstream u {
    zone u 64k;
    least_time header;
    ${servers.map((server) => `server ${server};`).join(' ')}
  }
  server {
    listen 127.0.0.1:PORT;
    status_zone front;
    location / { proxy_pass http://u; proxy_next_upstream error timeout http_503; }
    ${more}
  }
}`
}

test('under load, reload after reload: no error, and nothing learnt is lost', async () => {
  await using fast = await backend({ after: 2, body: 'x' })
  await using slow = await backend({ after: 20, body: 'x' })
  await using failing = await backend({ status: 503, body: 'no' })
  const text = (extra: string) =>
    config([
      `${fast.address} max_fails=3`,
      `${slow.address} max_fails=3`,
      `${failing.address} max_fails=2 fail_timeout=60s`,
      ...(extra === '' ? [] : [extra]),
    ])
  await using sidecar = await start(text(''))
  let good = 0
  const bad: string[] = []
  let over = false
  const ask = async () => {
    const client = await dial(sidecar.port)
    while (!over) {
      try {
        const reply = await client.ask('/')
        if (reply.status === 200 && reply.complete) good += 1
        else bad.push(String(reply.status))
      } catch (error) {
        bad.push(String(error))
        break
      }
    }
    client.close()
  }
  const clients = Array.from({ length: 8 }, ask)
  await eventually('the failing peer is set aside', async () => {
    const peers = await peersOf(sidecar)
    return peers[failing.address]!.state === 'unavailable'
  })

  const before = await peersOf(sidecar)
  const generation = await sidecar.generation()
  let last = before
  let requests = 0
  const end = performance.now() + 3000
  let round = 0
  while (performance.now() < end) {
    // Every other configuration has one more peer, so groups do change.
    await sidecar.rewrite(
      text(round % 2 === 0 ? `${fast.address.replace('127.0.0.1', '127.0.0.2')} down` : ''),
    )
    sidecar.signal('SIGHUP')
    round += 1
    await sleep(100)
    const now = await peersOf(sidecar)
    for (const name of [fast.address, slow.address, failing.address]) {
      assert.ok(now[name]!.selected.total >= last[name]!.selected.total, `selected of ${name} went back`)
      assert.ok(now[name]!.health.fails >= last[name]!.health.fails, `fails of ${name} went back`)
      assert.ok(now[name]!.health.header_time > 0 || name === failing.address, `average of ${name} is lost`)
    }
    assert.equal(now[failing.address]!.state, 'unavailable')
    const zone = await sidecar.json<{ total: number }>('/status/http/server_zones/front/requests/')
    assert.ok(zone.total >= requests, 'requests of the zone went back')
    requests = zone.total
    last = now
  }
  over = true
  await Promise.all(clients)
  assert.deepEqual(bad, [])
  assert.ok(good > 200, `only ${good} requests`)
  assert.ok(last[fast.address]!.selected.total > last[slow.address]!.selected.total)
  assert.equal(failing.requests.length, before[failing.address]!.selected.total, 'nobody asked it again')
  await eventually('all reloads are done', async () => (await sidecar.generation()) >= generation + round - 1)
  await nothingInFlight(sidecar)
})

test('a reload raises the generation by one, and connections of clients and peers stay', async () => {
  await using a = await backend({ body: 'x' })
  await using sidecar = await start(config([a.address]))
  const client = await dial(sidecar.port)
  await client.ask('/')
  assert.equal(await sidecar.generation(), 1)
  await sidecar.reload()
  assert.equal(await sidecar.generation(), 2)
  assert.equal((await client.ask('/')).status, 200)
  assert.equal(a.connections, 1)
  client.close()
})

test('what is no request is counted after a reload as it was before', async () => {
  await using a = await backend({ body: 'x' })
  await using sidecar = await start(config([a.address]))
  const refused = async () => {
    const client = await dial(sidecar.port)
    await client.write('no request\r\n\r\n')
    assert.equal((await client.reply()).status, 400)
    client.close()
    return sidecar.json<{ total: number }>('/status/http/server_zones/front/requests/')
  }
  assert.equal((await refused()).total, 1)
  await sidecar.reload()
  assert.equal((await refused()).total, 2)
  await sidecar.reload()
  assert.equal((await refused()).total, 3)
})

test('listeners open and close with the configuration, and those in both stay open', async () => {
  await using a = await backend({ body: 'x' })
  const second = await freePort()
  await using sidecar = await start(config([a.address]))
  const kept = await dial(sidecar.port)
  await kept.ask('/')
  const two = config([a.address]).replace(
    'listen 127.0.0.1:PORT;',
    `listen 127.0.0.1:PORT; listen 127.0.0.1:${second};`,
  )
  await sidecar.reload(two)
  const other = await dial(second)
  assert.equal((await other.ask('/')).status, 200)
  await sidecar.reload(config([a.address]))
  await assert.rejects(dial(second))
  // A connection of a listener that is gone goes on.
  assert.equal((await other.ask('/')).status, 200)
  assert.equal((await kept.ask('/')).status, 200)
  other.close()
  kept.close()
})

test('a peer that leaves finishes what it has begun, and is gone after its last request', async () => {
  await using staying = await backend({ body: 'x' })
  await using leaving = await backend({ after: 600, body: 'late' })
  await using sidecar = await start(config([leaving.address]))
  const client = await dial(sidecar.port)
  const reply = client.ask('/')
  await eventually('in progress', () => leaving.busy === 1)
  await sidecar.reload(config([staying.address]))
  assert.equal(await (await fetch(sidecar.url)).text(), 'x')
  assert.equal((await reply).text, 'late')
  const metrics = async () => (await fetch(`${sidecar.admin}/metrics`)).text()
  await eventually('no series of the one that left', async () => !(await metrics()).includes(leaving.address))
  assert.ok((await metrics()).includes(staying.address))
  client.close()
})

test('a tunnel outlives reloads that do not touch its peer', async () => {
  await using a = await backend(async (exchange) => {
    if (exchange.target !== '/ws') return exchange.reply({ body: 'x' })
    await exchange.upgrade()
    await exchange.gone
  })
  await using b = await backend({ body: 'y' })
  await using sidecar = await start(config([a.address]))
  const { client, status } = await webSocket(sidecar.port, '/ws')
  assert.equal(status, 101)
  await sidecar.reload(config([a.address, b.address]))
  await sidecar.reload(config([a.address]))
  await sleep(100)
  assert.equal(client.inbox.ended, undefined)
  client.close()
})

test('a tunnel to a peer that a reload takes away has drain_timeout to end, then a FIN on both sides; others stay', async () => {
  await using three = await backends([echo, echo, echo])
  const [a, b, c] = three.list as [Backend, Backend, Backend]
  const text = (one: Backend, more = '') =>
    `drain_timeout 700ms; http { access_log off;
       upstream one { server ${one.address}; } upstream other { server ${c.address}; } ${more}
       server { listen 127.0.0.1:PORT;
         location /one { proxy_pass http://one; } location /other { proxy_pass http://other; } } }`
  await using sidecar = await start(text(a))
  const sees = async ({ client }: { client: Client }, said: string) => {
    await client.write(said)
    return (await client.inbox.take(said.length))?.toString()
  }
  const leaves = await webSocket(sidecar.port, '/one')
  const stays = await webSocket(sidecar.port, '/other')
  // Another group is nobody's business.
  await sidecar.reload(text(a, `upstream third { server ${b.address}; }`))
  assert.equal(await sees(leaves, 'first'), 'first')
  await sidecar.reload(text(b))
  const reloaded = performance.now()
  const anew = await webSocket(sidecar.port, '/one')
  assert.equal(b.requests.length, 1)
  assert.equal(await sees(leaves, 'second'), 'second')
  // The reload of a kept peer does not begin it anew.
  await sidecar.reload(text(b, `upstream third { server ${a.address}; }`))
  assert.equal(await leaves.client.closed, 'fin')
  const after = performance.now() - reloaded
  assert.ok(after > 500 && after < 3000, `${after} ms`)
  assert.equal(leaves.client.inbox.unread.length, 0, 'nothing was put into the tunnel')
  assert.equal(await a.requests[0]!.gone, 'fin')
  await sleep(200)
  for (const one of [stays, anew]) {
    assert.equal(await sees(one, 'third'), 'third')
    one.client.close()
  }
  leaves.client.close()
  await eventually('nothing is in progress', () => c.busy === 0 && b.busy === 0)
})

const mistakes: [string, (good: string) => string, RegExp][] = [
  [
    'an unknown method',
    (text) => text.replace('least_time header;', 'most_time;'),
    /unknown directive "most_time" in .*evenkeel\.conf:6/,
  ],
  [
    'a duplicate group',
    (text) => text.replace('http {', 'http { upstream U { server 127.0.0.1:1; }'),
    /duplicate upstream "[uU]" in .*evenkeel\.conf:\d/,
  ],
  [
    'a weight with least_time',
    (text) => text.replace('max_fails=7', 'weight=5'),
    /balancing method does not support parameter "weight=5" in .*evenkeel\.conf:7/,
  ],
  [
    'a host that nobody knows',
    (text) => text.replace('proxy_pass http://u', 'proxy_pass http://nobody.invalid'),
    /host not found in upstream "nobody\.invalid"/,
  ],
]
for (const [what, spoil, message] of mistakes) {
  test(`${what} is refused at reload with its place, and the old configuration goes on`, async () => {
    await using a = await backend({ body: 'x' })
    const good = config([`${a.address} max_fails=7`])
    await using sidecar = await start(good)
    await sidecar.rewrite(spoil(good))
    sidecar.signal('SIGHUP')
    const [line] = await sidecar.logged(/.*\[emerg\].*/)
    assert.match(line, message)
    assert.equal((await fetch(sidecar.url)).status, 200)
    assert.equal(await sidecar.generation(), 1)
    const metrics = async () => (await fetch(`${sidecar.admin}/metrics`)).text()
    assert.match(await metrics(), /^evenkeel_config_last_reload_successful 0$/m)
    const asked = await sidecar.askReload()
    assert.equal(asked.status, 422)
    assert.match(
      JSON.parse(await asked.text()).error,
      new RegExp(message.source.replace(/ in \.\*evenkeel/, '.*evenkeel')),
    )
    await sidecar.reload(good)
    assert.match(await metrics(), /^evenkeel_config_last_reload_successful 1$/m)
  })
}

test('a reload that asks for a port that is taken changes nothing', async () => {
  await using a = await backend({ body: 'x' })
  await using other = await backend({ body: 'y' })
  await using sidecar = await start(config([a.address]))
  await sidecar.rewrite(config([other.address]).replace(':PORT;', `:PORT; listen ${other.address};`))
  sidecar.signal('SIGHUP')
  await sidecar.logged(/\[emerg\] .*bind\(\) to 127\.0\.0\.1:\d+ failed \(98: Address already in use\)/)
  assert.equal(await (await fetch(sidecar.url)).text(), 'x')
  assert.equal(await sidecar.generation(), 1)
})

test('POST /reload reloads and says the generation', async () => {
  await using a = await backend({ body: 'x' })
  await using sidecar = await start(config([a.address]))
  assert.deepEqual(await (await sidecar.askReload()).json(), { ok: true, generation: 2 })
  // Many at once: each is answered, and those that share a run share its generation.
  const answers = await Promise.all(Array.from({ length: 10 }, () => sidecar.askReload()))
  for (const answer of answers) assert.equal(answer.status, 200)
  const generation = await sidecar.generation()
  assert.ok(generation >= 3 && generation <= 12)
})

test('config_watch reloads when a mounted ConfigMap swaps its folder', async () => {
  await using a = await backend({ body: 'a' })
  await using b = await backend({ body: 'b' })
  await using sidecar = await start(`config_watch on;${config([a.address])}`)
  const mount = (name: string, text: string) => {
    mkdirSync(join(sidecar.folder, name))
    writeFileSync(join(sidecar.folder, name, 'evenkeel.conf'), text)
    symlinkSync(name, join(sidecar.folder, '..data_tmp'))
    renameSync(join(sidecar.folder, '..data_tmp'), join(sidecar.folder, '..data'))
  }
  const text = (peer: Backend) =>
    `config_watch on; admin 127.0.0.1:${sidecar.ports['ADMIN']};${config([peer.address]).replace(/PORT/g, String(sidecar.port))}`
  mount('v1', text(b))
  unlinkSync(sidecar.file)
  symlinkSync('..data/evenkeel.conf', sidecar.file)
  await eventually('the new file is in force', async () => (await (await fetch(sidecar.url)).text()) === 'b')
  mount('v2', text(a))
  await eventually('the swapped one is', async () => (await (await fetch(sidecar.url)).text()) === 'a')
})

test('the admin server follows the configuration', async () => {
  await using a = await backend({ body: 'x' })
  const other = await freePort()
  const second = `http://127.0.0.1:${other}`
  const text = (lines: string) => `${lines}\n${config([a.address])}`
  await using sidecar = await start(text('admin 127.0.0.1:ADMIN;'))
  const refused = (url: string) =>
    fetch(url).then(
      () => false,
      () => true,
    )
  assert.ok(await refused(`${second}/readyz`))
  await sidecar.reload(text(`admin 127.0.0.1:ADMIN; admin 127.0.0.1:${other};`))
  assert.equal((await fetch(`${second}/config`)).status, 200)
  await sidecar.reload(text(`admin 127.0.0.1:ADMIN; admin 127.0.0.1:${other} readonly;`))
  await eventually('readonly', async () => {
    const response = await fetch(`${second}/config`).catch(() => undefined)
    return response?.status === 404
  })
  assert.equal((await fetch(`${second}/readyz`)).status, 200)
  // An address that is taken changes nothing.
  await sidecar.rewrite(text(`admin 127.0.0.1:ADMIN; admin ${a.address};`))
  sidecar.signal('SIGHUP')
  await sidecar.logged(/\[emerg\] .*bind\(\) to 127\.0\.0\.1:\d+ failed \(98: Address already in use\)/)
  assert.equal((await fetch(`${second}/readyz`)).status, 200)
  await sidecar.reload(text('admin 127.0.0.1:ADMIN;'))
  await eventually('closed', () => refused(`${second}/readyz`))
})

test('a token is read at reload, and one that cannot be read changes nothing', async () => {
  await using a = await backend({ body: 'x' })
  const text = (line: string) => `admin 127.0.0.1:ADMIN; ${line}${config([a.address])}`
  await using sidecar = await start(text(''))
  const ask = (token: string) => sidecar.askReload({ Authorization: `Bearer ${token}` })
  await sidecar.rewrite(text('admin_token_file token;'))
  sidecar.signal('SIGHUP')
  await sidecar.logged(/\[emerg\] .*open\(\) ".*token" failed \(2: No such file or directory\) in .+:1$/m)
  writeFileSync(join(sidecar.folder, 'token'), 'open-sesame\n')
  await sidecar.reload()
  assert.equal((await ask('wrong')).status, 401)
  assert.equal((await ask('open-sesame')).status, 200)
})

test('a log that the configuration names no more is closed', async () => {
  await using a = await backend({ body: 'x' })
  // With more threads each has it open.
  const text = (log: string) =>
    `worker_processes 1; ${config([a.address]).replace('access_log off;', `access_log ${log}.log;`)}`
  await using sidecar = await start(text('one'))
  const open = () =>
    readdirSync(`/proc/${sidecar.pid}/fd`)
      .map((fd) => readlinkSync(`/proc/${sidecar.pid}/fd/${fd}`))
      .filter((path) => path.endsWith('.log'))
      .map((path) => basename(path))
  await (await fetch(sidecar.url)).text()
  assert.deepEqual(open(), ['one.log'])
  await sidecar.reload(text('two'))
  await (await fetch(sidecar.url)).text()
  await eventually('the other one alone is open', () => open().join() === 'two.log')
})
