import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { type Backend, backend } from '../../support/backend.ts'
import { exchange } from '../../support/client.ts'
import { type Lab, lab } from '../../support/invariants.ts'
import { start } from '../../support/sidecar.ts'

/* A line break that comes by way of a variable or of the environment never begins another field, on either side. */

let peer: Backend
let front: Lab

/** Takes what follows the first folder of a path, decoded, line breaks and all. */
const rest = '([^?]*)$'

before(async () => {
  peer = await backend((x) =>
    x.reply({ headers: { Location: 'http://inner/a', Refresh: '1; url=http://inner/a' } }),
  )
  front = await lab(
    `upstream u { server ${peer.address}; }
     map $uri $mapped { "~^/map/${rest}" $1; }
     server { listen 127.0.0.1:PORT; merge_slashes off;
       proxy_http_version 1.1;
       location / { proxy_pass http://u; }
       location /arg { proxy_pass http://u; proxy_set_header X-A "$arg_a $cookie_a $http_x_a $args"; }
       location ~ ^/set/${rest} { proxy_pass http://u; proxy_set_header X-A $1; }
       location /uri { proxy_pass http://u; proxy_set_header X-A $uri; }
       location /map { proxy_pass http://u; proxy_set_header X-A $mapped; }
       location ~ ^/var/${rest} { set $v $1; proxy_pass http://u; proxy_set_header X-A "a $v"; }
       location ~ ^/host/${rest} { proxy_pass http://u; proxy_set_header Host $1; }
       location ~ ^/connection/${rest} { proxy_pass http://u; proxy_set_header Connection $1; }
       location ~ ^/upgrade/${rest} { proxy_pass http://u; proxy_set_header Upgrade $1; proxy_set_header Connection upgrade; }
       location ~ ^/method/${rest} { proxy_pass http://u; proxy_method $1; }
       location ~ ^/pass/${rest} { proxy_pass http://u/$1; }
       location /rewrite/ { rewrite ^/rewrite/${rest} /to/$1 break; proxy_pass http://u; }
       location /query/ { rewrite ^/query/${rest} /to?q=$1 break; proxy_pass http://u; }
       location /uri-of/ { proxy_pass http://u/to/; }
       location ~ ^/add/${rest} { add_header X-A $1; return 200 ok; }
       location ~ ^/add-passed/${rest} { add_header X-A $1; proxy_pass http://u; }
       location ~ ^/return/${rest} { return 302 /$1; }
       location ~ ^/return-url/${rest} { return 302 http://h/$1; }
       location /redirect/ { rewrite ^/redirect/${rest} http://h/$1 redirect; }
       location ~ ^/location/${rest} { proxy_redirect http://inner/ http://h/$1/; proxy_pass http://u; }
       location ~ ^/error/${rest} { error_page 403 =302 http://h/$1; return 403; }
     }`,
    [peer],
  )
})

beforeEach(() => front.begin())

after(async () => {
  await front.sidecar.stop()
  await peer.stop()
})

/** What either side has seen of a request: never a field that the other has not sent. */
async function seen(target: string, headers = ''): Promise<{ status: number; peer: number }> {
  const before = peer.requests.length
  const said = await exchange(
    front.port,
    `GET ${target} HTTP/1.1\r\nHost: x\r\n${headers}Connection: close\r\n\r\n`,
  )
  const asked = peer.requests.slice(before)
  const [head = ''] = said.split('\r\n\r\n')
  for (const lines of [head.split('\r\n'), ...asked.map((x) => x.head.names.map((name) => `${name}: `))]) {
    assert.deepEqual(
      lines.filter((line) => /^x-evil/i.test(line)),
      [],
      target,
    )
  }
  assert.doesNotMatch(head.replaceAll('\r\n', ''), /[\r\n\0]/, target)
  for (const one of asked) {
    assert.match(one.head.start, /^GET \S+ HTTP\/1\.1$/, target)
    assert.equal(one.head.all('host').length, 1, target)
  }
  await front.settle(1)
  return { status: Number(said.slice(9, 12)), peer: asked.length }
}

const breaks = ['%0d%0a', '%0a', '%0d']

for (const place of ['set', 'uri', 'map', 'host', 'connection', 'upgrade', 'method']) {
  test(`a line break that a variable holds is refused in what a peer is told: ${place}`, async () => {
    for (const one of breaks) {
      assert.deepEqual(await seen(`/${place}/GET${one}X-Evil:1`), { status: 400, peer: 0 }, one)
    }
  })
}

test('a line break in a capture that a variable is set to stays escaped, as in nginx', async () => {
  assert.deepEqual(await seen('/var/a%0d%0aX-Evil:1'), { status: 200, peer: 1 })
  assert.equal(peer.requests.at(-1)!.head.header('x-a')?.toLowerCase(), 'a a%0d%0ax-evil:1')
})

test('a method that a variable makes of no method is refused', async () => {
  for (const target of ['/method/GE%20T', '/method/G%3aT', '/method/%e9']) {
    assert.deepEqual(await seen(target), { status: 400, peer: 0 }, target)
  }
  assert.deepEqual(await seen('/method/GET'), { status: 200, peer: 1 })
})

for (const place of ['pass', 'rewrite', 'query', 'uri-of', '', 'arg']) {
  test(`a line break stays escaped in the target that a peer is asked for: /${place}`, async () => {
    for (const one of breaks) {
      assert.deepEqual(await seen(`/${place}/a${one}X-Evil:1?b${one}X-Evil:2&a=c${one}X-Evil:3`), {
        status: 200,
        peer: 1,
      })
      assert.ok(peer.requests.at(-1)!.target.toLowerCase().includes(one), peer.requests.at(-1)!.target)
    }
  })
}

for (const [place, status] of [
  ['add', 200],
  ['add-passed', 200],
  ['return', 302],
  ['return-url', 302],
  ['redirect', 302],
  ['location', 200],
  ['error', 302],
] as const) {
  test(`a line break in what a client is told is escaped, or a blank: ${place}`, async () => {
    for (const one of breaks) assert.equal((await seen(`/${place}/a${one}X-Evil:1`)).status, status)
  })
}

test('a cookie or an Upgrade that holds a line break is refused', async () => {
  for (const line of ['Cookie: a=b\rX-Evil: 1', 'Upgrade: a\nX-Evil: 1', 'Cookie: a=b\n X-Evil: 1']) {
    assert.deepEqual(await seen('/arg', `${line}\r\n`), { status: 400, peer: 0 }, line)
  }
})

const evil = 'a\r\nX-Evil: 1'
const written = [
  `add_header X-A "${evil}"; return 200;`,
  `add_header "X\r\nX-Evil" a; return 200;`,
  'add_header X-A "a\nX-Evil: 1"; return 200;',
  `proxy_set_header X-A "${evil}"; proxy_pass http://u;`,
  `proxy_set_header "X\r\nX-Evil" a; proxy_pass http://u;`,
  `proxy_set_header Host "${evil}"; proxy_pass http://u;`,
  `proxy_method "GET / HTTP/1.1\r\nX-Evil: 1"; proxy_pass http://u;`,
  `proxy_pass "http://u/a\r\nX-Evil: 1";`,
  `proxy_redirect http://inner/ "http://${evil}"; proxy_pass http://u;`,
  `rewrite ^ "/${evil}" break; proxy_pass http://u;`,
  `rewrite ^ "http://h/${evil}" redirect;`,
  `return 302 "http://h/${evil}";`,
  `error_page 403 =302 "http://h/${evil}"; return 403;`,
  `default_type "${evil}"; return 200 ok;`,
  `explain_header "X\r\nX-Evil"; proxy_pass http://u;`,
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the program that is to put it in.
  'add_header X-A "${ENV:EVIL}"; return 200;',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the program that is to put it in.
  'proxy_set_header X-A "${ENV:EVIL}"; proxy_pass http://u;',
]

test('a line break that is written into a configuration, or comes by the environment, is refused at load', async () => {
  const text = (line: string) =>
    `http { upstream u { server ${peer.address}; } server { listen 127.0.0.1:PORT; location / { ${line} } } }`
  await using sidecar = await start(text('return 200;'), { env: { EVIL: evil } })
  const reload = (line: string) => sidecar.rewrite(text(line)).then(() => sidecar.askReload())
  for (const line of written) {
    const response = await reload(line)
    assert.equal(response.status, 422, line)
    assert.match(await response.text(), /invalid (?:value|parameter)/, line)
  }
  assert.equal(await sidecar.generation(), 1)
  // A text is no field: it may have lines.
  assert.equal((await reload('return 200 "a\r\nb";')).status, 200)
  assert.equal(await (await fetch(sidecar.url)).text(), 'a\r\nb')
})
