import assert from 'node:assert/strict'
import { once } from 'node:events'
import { linkSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { InjectOptions } from 'fastify'
import type { Facts } from '../../../sidecar/admin/facts.ts'
import { type AdminOptions, adminApp, startAdmin } from '../../../sidecar/admin/server.ts'
import { read } from './checker.ts'
import { facts, group, runtime, wall } from './facts.ts'

const loopback = { kind: 'tcp', host: '127.0.0.1', port: 0 } as const

/** Asks an admin server that does not listen. */
async function ask(from: Facts, request: InjectOptions | string, options: Partial<AdminOptions> = {}) {
  const app = adminApp(from, { readonly: false, local: true, unix: false, report: () => {}, ...options })
  const answer = await app.inject(request)
  await app.close()
  return answer
}

const json = { 'content-type': 'application/json' }

test('/healthz answers, and /readyz from the last listener until the drain', async () => {
  assert.equal((await ask(facts(), '/healthz')).statusCode, 200)
  assert.equal((await ask(facts(), '/readyz')).statusCode, 200)
  const early = await ask(facts({ ready: () => false }), '/readyz')
  assert.equal(early.statusCode, 503)
  assert.deepEqual(early.json(), { ok: false, reason: 'not listening yet' })
  const late = await ask(facts({ draining: () => true }), '/readyz')
  assert.equal(late.statusCode, 503)
  assert.deepEqual(late.json(), { ok: false, reason: 'draining' })
  assert.equal((await ask(facts({ draining: () => true }), '/healthz')).statusCode, 200)
})

test('/readyz asks for a ready peer where a group is named', async () => {
  const groups = [
    group('good', { a: { down: true }, b: {} }),
    group('bad', { a: { down: true } }),
    group('none', {}),
  ]
  const from = facts({ groups })
  assert.equal((await ask(from, '/readyz?upstream=good')).statusCode, 200)
  assert.equal((await ask(from, '/readyz')).statusCode, 200)
  const bad = await ask(from, '/readyz?upstream=good&upstream=bad')
  assert.equal(bad.statusCode, 503)
  assert.deepEqual(bad.json(), { ok: false, reason: 'no peer of upstream "bad" is ready: a down' })
  assert.equal((await ask(from, '/readyz?upstream=none')).statusCode, 503)
  const unknown = await ask(from, '/readyz?upstream=nope')
  assert.equal(unknown.statusCode, 404)
  assert.deepEqual(unknown.json(), { error: 'no upstream "nope"' })
})

test('the status tree is served at any depth, with percent-encoded names', async () => {
  const from = facts({ groups: [group('a b/ü', { 'unix:/p': { weight: 3 } })] })
  const path = `/status/http/upstreams/${encodeURIComponent('a b/ü')}/peers/unix:/p/weight`
  const answer = await ask(from, `${path}?pretty=off`)
  assert.equal(answer.statusCode, 200)
  assert.equal(answer.body, '3')
  assert.equal(answer.headers['content-type'], 'application/json')
  assert.equal(answer.headers['expires'], 'Thu, 01 Jan 1970 00:00:01 GMT')
  const head = await ask(from, { url: path, method: 'HEAD' })
  assert.equal(head.headers['content-length'], '3')
  assert.equal(head.body, '')
  assert.equal((await ask(from, '/status')).statusCode, 200)
  const bad = await ask(from, '/status/%ff')
  assert.equal(bad.statusCode, 400)
  assert.deepEqual(bad.json(), { error: 'the path is not valid' })
  const post = await ask(from, { url: '/status/http/', method: 'POST' })
  assert.equal(post.statusCode, 405)
  assert.equal(post.json().error, 'MethodNotAllowed')
})

test('/metrics is given in the form asked for', async () => {
  const text = await ask(facts(), '/metrics')
  assert.equal(text.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
  read(text.body)
  const open = await ask(facts(), { url: '/metrics', headers: { accept: 'application/openmetrics-text' } })
  assert.equal(open.headers['content-type'], 'application/openmetrics-text; version=1.0.0; charset=utf-8')
  read(open.body, 'open')
  const angie = await ask(facts(), '/metrics/angie')
  assert.match(angie.body, /^# Angie Prometheus template "all"\n/)
})

test('/config shows the model as YAML or JSON', async () => {
  const from = facts({
    model: () => ({ admin_host: ['x'], http: { servers: [{ listen: [{ address: '*:80' }] }] } }),
  })
  const yaml = await ask(from, '/config')
  assert.equal(yaml.headers['content-type'], 'application/yaml')
  assert.equal(yaml.body, 'admin_host:\n  - x\nhttp:\n  servers:\n    - listen:\n        - address: "*:80"\n')
  const asJson = await ask(from, '/config?format=json')
  assert.deepEqual(asJson.json(), from.model())
  assert.equal((await ask(from, '/config?format=xml')).statusCode, 400)
})

test('/ lists what there is, and every path in the list is there', async () => {
  const from = facts({ groups: [group('UPSTREAM', { a: {} })], runtime: () => runtime() })
  const { body, statusCode } = await ask(from, '/')
  assert.equal(statusCode, 200)
  for (const [, method = '', url = ''] of body.matchAll(/^([A-Z]+) +(\/\S+)/gm)) {
    const asked = await ask(from, {
      // Of an answer without an end the head will do.
      method: url === '/live' ? 'HEAD' : (method as 'GET' | 'POST' | 'PATCH' | 'DELETE'),
      url,
      headers: method === 'GET' ? {} : json,
      ...(method === 'PATCH' || method === 'POST' ? { payload: { state: 'up' } } : {}),
    })
    assert.equal(asked.statusCode, 200, url)
  }
})

test('/ says how the program is', async () => {
  const well = facts({ groups: [group('a', {}), group('b', {})] })
  assert.match(
    (await ask(well, '/')).body,
    /^evenkeel 0\.1\.0, up for 60 s, configuration 1\nupstreams: a, b\n\n/,
  )
  const error = 'evenkeel.conf:3: unknown directive "x"'
  const ill = facts({ draining: () => true, lastReload: () => ({ ok: false, error, at: wall }) })
  assert.deepEqual((await ask(ill, '/')).body.split('\n').slice(1, 4), [
    'it drains: work in progress ends, and then the process does',
    `the reload at 2026-11-30T01:54:49.728Z failed: ${error}`,
    'upstreams: none',
  ])
})

test('an unknown path is 404 and a wrong method 405, as JSON', async () => {
  const none = await ask(facts(), '/nope')
  assert.equal(none.statusCode, 404)
  assert.equal(typeof none.json().error, 'string')
  const wrong = await ask(facts(), { url: '/metrics', method: 'DELETE' })
  assert.equal(wrong.statusCode, 405)
  assert.equal(wrong.headers['allow'], 'GET, HEAD')
  const get = await ask(facts(), '/reload?x')
  assert.equal(get.statusCode, 405)
  assert.equal(get.headers['allow'], 'POST')
})

test('an answer in JSON is a line, so that it is apart from a prompt', async () => {
  for (const path of ['/healthz', '/nowhere', '/upstreams']) {
    const { body, headers } = await ask(facts(), path)
    assert.match(body, /^\{[^\n]*\}\n$/, path)
    assert.equal(Number(headers['content-length']), body.length, path)
  }
})

test('POST /reload says how it went', async () => {
  const good = await ask(facts({ generation: () => 2 }), { url: '/reload', method: 'POST', headers: json })
  assert.equal(good.statusCode, 200)
  assert.deepEqual(good.json(), { ok: true, generation: 2 })
  const error = 'evenkeel.conf:3: unknown directive "x"'
  const bad = facts({ reload: async () => ({ ok: false, error }) })
  const refused = await ask(bad, { url: '/reload', method: 'POST', headers: json, payload: '{}' })
  assert.equal(refused.statusCode, 422)
  assert.deepEqual(refused.json(), { error })
})

test('an error of our own is 500 without its details, which are reported', async () => {
  const reports: string[] = []
  const broken = facts({ reload: () => Promise.reject(new Error('secret detail')) })
  const request = { url: '/reload', method: 'POST', headers: json } as const
  const answer = await ask(broken, request, { report: (text) => reports.push(text) })
  assert.equal(answer.statusCode, 500)
  assert.deepEqual(answer.json(), { error: 'internal error' })
  assert.deepEqual(reports, ['admin: POST /reload: secret detail'])
})

test('a request for a name that the server does not know is refused, whatever it asks for', async () => {
  const from = facts({ hosts: () => ['admin.example'] })
  const status = async (host: string, options: Partial<AdminOptions> = {}) =>
    (await ask(from, { url: '/healthz', headers: { host } }, options)).statusCode
  for (const host of [
    'localhost',
    'LOCALHOST:9900',
    '127.0.0.1',
    '10.1.2.3:80',
    '[::1]:9900',
    'Admin.Example:1',
  ]) {
    assert.equal(await status(host), 200, host)
  }
  for (const host of [
    'evil.example',
    'localhost.evil.example:9900',
    '127.0.0.1.nip.io',
    '[x]',
    'admin.example:x',
  ]) {
    assert.equal(await status(host), 421, host)
    assert.equal(await status(host, { readonly: true }), 421, host)
  }
  assert.equal(await status('evil.example', { unix: true }), 200)
  const nothing = await ask(from, { url: '/nope', headers: { host: 'evil.example' } })
  assert.equal(nothing.statusCode, 421)
})

test('a change that another origin asks for is refused', async () => {
  let reloads = 0
  const from = facts({
    reload: async () => {
      reloads += 1
      return { ok: true }
    },
  })
  const status = async (origin: string, host = 'localhost:9900') => {
    const request = { url: '/reload', method: 'POST', headers: { ...json, host, origin } } as const
    return (await ask(from, request)).statusCode
  }
  for (const origin of [
    'http://evil.example',
    'http://localhost:3000',
    'http://127.0.0.1:9900',
    'null',
    '',
  ]) {
    assert.equal(await status(origin), 403, origin)
  }
  assert.equal(reloads, 0)
  assert.equal(await status('http://localhost:9900'), 200)
  assert.equal(await status('https://localhost', 'localhost:443'), 200)
  assert.equal(reloads, 2)
})

test('a change needs the content type that a form cannot send', async () => {
  const status = async (type: string | undefined, payload?: string) => {
    const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type }
    const request = { url: '/reload', method: 'POST', headers, ...(payload ? { payload } : {}) } as const
    return (await ask(facts(), request)).statusCode
  }
  assert.equal(await status(undefined), 415)
  assert.equal(await status('text/plain', 'x'), 415)
  assert.equal(await status('application/x-www-form-urlencoded', 'a=b'), 415)
  assert.equal(await status('application/json; charset=utf-8', '{}'), 200)
  assert.equal(await status('application/json', '{'), 400)
  assert.equal(await status('application/json', `"${'x'.repeat(20_000)}"`), 413)
})

test('a change needs the token where one is configured, and always from outside the host', async () => {
  const status = async (token: string | undefined, authorization: string | undefined, local: boolean) => {
    const headers = { ...json, ...(authorization === undefined ? {} : { authorization }) }
    const from = facts({ token: () => token })
    const answer = await ask(from, { url: '/reload', method: 'POST', headers }, { local })
    if (answer.statusCode === 401) assert.equal(answer.headers['www-authenticate'], 'Bearer')
    return answer.statusCode
  }
  assert.equal(await status(undefined, undefined, true), 200)
  assert.equal(await status(undefined, undefined, false), 403)
  assert.equal(await status(undefined, 'Bearer x', false), 403)
  for (const local of [true, false]) {
    assert.equal(await status('s3cret', undefined, local), 401)
    assert.equal(await status('s3cret', 'Bearer s3cre', local), 401)
    assert.equal(await status('s3cret', 'Bearer s3cret2', local), 401)
    assert.equal(await status('s3cret', 'Basic s3cret', local), 401)
    assert.equal(await status('s3cret', 's3cret', local), 401)
    assert.equal(await status('s3cret', 'Bearer s3cret', local), 200)
    assert.equal(await status('s3cret', 'bearer  s3cret', local), 200)
  }
  const read = await ask(facts({ token: () => 's3cret' }), '/status/', { local: false })
  assert.equal(read.statusCode, 200)
})

test('a readonly address serves what a kubelet and Prometheus need, and nothing else', async () => {
  const from = facts({ groups: [group('u', { a: {} })] })
  const status = async (url: string, method: 'GET' | 'POST' = 'GET') =>
    (await ask(from, { url, method, headers: method === 'POST' ? json : {} }, { readonly: true })).statusCode
  for (const url of [
    '/healthz',
    '/readyz',
    '/readyz?upstream=u',
    '/metrics',
    '/status/',
    '/status/http/upstreams/u',
  ]) {
    assert.equal(await status(url), 200, url)
  }
  for (const url of ['/', '/config', '/explain/u', '/metrics/angie'])
    assert.equal(await status(url), 404, url)
  assert.equal(await status('/reload', 'POST'), 404)
})

test('what a readonly address does not serve is answered with what it serves', async () => {
  const from = facts({ groups: [group('u', { a: {} })] })
  const errorAt = async (url: string, readonly: boolean): Promise<string> =>
    (await ask(from, { url }, { readonly })).json().error
  const error = await errorAt('/', true)
  assert.match(error, /^this address is readonly: it serves /)
  for (const url of ['/live', '/explain/u', '/config', '/nothing'])
    assert.equal(await errorAt(url, true), error, url)
  const named = error.match(/\/[\w/]+/g) ?? []
  assert.equal(named.length, 5)
  for (const path of named) {
    const url = path.replace('UPSTREAM', 'u')
    assert.equal((await ask(from, { url }, { readonly: true })).statusCode, 200, url)
  }
  assert.equal(await errorAt('/nothing', false), 'there is nothing here; "/" lists what there is')
})

test('listens on several addresses at once, each with its own rights', async () => {
  const admin = await startAdmin(
    [
      { address: loopback, readonly: false },
      { address: { kind: 'tcp', host: '*', port: 0 }, readonly: true },
    ],
    facts(),
  )
  const [whole = '', part = ''] = admin.addresses
  assert.match(whole, /^127\.0\.0\.1:\d+$/)
  assert.match(part, /^0\.0\.0\.0:\d+$/)
  const open = part.replace('0.0.0.0', '127.0.0.1')
  assert.equal((await fetch(`http://${whole}/config`)).status, 200)
  assert.equal((await fetch(`http://${open}/config`)).status, 404)
  assert.equal((await fetch(`http://${open}/healthz`)).status, 200)
  assert.equal(await (await fetch(`http://${whole}/status/angie/address?pretty=off`)).text(), '"127.0.0.1"')
  await admin.close()
  await assert.rejects(fetch(`http://${whole}/healthz`))
})

test('no address means no server', async () => {
  const admin = await startAdmin([], facts())
  assert.deepEqual(admin.addresses, [])
  await admin.close()
})

test('when one address cannot be opened the others are closed again', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as { port: number }
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const other = (free.address() as { port: number }).port
  free.close()
  await once(free, 'close')
  const addresses = [other, port].map((port) => ({ address: { ...loopback, port }, readonly: false }))
  await assert.rejects(startAdmin(addresses, facts()), { code: 'EADDRINUSE' })
  const again = await startAdmin(addresses.slice(0, 1), facts())
  await again.close()
  taken.close()
})

test('a Unix socket takes the place of one that a killed process left, but not of one in use', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'evenkeel-admin-'))
  const path = join(folder, 'admin.sock')
  const listener = { address: { kind: 'unix', path }, readonly: false } as const
  const status = () =>
    new Promise<number | undefined>((resolve, reject) => {
      const request = get(
        { socketPath: path, path: '/healthz', headers: { host: 'any.name' }, agent: false },
        (answer) => {
          answer.resume()
          answer.on('end', () => resolve(answer.statusCode))
        },
      )
      request.on('error', reject)
    })
  const dead = createServer().listen(path)
  await once(dead, 'listening')
  // A second name of the file stays where the server goes, as the file does when a process is killed.
  linkSync(path, `${path}.old`)
  dead.close()
  await once(dead, 'close')
  renameSync(`${path}.old`, path)
  const admin = await startAdmin([listener], facts())
  assert.deepEqual(admin.addresses, [`unix:${path}`])
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.equal(await status(), 200)
  await assert.rejects(startAdmin([listener], facts()), /another process listens on it/)
  assert.equal(await status(), 200)
  await admin.close()
  assert.throws(() => statSync(path))
  writeFileSync(path, 'precious')
  await assert.rejects(startAdmin([listener], facts()), /the file is not a socket/)
  rmSync(folder, { recursive: true })
})

test('closing waits for an answer in progress, but not for an idle connection', async () => {
  const asked = Promise.withResolvers<void>()
  const finished = Promise.withResolvers<{ ok: true }>()
  const reload = () => {
    asked.resolve()
    return finished.promise
  }
  const admin = await startAdmin([{ address: loopback, readonly: false }], facts({ reload }))
  const idle = connect(Number(admin.addresses[0]!.split(':')[1]), '127.0.0.1')
  await once(idle, 'connect')
  const answer = fetch(`http://${admin.addresses[0]}/reload`, { method: 'POST', headers: json })
  await asked.promise
  const closed = admin.close()
  finished.resolve({ ok: true })
  assert.equal((await answer).status, 200)
  await closed
  idle.destroy()
})

test('a client that is slow to send its request is cut off', async () => {
  const options = { readonly: false, local: true, unix: false, report: () => {}, requestTimeout: 60 }
  const app = adminApp(facts(), options)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const [bound] = app.addresses()
  assert.ok(typeof bound === 'object')
  const slow = connect(bound.port, '127.0.0.1')
  slow.setEncoding('latin1')
  let answer = ''
  slow.on('data', (text: string) => {
    answer += text
  })
  slow.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ')
  await once(slow, 'close')
  assert.match(answer, /^HTTP\/1\.1 408 /)
  await app.close()
})
