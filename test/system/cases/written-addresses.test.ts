// A `proxy_pass` with a variable reaches the addresses that the configuration itself writes down for that variable.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Backend, backend } from '../../support/backend.ts'
import { type Client, dial } from '../../support/client.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { echoPeer, type TcpPeer } from '../../support/tcp-peer.ts'

let a: Backend
let b: Backend
let echo: TcpPeer
let sidecar: Sidecar
let client: Client

before(async () => {
  a = await backend((exchange) => exchange.reply({ body: `a ${exchange.target}` }))
  b = await backend((exchange) => exchange.reply({ body: `b ${exchange.target}` }))
  echo = await echoPeer()
  sidecar = await start(`
    stream {
      map $server_port $where { PORT2 ${echo.address}; default nowhere.example:80; }
      server { listen 127.0.0.1:PORT2; proxy_pass $where; }
      server { listen 127.0.0.1:PORT3; proxy_pass $where; }
    }
    http {
      map $arg_to $peer { a ${a.address}; b 127.0.0.1; name nowhere.example:80; default $arg_to; }
      map $arg_to $url { a http://${a.address}/mapped; }
      upstream one { server ${b.address}; }
      server {
        listen 127.0.0.1:PORT;
        location /map { proxy_pass http://$peer; }
        location /port { proxy_pass http://$peer:${b.port}; }
        location /url { proxy_pass $url; }
        location /set { set $target ${b.address}; proxy_pass http://$target$request_uri; }
        location /if { if ($arg_to) { set $chosen ${a.address}; } proxy_pass http://$chosen; }
      }
    }`)
  client = await dial(sidecar.port)
})

after(async () => {
  client?.close()
  await sidecar?.[Symbol.asyncDispose]()
  await Promise.all([a, b, echo].map((each) => each?.[Symbol.asyncDispose]()))
})

for (const [target, text] of [
  ['/map?to=a', 'a /map?to=a'],
  ['/port?to=b', 'b /port?to=b'],
  ['/url?to=a', 'a /mapped'],
  ['/set', 'b /set'],
  ['/if?to=x', 'a /if?to=x'],
  ['/map?to=one', 'b /map?to=one'],
] as const) {
  test(`${target} goes to what is written`, async () => {
    assert.equal((await client.ask(target)).text, text)
  })
}

test('a name that would have to be looked up is refused where there is nobody to ask', async () => {
  assert.equal((await client.ask('/map?to=name')).status, 502)
  await sidecar.logged(/\[error\].* no resolver defined to resolve nowhere\.example,/)
})

test('each is a group of its own, and tells of its peer', async () => {
  assert.equal((await client.ask('/map?to=a')).status, 200)
  const groups = await sidecar.json<Record<string, unknown>>('/status/http/upstreams/')
  assert.deepEqual(
    Object.keys(groups).toSorted(),
    [a.address, b.address, `127.0.0.1:${b.port}`, '127.0.0.1', 'one']
      .filter((name, i, all) => all.indexOf(name) === i)
      .toSorted(),
  )
})

test('sessions go to mapped addresses too', async () => {
  const session = await dial(sidecar.ports['PORT2']!)
  await session.write('hello')
  assert.equal(String(await session.inbox.take(5)), 'hello')
  session.end()
  await session.closed
  session.close()
  const refused = await dial(sidecar.ports['PORT3']!)
  await refused.closed
  refused.close()
})
