// Sessions that are learnt while requests of theirs are in progress and peers come and go.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backends, type Exchange } from '../../support/backend.ts'
import { change } from '../../support/changing.ts'
import { ask } from '../../support/client.ts'
import { nothingInFlight } from '../../support/discovered.ts'
import { start } from '../../support/sidecar.ts'
import { until } from '../../support/until.ts'

for (const threads of [1, 2]) {
  test(`with ${threads} threads, a session whose peer goes stays where it went first, though all answers say its id again`, async () => {
    const held = ['a', 'b', 'c'].map(() => Promise.withResolvers<void>())
    const named = (i: number) => async (x: Exchange) => {
      if (x.target === '/slow') await held[i]!.promise
      await x.reply({ body: `${i}`, headers: { 'Set-Cookie': 'id=S' } })
    }
    await using peers = await backends(held.map((_, i) => named(i)))
    const servers = peers.list.map(({ address }) => `server ${address} max_fails=0;`).join(' ')
    await using sidecar = await start(`
      worker_processes ${threads};
      http {
        access_log off;
        upstream u { zone u 64k; sticky learn zone=ids:64k create=$upstream_cookie_id lookup=$cookie_id; ${servers} }
        add_header X-Sticky $upstream_sticky_status;
        server { listen 127.0.0.1:PORT; location / { proxy_pass http://u; } }
      }`)
    const asked = (target = '/') => ask(sidecar.port, target, { headers: { Cookie: 'id=S' } })
    const get = async (target?: string) => Number((await asked(target)).text)
    const first = await get()
    const gone = peers.list[first]!
    await nothingInFlight(sidecar)
    const before = [get('/slow'), get('/slow')]
    await until(() => gone.busy === 2)
    assert.equal((await change(sidecar, 'PATCH', `u/peers/${gone.address}`, { state: 'down' })).status, 200)
    const others = [0, 1, 2].filter((i) => i !== first)
    const slow = Array.from({ length: 8 }, () => get('/slow'))
    await until(() => peers.list.reduce((sum, { busy }) => sum + busy, 0) === 10)
    assert.ok(others.every((i) => peers.list[i]!.busy > 0))
    let second = first
    // A thread learns of an answer a moment after it has given it.
    await until(async () => {
      const reply = await asked()
      second = Number(reply.text)
      return reply.header('x-sticky') === 'HIT'
    })
    assert.notEqual(second, first)
    await change(sidecar, 'PATCH', `u/peers/${gone.address}`, { state: 'up' })
    // Those that went elsewhere come to their end one peer after the other, the one where the session is now not last.
    for (const i of [second, ...others.filter((i) => i !== second), first]) {
      held[i]!.resolve()
      await until(() => peers.list[i]!.busy === 0)
    }
    await Promise.all([...before, ...slow])
    await nothingInFlight(sidecar)
    for (let i = 0; i < 6; i++) assert.equal(await get(), second)
  })
}
