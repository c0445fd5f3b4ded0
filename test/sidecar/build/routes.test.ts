import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { ServerZone } from '../../../feedback/server-zone.ts'
import { Variables } from '../../../feedback/variables.ts'
import { buildRouter } from '../../../sidecar/build/routes.ts'
import { declareNames } from '../../../sidecar/build/scripts.ts'
import type { HttpBlock, LocationBlock, ServerBlock } from '../../../sidecar/config/model.ts'
import { passedHead } from '../../../sidecar/proxy/answer-headers.ts'
import type { PeerGroup } from '../../../sidecar/proxy/pools.ts'
import { type LocalAnswer, localResponse } from '../../../sidecar/proxy/respond.ts'
import type { Route } from '../../../sidecar/proxy/route.ts'
import { type Decision, decide, follow } from '../../../sidecar/proxy/routes.ts'

/** Requests against a configuration, up to the moment where a peer would be asked. */
class Site {
  readonly variables = new Variables()
  readonly opened: string[] = []
  readonly logged: string[] = []
  readonly zones = new Map<string, ServerZone>()
  readonly router

  constructor(http: HttpBlock) {
    declareNames(http, this.variables)
    this.router = buildRouter(http, {
      variables: this.variables,
      // A group that is only looked up: nothing here asks a peer.
      group: (name) =>
        name === 'nobody' ? undefined : ({ balancing: { upstream: { name } } } as unknown as PeerGroup),
      finder: () => (address) => ({
        status: 502,
        text: `nobody knows ${'host' in address ? address.host : address.path}`,
      }),
      zone: (kind, name) => {
        const key = `${kind} ${name}`
        const zone = this.zones.get(key) ?? new ServerZone(name)
        this.zones.set(key, zone)
        return zone
      },
      openAccessLog: ({ path, format }) => {
        this.opened.push(`${path} ${format}`)
        return (call) => this.logged.push(`${path} ${call.uri}`)
      },
      version: '1.2.3',
    })
  }

  /** What becomes of a request, and the call. */
  ask(target: string, fields: { host?: string; headers?: string[]; method?: string; port?: string } = {}) {
    const call = new Call()
    call.target = target
    call.method = fields.method ?? 'GET'
    call.serverPort = fields.port ?? '80'
    call.remoteAddr = call.realipRemoteAddr = '127.0.0.1'
    call.rawHeaders = ['Host', fields.host ?? 'one.example', ...(fields.headers ?? [])]
    const { server, refusal } = this.router.admit('*:80', call)
    assert.equal(refusal, undefined)
    return { call, server, decision: decide(server, call) }
  }

  /** `location group target` of a request that goes to a peer, or `status text` of an answer, error pages followed. */
  told(target: string, fields: Parameters<Site['ask']>[1] = {}): string {
    const { call, server, decision } = this.ask(target, fields)
    let now: Decision = decision
    for (;;) {
      if (now.kind === 'close') return 'closed'
      if (now.kind === 'content') return this.content(now, call)
      const answer: LocalAnswer = localResponse(call, now.route.settings, now.status, now.content)
      if (answer.kind !== 'response') {
        now = follow(server, call, answer)
        continue
      }
      const at = answer.headers.indexOf('Location')
      const more = at >= 0 ? answer.headers[at + 1] : now.content.text
      return more === undefined ? `${answer.status}` : `${answer.status} ${more}`
    }
  }

  content({ content, route }: Extract<Decision, { kind: 'content' }>, call: Call): string {
    if (content.kind !== 'proxy') return `${content.kind} ${route.location}`
    const { group, failure } = content.pass.target(call)
    const name = failure?.text ?? group!.balancing.upstream.name
    return `${route.location} ${name} ${content.pass.requestTarget(call)}`
  }

  route(target: string): Route {
    return this.ask(target).decision.route
  }
}

const site = (locations: Record<string, LocationBlock>, server: ServerBlock = {}, http: HttpBlock = {}) =>
  new Site({ ...http, servers: [{ ...server, locations }] })

test('each kind of location reaches its group with the target that proxy_pass says', () => {
  const at = site({
    '/': { proxy_pass: 'http://app' },
    '= /exact': { proxy_pass: 'http://exact/other' },
    '/sub/': { proxy_pass: 'http://sub/new' },
    '^~ /static/': { proxy_pass: 'http://static' },
    '~ ^/u/(?<id>\\d+)$': { proxy_pass: 'http://users/by-id/$id' },
    '~* \\.PNG$': { proxy_pass: 'http://images' },
    '/status/': { api: '/status/' },
    '/bare/': {},
  })
  assert.equal(at.told('/a%2Fb?x'), '/ app /a%2Fb?x')
  assert.equal(at.told('/exact?x=1'), '= /exact exact /other?x=1')
  assert.equal(at.told('/sub/a%20b'), '/sub/ sub /newa%20b')
  assert.equal(at.told('/sub'), '301 http://one.example/sub/')
  assert.equal(at.told('/static/a.png'), '^~ /static/ static /static/a.png')
  assert.equal(at.told('/u/17?x'), '~ ^/u/(?<id>\\d+)$ users /by-id/17')
  assert.equal(at.told('/a.png'), '~* \\.PNG$ images /a.png')
  assert.equal(at.told('/status/x'), 'api /status/')
  assert.equal(at.told('/bare/'), '404')
})

test('inner locations inherit what the outer ones say, key by key', () => {
  const at = site(
    {
      '/a/': {
        proxy_read_timeout: '5s',
        proxy_set_header: [{ name: 'X-A', value: '1' }],
        locations: {
          '/a/b/': { proxy_pass: 'http://app', proxy_set_header: [{ name: 'X-B', value: '$host' }] },
        },
      },
    },
    { proxy_read_timeout: '7s', proxy_send_timeout: '8s' },
    { client_max_body_size: '2m', proxy_set_header: [{ name: 'X-H', value: '2' }] },
  )
  const { settings } = at.route('/a/b/')
  assert.equal(settings.readTimeout, 5000)
  assert.equal(settings.proxySendTimeout, 8000)
  assert.equal(settings.clientMaxBodySize, 2 * 1024 * 1024)
  assert.deepEqual([...settings.setHeaderNames], ['x-b'])
})

test('defaults are those of nginx, and our own for retries', () => {
  const { settings } = site({ '/': { proxy_pass: 'http://app' } }).route('/')
  assert.deepEqual([...settings.retry.on], ['error', 'timeout'])
  assert.deepEqual(settings.retry.budget, { ratio: 0.2, min: 10, window: 10_000 })
  assert.deepEqual(settings.retry.backoff, { base: 25, max: 250 })
  assert.equal(settings.bufferSize, 8192)
  assert.equal(settings.buffers, 131_072)
  assert.equal(settings.keepaliveTimeout, 75_000)
  assert.ok(settings.hideHeaders.has('x-accel-buffering'))
})

test('what is said of retries, buffers and fields', () => {
  const { settings } = site({
    '/': {
      proxy_pass: 'http://app',
      proxy_next_upstream: ['error', 'http_503', 'non_idempotent'],
      proxy_next_upstream_tries: 2,
      proxy_next_upstream_timeout: '3s',
      proxy_next_upstream_budget: { percent: 10, window: '5s' },
      proxy_next_upstream_backoff: 'off',
      proxy_buffers: { number: 2, size: '4k' },
      proxy_pass_header: ['Server'],
      proxy_hide_header: ['X-Powered-By'],
      proxy_http_version: '1.0',
      client_max_body_size: '0',
      server_tokens: true,
      explain_header: 'off',
    },
  }).route('/')
  const { retry } = settings
  assert.deepEqual([...retry.on], ['error', 'http_503'])
  assert.deepEqual([retry.nonIdempotent, retry.tries, retry.timeout], [true, 2, 3000])
  assert.deepEqual(retry.budget, { ratio: 0.1, min: 10, window: 5000 })
  assert.equal(retry.backoff, undefined)
  assert.equal(settings.buffers, 8192)
  assert.ok(!settings.hideHeaders.has('server') && settings.hideHeaders.has('x-powered-by'))
  assert.equal(settings.closePeer, true)
  assert.equal(settings.clientMaxBodySize, 0)
  assert.equal(settings.serverText, 'evenkeel/1.2.3')
  assert.equal(settings.explainHeader, undefined)
  const off = site({ '/': { proxy_pass: 'http://app', proxy_next_upstream: ['error', 'off'] } }).route('/')
  assert.equal(off.settings.retry.on.size, 0)
})

test('set, if and rewrite of both levels', () => {
  const at = site(
    {
      '/': {
        proxy_pass: 'http://app',
        rewrites: [
          { set: { variable: '$kind', value: 'plain' } },
          {
            if: { variable: '$arg_v', operator: '~', value: '^(?<major>\\d+)' },
            rewrites: [{ set: { variable: '$kind', value: 'v$1' } }],
            proxy_pass: 'http://versions/$kind/$major',
          },
          {
            if: { variable: '$request_method', operator: '!=', value: 'GET' },
            rewrites: [{ return: { code: 405 } }],
          },
          { if: { variable: '$arg_debug' }, add_header: [{ name: 'X-Kind', value: '$kind' }] },
          { rewrite: { regex: '^/old/(.*)$', replacement: '/new/$1', flag: 'last' } },
          { rewrite: { regex: '^/kept/(.*)$', replacement: '/inner/$1', flag: 'break' } },
        ],
      },
      '/new/': { proxy_pass: 'http://new/n/' },
    },
    { rewrites: [{ rewrite: { regex: '^/gone', replacement: 'https://else.example/', flag: 'permanent' } }] },
  )
  assert.equal(at.told('/x'), '/ app /x')
  assert.equal(at.told('/x?v=12'), '/ versions /v12/12')
  assert.equal(at.told('/x', { method: 'POST' }), '405')
  assert.equal(at.told('/old/a?b'), '/new/ new /n/a?b')
  assert.equal(at.told('/kept/a?b'), '/ app /inner/a?b')
  assert.equal(at.told('/gone?x=1'), '301 https://else.example/?x=1')
  const { call, decision } = at.ask('/x?debug=1')
  assert.deepEqual(passedHead(call, decision.route.settings, 200, []).headers.slice(-2), ['X-Kind', 'plain'])
  assert.equal(decision.kind, 'content')
})

test('rewrite with break inside of a location with a path sends the new path alone', () => {
  const at = site({
    '/name/': {
      proxy_pass: 'http://app/base/',
      rewrites: [{ rewrite: { regex: '/name/([^/]+)', replacement: '/users?name=$1', flag: 'break' } }],
    },
  })
  assert.equal(at.told('/name/ann'), '/name/ app /users?name=ann')
})

test('error pages lead to other locations, by path and by name', () => {
  const at = site(
    {
      '/a/': { rewrites: [{ return: { code: 503 } }] },
      '/b/': {
        rewrites: [{ return: { code: 404 } }],
        error_page: [
          { codes: [404], response: 200, uri: '@fallback' },
          { codes: [404], uri: '/never' },
        ],
      },
      '@fallback': { proxy_pass: 'http://fallback' },
      '/sorry': { rewrites: [{ return: { code: 200, text: 'sorry $arg_u' } }] },
    },
    { error_page: [{ codes: [502, 503], uri: '/sorry?u=$uri' }] },
  )
  assert.equal(at.told('/a/x'), '503 sorry /a/x')
  assert.equal(at.told('/b/x%2Fy?z'), '@fallback fallback /b/x%2Fy?z')
})

test('a redirect is told as absolute_redirect and port_in_redirect say, for locations and for all', () => {
  const moved = { rewrites: [{ return: { code: 301, text: '/there' } }] }
  const at = site(
    {
      '/a': moved,
      '/b': { ...moved, absolute_redirect: false },
      '/c/': { proxy_pass: 'http://app', absolute_redirect: false },
      '/d': { ...moved, port_in_redirect: true },
    },
    { port_in_redirect: false },
  )
  const port = { port: '8080' }
  assert.equal(at.told('/a', port), '301 http://one.example/there')
  assert.equal(at.told('/b', port), '301 /there')
  assert.equal(at.told('/c', port), '301 /c/')
  assert.equal(at.told('/d', port), '301 http://one.example:8080/there')
})

test('an internal location is reached by error pages and rewrites, and is not there for clients', () => {
  const at = site(
    {
      '/': { rewrites: [{ return: { code: 503 } }] },
      '= /sorry': { internal: true, rewrites: [{ return: { code: 200, text: 'sorry' } }] },
      '/inside/': { internal: true, proxy_pass: 'http://app' },
      '/outside': { rewrites: [{ rewrite: { regex: '^', replacement: '/inside/x', flag: 'last' } }] },
      '@named': { internal: true, proxy_pass: 'http://app' },
      '/named': { rewrites: [{ return: { code: 404 } }], error_page: [{ codes: [404], uri: '@named' }] },
    },
    { error_page: [{ codes: [503], uri: '/sorry' }] },
  )
  assert.equal(at.told('/x'), '503 sorry')
  assert.equal(at.told('/outside'), '/inside/ app /inside/x')
  assert.equal(at.told('/named'), '@named app /named')
  for (const path of ['/sorry', '/inside/x', '/inside']) assert.equal(at.told(path), '404', path)
})

test('a variable in proxy_pass names a group at each request', () => {
  const at = site({ '/': { proxy_pass: 'http://$arg_g' } })
  assert.equal(at.told('/x?g=blue'), '/ blue /x?g=blue')
  assert.equal(at.told('/x?g=nobody'), '/ nobody knows nobody /x?g=nobody')
})

test('proxy_redirect by default undoes what proxy_pass does', () => {
  const at = site(
    {
      '/one/': { proxy_pass: 'http://upstream:8080/two/' },
      '/plain/': { proxy_pass: 'http://upstream:8080' },
      '/off/': { proxy_pass: 'http://upstream:8080', proxy_redirect: 'off' },
      '/own/': {
        proxy_pass: 'http://upstream:8080',
        proxy_redirect: [{ redirect: '~^http://[^/]+/(?<rest>.*)$', replacement: '/own/$rest' }, 'default'],
      },
      '/var/': { proxy_pass: 'http://$arg_g' },
    },
    {},
  )
  const location = (target: string, value: string) => {
    const { call, decision } = at.ask(target)
    const { headers } = passedHead(call, decision.route.settings, 302, ['Location', value])
    return headers[headers.indexOf('Location') + 1]
  }
  assert.equal(location('/one/', 'http://upstream:8080/two/x'), 'http://one.example/one/x')
  assert.equal(location('/plain/', 'http://upstream:8080/x'), 'http://one.example/x')
  assert.equal(location('/off/', 'http://upstream:8080/x'), 'http://upstream:8080/x')
  assert.equal(location('/own/', 'http://upstream:8080/x'), 'http://one.example/own/x')
  assert.equal(location('/var/', 'http://upstream:8080/x'), 'http://upstream:8080/x')
})

test('servers of one address are told apart by name, and the marked one is the default', () => {
  const at = new Site({
    servers: [
      { server_name: ['a.example', '*.a.example'], locations: { '/': { proxy_pass: 'http://a' } } },
      {
        listen: [{ address: '*:80', default_server: true }, { address: '*:81' }],
        server_name: ['.b.example'],
        locations: { '/': { proxy_pass: 'http://b' } },
      },
      {
        server_name: ['~^(?<tenant>\\w+)\\.c\\.Example$'],
        locations: { '/': { proxy_pass: 'http://c/$tenant' } },
      },
    ],
  })
  assert.equal(at.told('/', { host: 'a.example' }), '/ a /')
  assert.equal(at.told('/', { host: 'x.a.example' }), '/ a /')
  assert.equal(at.told('/', { host: 'unknown' }), '/ b /')
  assert.equal(at.told('/', { host: 'T1.c.example:80' }), '/ c /t1')
  assert.equal(at.ask('/', { host: 'b.example' }).call.serverName, 'b.example')
  assert.deepEqual(at.router.keys(), ['*:80', '*:81'])
  assert.equal(at.router.default('*:81').name, 'b.example')
})

test('a line of access_log is opened once, and its condition is asked', () => {
  const at = site(
    { '/': { proxy_pass: 'http://app' }, '/off/': { access_log: 'off' } },
    {
      access_log: [
        { path: 'a.log', if: '$arg_log' },
        { path: 'b.log', format: 'main' },
      ],
    },
  )
  assert.deepEqual(at.opened, ['a.log json', 'b.log main'])
  const { call, decision } = at.ask('/?log=0')
  for (const log of decision.route.settings.accessLogs) log(call)
  assert.deepEqual(at.logged, ['b.log /'])
  assert.equal(at.route('/off/').settings.accessLogs.length, 0)
  assert.deepEqual(site({ '/': {} }).opened, ['/dev/stdout json'])
})

test('zones of server and location are counted apart, and the same name is the same zone', () => {
  const at = site(
    { '/a/': { status_zone: 'loc' }, '/b/': { status_zone: 'loc' }, '/c/': {} },
    { status_zone: 'front' },
  )
  const zones = (target: string) => at.route(target).settings.statusZones
  assert.deepEqual(
    zones('/a/').map(({ name }) => name),
    ['front', 'loc'],
  )
  assert.equal(zones('/a/')[1], zones('/b/')[1])
  assert.deepEqual(
    zones('/c/').map(({ name }) => name),
    ['front'],
  )
})

test('characters above ASCII are bytes everywhere', () => {
  const at = site({
    '/caf\u00e9/': { rewrites: [{ return: { code: 200, text: '\u00fc' } }] },
    '~ ^/na\u00efve$': { rewrites: [{ return: { code: 302, text: 'http://h/\u00ef' } }] },
  })
  const utf8 = (text: string) => Buffer.from(text, 'utf8').toString('latin1')
  assert.equal(at.told('/caf%C3%A9/'), `200 ${utf8('\u00fc')}`)
  assert.equal(at.told('/na%C3%AFve'), `302 ${utf8('http://h/\u00ef')}`)
})

test('levels that trust the same proxies share one function', () => {
  const at = site(
    {
      '/': { proxy_pass: 'http://app' },
      '/all/': { proxy_pass: 'http://app', set_real_ip_from: ['0.0.0.0/0'], real_ip_header: 'X-Client' },
    },
    { set_real_ip_from: ['10.0.0.0/8'] },
  )
  const { server } = at.ask('/')
  assert.equal(at.route('/').settings.realIp, server.route.settings.realIp)
  assert.equal(at.ask('/', { headers: ['X-Real-IP', '192.0.2.1'] }).call.remoteAddr, '127.0.0.1')
  assert.equal(at.ask('/all/', { headers: ['X-Client', '192.0.2.1'] }).call.remoteAddr, '192.0.2.1')
})

test('an unknown variable and a name that is taken are mistakes', () => {
  assert.throws(() => site({ '/': { rewrites: [{ return: { code: 200, text: '$nobody' } }] } }), {
    message: 'unknown "nobody" variable',
  })
  assert.throws(() => site({ '/': { rewrites: [{ set: { variable: '$host', value: 'x' } }] } }), {
    message: 'the duplicate "host" variable',
  })
})
