import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { ensure } from '../../../scripts/ensure.ts'
import { Issuer } from '../../support/authority.ts'
import { type Backend, backend } from '../../support/backend.ts'
import { type Lab, lab, spread } from '../../support/invariants.ts'

await ensure(['nghttp', 'h2load', 'curl'])
const run = promisify(execFile)

const requests = process.env['TEST_LONG'] === '1' ? 100_000 : 3000

const issuer = new Issuer()
after(() => issuer[Symbol.dispose]())
const a = issuer.issue('a.test')

let peers: Backend[]
let it: Lab

before(async () => {
  peers = await Promise.all([1, 2, 3].map(() => backend((x) => x.reply({ body: 'ok' }))))
  it = await lab(
    `upstream up { ${peers.map(({ address }) => `server ${address};`).join(' ')} }
     server {
       listen 127.0.0.1:PORT; listen 127.0.0.1:PORT2 ssl; http2 on; keepalive_requests 1000000;
       ssl_certificate ${a.certFile}; ssl_certificate_key ${a.keyFile};
       access_log off;
       location / { proxy_pass http://up; }
       location /own { return 200 own; }
     }`,
    peers,
  )
})

after(async () => {
  await it[Symbol.asyncDispose]()
  for (const peer of peers) await peer[Symbol.asyncDispose]()
})

/** What h2load counts. */
async function load(url: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await run('h2load', [...args, url], { timeout: 120_000 })
  const counts =
    /^requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored/m
  const [, total, done, succeeded, failed, errored] = counts.exec(stdout) ?? []
  assert.match(stdout, new RegExp(`^status codes: ${total} 2xx`, 'm'), stdout)
  return `${total}: ${done} done, ${succeeded} succeeded, ${failed} failed, ${errored} errored`
}

const perfect = (count: number) => `${count}: ${count} done, ${count} succeeded, 0 failed, 0 errored`

test('h2load sends many requests through to three peers without an error', async () => {
  const before = peers.map(({ requests }) => requests.length)
  const said = await load(`http://127.0.0.1:${it.port}/`, '-n', `${requests}`, '-c', '4', '-m', '32')
  assert.equal(said, perfect(requests))
  const counts = peers.map((peer, i) => peer.requests.length - before[i]!)
  assert.ok(Math.max(...counts) - Math.min(...counts) <= 1, `${counts}`)
  for (const peer of peers) peer.requests.length = 0
  await it.begin()
})

test('as many streams at once as there may be, and more that wait, are all answered', async () => {
  const said = await load(`http://127.0.0.1:${it.port}/own`, '-n', '4000', '-c', '2', '-m', '500')
  assert.equal(said, perfect(4000))
})

test('h2load speaks TLS to it as well', async () => {
  const said = await load(
    `https://127.0.0.1:${it.sidecar.ports['PORT2']}/own`,
    '-n',
    '2000',
    '-c',
    '4',
    '-m',
    '50',
  )
  assert.equal(said, perfect(2000))
})

test('h2load sends bodies without an error', async () => {
  const said = await load(
    `http://127.0.0.1:${it.port}/`,
    ...['-n', '400', '-c', '4', '-m', '16', '-d', new URL(import.meta.url).pathname],
  )
  assert.equal(said, perfect(400))
  assert.equal(spread(peers.flatMap(({ requests }) => requests.map(({ method }) => method))), 'POST: 400')
  for (const peer of peers) peer.requests.length = 0
  await it.begin()
})

test('nghttp and curl get the same answers', async () => {
  const url = `http://127.0.0.1:${it.port}/own`
  const { stdout } = await run('nghttp', ['-v', url])
  assert.match(stdout, /:status: 200/)
  assert.match(stdout, /SETTINGS_MAX_CONCURRENT_STREAMS\(0x03\):128/)
  const curled = await run('curl', ['-sS', '--http2-prior-knowledge', '-w', ' %{http_version}', url])
  assert.equal(curled.stdout, 'own 2')
  // By HTTP/1.1's way to ask for it: it stays HTTP/1.1, as RFC 9113 has it.
  const asked = await run('curl', ['-sS', '--http2', '-w', ' %{http_version}', url])
  assert.equal(asked.stdout, 'own 1.1')
  // Twenty at once, through windows of a kilobyte.
  const many = await run('nghttp', ['-n', '-s', '-m', '20', '-w', '10', '-W', '10', url])
  assert.equal(many.stdout.match(/ 200 /g)?.length, 20)
})
