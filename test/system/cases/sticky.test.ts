// Sessions that stay with a peer by a cookie or by a part of the request.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import { type Backends, backends, type Exchange } from '../../support/backend.ts'
import { ask, type Reply, webSocket } from '../../support/client.ts'
import { freePort } from '../../support/free-port.ts'
import { type Lab, lab } from '../../support/invariants.ts'

const md5 = (text: string) => createHash('md5').update(text).digest('hex')

let peers: Backends
let front: Lab
let dead: string
before(async () => {
  const named = (letter: string) => (exchange: Exchange) =>
    exchange.target.includes('fail')
      ? exchange.reply({ status: 503, body: 'no' })
      : exchange.target.includes('upgrade')
        ? exchange.upgrade()
        : exchange.reply({
            body: letter,
            headers: exchange.target.includes('own') ? { 'Set-Cookie': 'own=1' } : {},
          })
  peers = await backends([named('a'), named('b'), named('c')])
  dead = `127.0.0.1:${await freePort()}`
  const [a, b, c] = peers.list
  const server = (peer: { address: string }, more: string) => `server ${peer.address} ${more};`
  front = await lab(
    `upstream cookie { zone cookie 64k; least_conn; sticky cookie srv httponly domain=$arg_d samesite=lax;
       ${server(a!, 'sid=A max_fails=0')} ${server(b!, 'sid=B max_fails=0')} ${server(c!, 'max_fails=0 backup')} }
     upstream secret { zone secret 64k; sticky cookie srv path=/app expires=1h; sticky_secret $host; ${server(a!, 'sid=A')} ${server(b!, '')} }
     upstream route { zone route 64k; sticky route $arg_r $cookie_r; ${server(a!, 'sid=A')} ${server(b!, 'sid=B')} }
     upstream strict { zone strict 64k; sticky route $arg_r; sticky_strict on; ${server(a!, 'sid=A')} ${server(b!, 'sid=B down')} }
     upstream drain { zone drain 64k; sticky route $arg_r; ${server(a!, 'sid=A drain')} ${server(b!, 'sid=B')} }
     upstream broken { zone broken 64k; sticky cookie srv; server ${dead} sid=D max_fails=0; server ${dead} sid=E max_fails=0; }
     upstream nobody { zone nobody 64k; sticky cookie srv; ${server(a!, 'down')} }
     add_header X-Sticky $upstream_sticky_status always;
     add_header X-Pick $upstream_pick always;
     proxy_next_upstream error timeout http_503;
     proxy_next_upstream_budget off;
     server { listen 127.0.0.1:PORT;
       location /cookie { proxy_pass http://cookie; }
       location /secret { proxy_pass http://secret; }
       location /route { proxy_pass http://route; }
       location /strict { proxy_pass http://strict; }
       location /drain { proxy_pass http://drain; }
       location /broken { proxy_pass http://broken; }
       location /nobody { proxy_pass http://nobody; }
       location /hidden { proxy_pass http://cookie; proxy_hide_header Set-Cookie; }
       location /page { proxy_pass http://broken; error_page 502 /sorry; }
       location = /sorry { return 200 sorry; }
     }`,
    peers.list,
  )
})
after(async () => {
  await front?.[Symbol.asyncDispose]()
  await peers?.[Symbol.asyncDispose]()
})

function get(target: string, cookie?: string, more: Record<string, string> = {}): Promise<Reply> {
  return ask(front.port, target, {
    headers: { ...(cookie === undefined ? {} : { Cookie: cookie }), ...more },
  })
}

const told = (reply: Reply) =>
  `${reply.status} ${reply.text} ${reply.header('x-sticky')} ${reply.header('x-pick')}`
const cookies = (reply: Reply) => reply.head.all('set-cookie')

test('a cookie names the peer of each answer, and whoever has it goes there', async () => {
  const first = await get('/cookie')
  const peer = first.text
  assert.deepEqual(cookies(first), [`srv=${peer.toUpperCase()}; httponly; samesite=lax; path=/`])
  for (let i = 0; i < 3; i++) {
    const again = await get('/cookie', 'srv=B; other=1')
    assert.equal(told(again), '200 b HIT sticky')
    assert.deepEqual(cookies(again), ['srv=B; httponly; samesite=lax; path=/'])
  }
  assert.deepEqual(cookies(await get('/cookie?d=example.com', 'srv=A')), [
    'srv=A; httponly; domain=example.com; samesite=lax; path=/',
  ])
})

test('a backup without an id of its own has the hash of its address, and is used while primaries live', async () => {
  const id = md5(peers.list[2]!.address)
  const reply = await get('/cookie', `srv=${id}`)
  assert.equal(told(reply), '200 c HIT sticky')
  assert.deepEqual(cookies(reply), [`srv=${id}; httponly; samesite=lax; path=/`])
})

test('with a secret the cookie has a hash of both, and a name from elsewhere is worth nothing', async () => {
  const reply = await get('/secret', `srv=${md5(`Atest`)}`)
  assert.match(told(reply), /^200 a HIT/)
  const [cookie] = cookies(reply)
  assert.match(
    cookie!,
    new RegExp(
      `^srv=${md5('Atest')}; expires=\\w{3}, \\d\\d-\\w{3}-\\d\\d [\\d:]{8} GMT; max-age=3600; path=/app$`,
    ),
  )
  const expires = Date.parse(/expires=([^;]+)/.exec(cookie!)![1]!)
  assert.ok(Math.abs(expires - Date.now() - 3_600_000) < 60_000)
  assert.match(told(await get('/secret', 'srv=A')), /MISS/)
  assert.match(told(await get('/secret', `srv=${md5('Atest')}`, { Host: 'other' })), /MISS/)
  assert.match(told(await get('/secret', `srv=${md5(`${md5(peers.list[1]!.address)}test`)}`)), /^200 b HIT/)
})

test('where the peer fails the request the next one is found without it, and the cookie names that one', async () => {
  const reply = await get('/cookie?fail', 'srv=B')
  assert.equal(reply.status, 503)
  assert.equal(reply.header('x-sticky'), 'HIT, MISS, MISS')
  assert.deepEqual(cookies(reply), [`srv=${md5(peers.list[2]!.address)}; httponly; samesite=lax; path=/`])
})

test('a failure page names the peer that was asked last, and none where nobody was asked', async () => {
  const failed = await get('/broken', 'srv=E')
  assert.equal(failed.status, 502)
  assert.equal(failed.header('x-sticky'), 'HIT, MISS')
  assert.deepEqual(cookies(failed), ['srv=D; path=/'])
  const nobody = await get('/nobody', 'srv=A')
  assert.deepEqual([nobody.status, nobody.header('x-sticky'), cookies(nobody)], [502, 'MISS', []])
  const page = await get('/page', 'srv=E')
  assert.deepEqual([page.status, page.text, cookies(page)], [502, 'sorry', ['srv=D; path=/']])
})

test('an answer that switches protocols names the peer, too', async () => {
  const { client, status, head } = await webSocket(front.port, '/cookie/upgrade')
  assert.equal(status, 101)
  assert.match(head.header('set-cookie')!, /^srv=[AB]; httponly; samesite=lax; path=\/$/)
  client.close()
})

test('the cookie stands beside those of the peer, whatever of theirs is hidden', async () => {
  assert.deepEqual(cookies(await get('/cookie?own', 'srv=A')).sort(), [
    'own=1',
    'srv=A; httponly; samesite=lax; path=/',
  ])
  assert.deepEqual(cookies(await get('/hidden?own', 'srv=A')), ['srv=A; httponly; samesite=lax; path=/'])
})

test('what a client puts into an attribute ends no line', async () => {
  const reply = await get('/cookie?d=x%0d%0aEvil:%201', 'srv=A')
  assert.equal(reply.header('evil'), undefined)
  assert.deepEqual(cookies(reply), ['srv=A; httponly; domain=x%0d%0aEvil:%201; samesite=lax; path=/'])
})

test('cookies that are long, strange or doubled are no trouble', async () => {
  assert.match(told(await get('/cookie', `srv=${'x'.repeat(7900)}`)), /^200 [ab] MISS/)
  assert.match(told(await get('/cookie', 'srv=\xff\x80"\\; b')), /^200 [ab] MISS/)
  assert.match(told(await get('/cookie', 'srv=B; srv=A')), /^200 b HIT/)
  assert.match(told(await get('/cookie', 'srv=__proto__')), /^200 [ab] MISS/)
  assert.match(told(await get('/cookie', ';;==;srv;srv=B')), /^200 b HIT/)
  const two = await ask(front.port, '/cookie', { headers: { Cookie: ['x=1', 'srv=B'] } })
  assert.match(told(two), /^200 b HIT/)
})

test('a route is read from the first variable that has one, and writes no cookie', async () => {
  const reply = await get('/route?r=B', 'r=A')
  assert.deepEqual([told(reply), cookies(reply)], ['200 b HIT sticky', []])
  assert.equal(told(await get('/route', 'r=A')), '200 a HIT sticky')
  assert.match(told(await get('/route')), / NEW round_robin/)
  assert.match(told(await get('/route?r=b')), / MISS round_robin/)
})

test('a strict session is refused where its peer cannot take it', async () => {
  assert.equal(told(await get('/strict?r=A')), '200 a HIT sticky')
  const refused = await get('/strict?r=B')
  assert.deepEqual([refused.status, refused.header('x-sticky')], [502, 'MISS'])
  assert.equal((await get('/strict?r=unknown')).status, 502)
  assert.equal(told(await get('/strict')), '200 a NEW round_robin')
  assert.match(
    front.sidecar.stderr,
    /no live upstreams, the peer of its session is not ready while connecting/,
  )
})

test('a peer that drains keeps the sessions that are bound to it and gets no others', async () => {
  assert.equal(told(await get('/drain?r=A')), '200 a HIT sticky')
  for (const target of ['/drain', '/drain?r=X', '/drain']) assert.match(told(await get(target)), /^200 b /)
})
