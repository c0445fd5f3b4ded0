import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { Variables } from '../../../feedback/variables.ts'
import { Locations } from '../../../sidecar/proxy/locations.ts'
import { realIp } from '../../../sidecar/proxy/real-ip.ts'
import { localResponse } from '../../../sidecar/proxy/respond.ts'
import type { ProxyPass, Route, Step } from '../../../sidecar/proxy/route.ts'
import { type Decision, decide, follow, Router, type VirtualServer } from '../../../sidecar/proxy/routes.ts'
import { compileScript, rewriting, type ScriptStep } from '../../../sidecar/proxy/script.ts'
import { ServerNames } from '../../../sidecar/proxy/server-names.ts'
import { defaultSettings } from '../../../sidecar/proxy/settings.ts'
import { callFor, matcher } from '../../support/call.ts'

const variables = new Variables()
const pass: ProxyPass = {
  group: undefined,
  target: () => ({ group: undefined, host: '', port: '' }),
  requestTarget: () => '/',
}
const rewrite = (regex: string, to: string, flag?: 'last' | 'break'): ScriptStep =>
  rewriting(matcher(regex, variables), to, flag, (text) => variables.compile(text))
const give = (status: number, text?: string): ScriptStep => ({
  kind: 'return',
  status,
  text: text === undefined ? undefined : variables.compile(text),
})

interface LocationSketch {
  readonly steps?: readonly ScriptStep[]
  readonly script?: (call: Call) => Step
  readonly settings?: Partial<Route['settings']>
  /** Whether it has no content of its own. */
  readonly bare?: boolean
}

function server(
  locations: Record<string, LocationSketch>,
  own: LocationSketch & Partial<VirtualServer> = {},
): VirtualServer {
  const base = { ...defaultSettings, ...own.settings }
  const route = (name: string, sketch: LocationSketch): Route => ({
    location: name,
    settings: { ...base, ...sketch.settings },
    content: sketch.bare ? { kind: 'none' } : { kind: 'proxy', pass },
    script: sketch.script ?? compileScript(sketch.steps ?? []),
  })
  const entries = Object.entries(locations)
  return {
    name: own.name ?? 'first.example',
    route: route('', { ...own, bare: true }),
    locations: new Locations(
      entries
        .filter(([name]) => !name.startsWith('@'))
        .map(([name, sketch]) => ({
          kind: 'prefix' as const,
          path: name,
          matches: undefined,
          slashRedirect: !sketch.bare,
          inner: undefined,
          value: route(name, sketch),
        })),
    ),
    named: new Map(
      entries.filter(([name]) => name.startsWith('@')).map(([name, sketch]) => [name, route(name, sketch)]),
    ),
    mergeSlashes: own.mergeSlashes ?? true,
    maxLine: 8192,
    maxHead: 32_768,
    headerTimeout: 60_000,
    dropUnderscores: true,
    dropInvalid: true,
    http2: false,
    maxStreams: 128,
  }
}

function tell(decision: Decision): string {
  const at = decision.route.location || 'server'
  if (decision.kind !== 'respond') return `${decision.kind} ${at}`
  const { text, location } = decision.content
  return [decision.status, at, location ?? text, decision.error]
    .filter((word) => word !== undefined)
    .join(' ')
}

const decided = (at: VirtualServer, call: Call | string) =>
  tell(decide(at, typeof call === 'string' ? callFor(call) : call))

test('a location with content is in charge; one without, and none at all, are 404', () => {
  const site = server({ '/a/': {}, '/b/': { bare: true } })
  assert.equal(decided(site, '/a/x'), 'content /a/')
  assert.equal(decided(site, '/b/x'), '404 /b/')
  assert.equal(decided(site, '/c'), '404 server')
})

test('a proxied folder without its slash is redirected, with the arguments', () => {
  assert.equal(decided(server({ '/a b/': {} }), '/a%20b?x=1'), '301 /a b/ /a%20b/?x=1')
  assert.equal(decided(server({ '/a/': { bare: true } }), '/a'), '404 server')
})

test('the server’s script runs first, then the location is looked for once', () => {
  const site = server({ '/new/': {}, '/': {} }, { steps: [rewrite('^/old/(.*)$', '/new/$1', 'last')] })
  assert.equal(decided(site, '/old/x'), 'content /new/')
  assert.equal(decided(server({ '/': {} }, { steps: [give(503, 'later')] }), '/'), '503 server later')
})

test('rewrite with last looks for the location again, with break it stays', () => {
  const site = server({
    '/a/': { steps: [rewrite('^/a/(.*)$', '/b/$1', 'last')] },
    '/b/': {},
    '/c/': { steps: [rewrite('^/c/(.*)$', '/b/$1', 'break')] },
  })
  assert.equal(decided(site, '/a/x'), 'content /b/')
  assert.equal(decided(site, '/c/x'), 'content /c/')
})

test('ten changes of location are the most', () => {
  const circle = server({ '/a': { steps: [rewrite('^(.*)$', '$1', 'last')] } })
  const call = callFor('/a')
  assert.equal(decided(circle, call), '500 /a rewrite or internal redirection cycle while processing "/a"')
  const count = (most: number) => server({ '/a': { steps: [rewrite(`^(/a{0,${most}})$`, '$1a', 'last')] } })
  assert.equal(decided(count(10), '/a'), 'content /a')
  assert.match(decided(count(11), '/a'), /^500 /)
})

test('a failure after too many changes gets no error page', () => {
  const errorPages = new Map([[500, { status: undefined, to: () => '/x' }]])
  const call = callFor('/a', { relocations: 11 })
  assert.equal(localResponse(call, { ...defaultSettings, errorPages }, 500).kind, 'response')
})

test('return gives a redirect its URL, a failure its page, other statuses their text', () => {
  const returns = (status: number, text?: string) => {
    const decision = decide(server({ '/': { steps: [give(status, text)] } }), callFor('/'))
    return decision.kind === 'respond' ? decision.content : decision.kind
  }
  assert.deepEqual(returns(302, 'http://h/$uri'), { location: 'http://h//' })
  assert.deepEqual(returns(404), { text: undefined })
  assert.deepEqual(returns(404, 'no'), { text: 'no' })
  assert.deepEqual(returns(200), { text: '' })
  assert.deepEqual(returns(204), { text: '' })
  assert.equal(returns(444), 'close')
})

test('an if that holds puts its own route in charge', () => {
  const inside: Route = {
    location: 'if',
    settings: defaultSettings,
    content: { kind: 'proxy', pass },
    script: undefined,
  }
  const site = server({ '/': { script: () => ({ kind: 'route', route: inside }) } })
  assert.equal(decided(site, '/'), 'content if')
})

test('an error page’s path goes through the server’s script and its locations again', () => {
  const site = server({ '/': {}, '/errors/': {} }, { steps: [rewrite('^/50x', '/errors/50x', 'last')] })
  const call = callFor('/a?x=1', { pathKept: false })
  assert.equal(
    tell(follow(site, call, { kind: 'redirect', uri: '/50x.html', args: 'y' })),
    'content /errors/',
  )
  assert.deepEqual([call.uri, call.args, call.rewritten, call.pathKept], ['/errors/50x', 'y', true, true])
})

test('a named page keeps the path, and the target as the client sent it', () => {
  const site = server({ '/': {}, '@fallback': {} })
  const call = callFor('/a%2Fb')
  assert.equal(tell(follow(site, call, { kind: 'named', name: '@fallback' })), 'content @fallback')
  assert.deepEqual([call.uri, call.rewritten, call.target], ['/a/b', false, '/a%2Fb'])
})

test('a named location is out of reach of clients', () => {
  assert.equal(decided(server({ '@x': {} }), callFor('/', { uri: '@x' })), '404 server')
})

test('a named page that is not there, and a circle of pages, are errors of the configuration', () => {
  const site = server({ '/': {} })
  const named = { kind: 'named', name: '@nobody' } as const
  assert.equal(tell(follow(site, callFor('/'), named)), '500 server could not find named location "@nobody"')
  const tired = () => callFor('/', { relocations: 10 })
  assert.match(tell(follow(site, tired(), named)), /^500 server rewrite or internal redirection cycle/)
  assert.match(
    tell(follow(site, tired(), { kind: 'redirect', uri: '/x', args: '' })),
    /^500 server rewrite or internal redirection cycle .* "\/x"$/,
  )
})

function admitted(
  options: {
    target?: string
    host?: string[]
    version?: string
    method?: string
    headers?: string[]
    remote?: string
  },
  servers: VirtualServer[] = [server({}), server({}, { name: 'second.example' })],
): { told: string; call: Call } {
  const names = new ServerNames<VirtualServer>()
  for (const one of servers) names.add(one.name, one)
  const router = new Router(new Map([['*:80', { names, default: servers[0]! }]]))
  const call = new Call()
  call.target = options.target ?? '/'
  call.method = options.method ?? 'GET'
  call.httpVersion = options.version ?? '1.1'
  call.remoteAddr = call.realipRemoteAddr = options.remote ?? '127.0.0.1'
  const hosts = options.host ?? ['first.example']
  call.rawHeaders = [...hosts.flatMap((host) => ['Host', host]), ...(options.headers ?? [])]
  const { server: found, refusal } = router.admit('*:80', call)
  return { told: `${refusal ?? 'ok'} ${found.name} ${call.host} ${call.uri}`, call }
}

const admission = (options: Parameters<typeof admitted>[0]) => admitted(options).told

test('the Host field chooses the server, an unknown one gets the default', () => {
  assert.equal(admission({ host: ['Second.Example:8080'] }), 'ok second.example second.example /')
  assert.equal(admission({ host: ['other'] }), 'ok first.example other /')
})

test('the host of the target goes before the Host field', () => {
  const { told, call } = admitted({ target: 'http://second.example?token=1' })
  assert.equal(told, 'ok second.example second.example /')
  assert.equal(call.target, '/?token=1')
  assert.equal(call.args, 'token=1')
  assert.equal(call.serverName, 'second.example')
})

test('a request needs exactly one good Host, but for HTTP/1.0', () => {
  assert.match(admission({ host: [] }), /^400 /)
  assert.match(admission({ host: ['a', 'a'] }), /^400 /)
  assert.match(admission({ host: ['a/b'] }), /^400 /)
  assert.match(admission({ host: [''] }), /^400 /)
  assert.match(admission({ host: ['a'], target: 'http://b@c/' }), /^400 /)
  assert.equal(admission({ host: [], version: '1.0' }), 'ok first.example first.example /')
  assert.match(admission({ host: ['a', 'b'], version: '1.0' }), /^400 /)
})

test('a target that cannot be read is refused', () => {
  for (const target of ['x', '*', '@evil/', '/a%00', '/..', '/%2e%2e/x', '/a b']) {
    assert.match(admission({ target }), /^400 /, target)
  }
})

test('what is routed and what is forwarded are the same path', () => {
  const { call } = admitted({ target: '/hi/ho/%2E%2E/%2e%2e/admin' })
  assert.equal(call.uri, '/admin')
  const site = server({ '/hi/': {}, '/admin': {} })
  assert.equal(decided(site, call), 'content /admin')
})

test('a question about the server as a whole is answered without a location', () => {
  const { told, call } = admitted({ target: '*', method: 'OPTIONS' })
  assert.equal(told, 'ok first.example first.example *')
  assert.equal(decided(server({ '/': {} }), call), '200 server ')
})

test('TRACE, long targets, long fields and too many of them are refused', () => {
  assert.match(admission({ method: 'TRACE' }), /^405 /)
  assert.match(admission({ target: `/${'a'.repeat(8192)}` }), /^414 /)
  assert.match(admission({ headers: ['X', 'a'.repeat(8192)] }), /^431 /)
  const many = Array.from({ length: 1000 }, (_, i) => [`X-${i}`, '1']).flat()
  assert.match(admission({ headers: many }), /^431 /)
  assert.match(admission({ headers: many.slice(0, 1900) }), /^ok /)
})

test('slashes stay where the server says so', () => {
  const { call } = admitted({ target: '/a//b' }, [server({}, { mergeSlashes: false })])
  assert.equal(call.uri, '/a//b')
})

test('the client’s real address is taken before anything looks at it', () => {
  const take = realIp({ from: ['127.0.0.0/8'], header: 'X-Real-IP', recursive: false })
  const trusting = server({}, { settings: { realIp: take } })
  const headers = ['X-Real-IP', '192.0.2.7']
  assert.equal(admitted({ headers }, [trusting]).call.remoteAddr, '192.0.2.7')
  assert.equal(admitted({ headers, remote: '10.0.0.1' }, [trusting]).call.remoteAddr, '10.0.0.1')
  const call = admitted({ headers }).call
  assert.equal(call.remoteAddr, '127.0.0.1')
  decide(server({ '/': { settings: { realIp: take } } }), call)
  assert.equal(call.remoteAddr, '192.0.2.7')
})

test('a server without a name lets the default’s host be empty', () => {
  const call = new Call()
  const nameless = server({}, { name: '' })
  const router = new Router(new Map([['*:80', { names: new ServerNames(), default: nameless }]]))
  assert.equal(router.find('*:80', '', call), nameless)
  assert.equal(call.host, '')
  assert.deepEqual(router.keys(), ['*:80'])
  assert.equal(router.default('*:80'), nameless)
})
