// Sessions that are learnt from what passes, over threads, reloads, and peers that come and go.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, type Backends, backends, type Exchange } from '../../support/backend.ts'
import { ask, dial } from '../../support/client.ts'
import { eventually } from '../../support/invariants.ts'
import { headText } from '../../support/message.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'

/** Answers with its letter, and makes the session that `?new=` asks for. */
const named = (letter: string) => async (exchange: Exchange) => {
  const made = /[?&]new=([^&]*)/.exec(exchange.target)?.[1]
  const headers: Record<string, string> = made === undefined ? {} : { 'Set-Cookie': `id=${made}` }
  if (exchange.target.includes('fail')) await exchange.reply({ status: 503, headers })
  else if (exchange.target.includes('hold')) {
    await exchange.send(headText('HTTP/1.1 200 OK', { 'Content-Length': 9, ...headers }))
    await exchange.send('first')
    await sleep(400)
    exchange.done()
    await exchange.send('last')
  } else await exchange.reply({ body: letter, headers })
}

const three = () => backends([named('a'), named('b'), named('c')])

const sticky = (more = '', zone = 'zone=ids:64k') =>
  `sticky learn ${zone} create=$upstream_cookie_id create=$arg_new lookup=$cookie_id lookup=$arg_id ${more};`

function config(servers: string, line: string, { threads = 1, group = 'u', more = '' } = {}): string {
  return `worker_processes ${threads};
error_log stderr warn;
http {
  access_log off;
  add_header X-Sticky $upstream_sticky_status always;
  upstream ${group} { zone u 64k; ${line} ${servers} }
  ${more}
  proxy_next_upstream error timeout http_503;
  proxy_next_upstream_budget off;
  server { listen 127.0.0.1:PORT; location / { proxy_pass http://${group}; } }
}`
}

const lines = (peers: Backends, ...more: string[]) =>
  peers.list
    .map(({ address }, i) => `server ${address} sid=${'ABC'[i]} max_fails=0 ${more[i] ?? ''};`)
    .join(' ')

async function get({ port }: Sidecar, target: string): Promise<string> {
  const reply = await ask(port, target)
  return `${reply.status === 200 ? reply.text : reply.status} ${reply.header('x-sticky')}`
}

/** Makes sessions, and says which peer each of them is at. */
async function begin(sidecar: Sidecar, ids: readonly string[]): Promise<Map<string, string>> {
  const at = new Map<string, string>()
  for (const id of ids) {
    const [peer, status] = (await get(sidecar, `/?new=${id}`)).split(' ')
    assert.equal(status, 'NEW')
    at.set(id, peer!)
  }
  return at
}

async function allStay(sidecar: Sidecar, at: ReadonlyMap<string, string>): Promise<void> {
  for (const [id, peer] of at) assert.equal(await get(sidecar, `/?id=${id}`), `${peer} HIT`, id)
}

const ids = Array.from({ length: 12 }, (_, i) => `id${i}`)

test('every thread knows what any of them has learnt', async () => {
  await using peers = await three()
  await using sidecar = await start(config(lines(peers), sticky(), { threads: 3 }))
  const at = await begin(sidecar, ids)
  assert.equal(new Set(at.values()).size, 3)
  // A connection of its own for each: another thread may have it.
  await allStay(sidecar, at)
  assert.match(await get(sidecar, '/?id=unknown'), / NEW$/)
  assert.match(await get(sidecar, '/?id=unknown'), / NEW$/)
})

test('sessions outlive reloads, also with another number of places for them, and other words', async () => {
  await using peers = await three()
  await using sidecar = await start(config(lines(peers), sticky(), { threads: 2 }))
  const at = await begin(sidecar, ids)
  await sidecar.reload()
  await allStay(sidecar, at)
  for (const size of ['1m', '32k']) {
    await sidecar.reload(config(lines(peers), sticky('norefresh', `zone=ids:${size}`), { threads: 2 }))
    await allStay(sidecar, at)
  }
  // What others learn while a table of another size takes its place is not lost.
  const client = await dial(sidecar.port)
  const late: string[] = []
  const learning = (async () => {
    for (let i = 0; i < 60; i++) {
      const { text } = await client.ask(`/?new=late${i}`)
      late.push(text)
    }
  })()
  await sidecar.reload(config(lines(peers), sticky('', 'zone=ids:128k'), { threads: 2 }))
  await learning
  client.close()
  for (const [i, peer] of late.entries()) assert.equal(await get(sidecar, `/?id=late${i}`), `${peer} HIT`)
  // A table of another name is another table.
  await sidecar.reload(config(lines(peers), sticky('', 'zone=others:64k'), { threads: 2 }))
  assert.match(await get(sidecar, '/?id=id0'), / NEW$/)
})

test('a table that another group had is refused, and what runs goes on', async () => {
  await using peers = await three()
  await using sidecar = await start(config(lines(peers), sticky()))
  const at = await begin(sidecar, ids.slice(0, 3))
  await sidecar.rewrite(config(lines(peers), sticky(), { group: 'v' }))
  const answer = await sidecar.askReload()
  assert.equal(answer.status, 422)
  const text = 'sticky learn zone "ids" is used in upstream "v" while previously it was used in "u"'
  assert.ok((await answer.text()).includes(text.replaceAll('"', '\\"')))
  await allStay(sidecar, at)
  assert.match(sidecar.stderr, new RegExp(`\\[emerg\\] \\d+#\\d+: ${text} in .*:6`))
})

test('a peer that drains keeps its sessions and gets no new ones; one that is down loses them', async () => {
  await using peers = await three()
  await using sidecar = await start(config(lines(peers), sticky()))
  const at = await begin(sidecar, ids)
  await sidecar.reload(config(lines(peers, 'drain'), sticky()))
  await allStay(sidecar, at)
  const later = await begin(sidecar, ['x', 'y', 'z', 'w'])
  assert.ok(![...later.values()].includes('a'))
  await sidecar.reload(config(lines(peers, 'down'), sticky()))
  for (const [id, peer] of at) {
    const moved = await get(sidecar, `/?id=${id}`)
    assert.match(moved, peer === 'a' ? /^[bc] MISS$/ : /HIT/)
    assert.equal(await get(sidecar, `/?id=${id}`), `${moved[0]} HIT`)
  }
})

test('a session whose peer fails it goes on with the one that did not', async () => {
  const script = (letter: string) => (exchange: Exchange) =>
    named(letter)(sick === letter ? Object.assign(exchange, { target: '/fail' }) : exchange)
  let sick = ''
  await using peers = await backends([script('a'), script('b')])
  await using sidecar = await start(config(lines(peers), sticky()))
  const [[id, peer]] = (await begin(sidecar, ['one'])) as unknown as [[string, string]]
  sick = peer
  const other = peer === 'a' ? 'b' : 'a'
  assert.equal(await get(sidecar, `/?id=${id}`), `${other} HIT, MISS`)
  sick = ''
  assert.equal(await get(sidecar, `/?id=${id}`), `${other} HIT`)
})

test('a session is found at its header where that is asked for, and otherwise at the end', async () => {
  for (const [word, early] of [
    ['header', true],
    ['', false],
  ] as const) {
    await using peers = await three()
    await using sidecar = await start(config(lines(peers), sticky(word)))
    const client = await dial(sidecar.port)
    const [held] = peers.list as [Backend]
    const reply = client.ask('/hold?new=one')
    await eventually('its head has come', () => held.requests.length === 1)
    await sleep(100)
    assert.match(await get(sidecar, '/?id=one'), early ? /^a HIT/ : /NEW/)
    await reply
    client.close()
    assert.equal(await get(sidecar, '/?id=one'), 'a HIT')
  }
})

test('sessions run out after their time without use', async () => {
  await using peers = await three()
  await using sidecar = await start(config(lines(peers), sticky('timeout=600ms')))
  const at = await begin(sidecar, ['one', 'two'])
  for (let i = 0; i < 3; i++) {
    await sleep(300)
    assert.equal(await get(sidecar, '/?id=one'), `${at.get('one')} HIT`)
  }
  assert.match(await get(sidecar, '/?id=two'), / NEW$/)
})

test('more sessions than there is room for drop those left alone longest, and the log says so once', async () => {
  await using peers = await three()
  await using sidecar = await start(config(lines(peers), sticky('', 'zone=ids:32k'), { threads: 2 }))
  const client = await dial(sidecar.port)
  for (let i = 0; i < 700; i++) await client.ask(`/?new=${i}`)
  client.close()
  assert.match(await get(sidecar, '/?id=0'), / NEW$/)
  assert.match(await get(sidecar, '/?id=699'), / HIT$/)
  const said =
    sidecar.stderr.match(/\[warn\] [\d#]+: sticky learn zone "ids" of upstream "u" is full: .*/g) ?? []
  assert.equal(said.length, 1)
})

test('ids of eight kilobytes and of any bytes are as good as others', async () => {
  await using peers = await three()
  await using sidecar = await start(config(lines(peers), sticky()))
  for (const id of ['x'.repeat(7000), `\x80\xff"\\ ${'y'.repeat(100)}`, '__proto__']) {
    const made = await ask(sidecar.port, '/', { headers: { Cookie: `id=${id}` } })
    assert.match(made.header('x-sticky')!, /NEW/)
  }
  await begin(sidecar, ['z'.repeat(7000), '__proto__', '%00%ff'])
  assert.match(await get(sidecar, `/?id=${'z'.repeat(7000)}`), / HIT$/)
  assert.match(await get(sidecar, `/?id=${'z'.repeat(6999)}`), / NEW$/)
  assert.match(await get(sidecar, '/?id=__proto__'), / HIT$/)
})
