// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how variables are written.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../feedback/call.ts'
import { addressBytes } from '../../feedback/client-address.ts'
import { declareMaps } from '../../feedback/map.ts'
import { Attempt } from '../../feedback/outcome.ts'
import { isoTime, localTime, logTime, seconds, utcTime } from '../../feedback/variables/clock.ts'
import { Variables } from '../../feedback/variables.ts'
import { group } from '../support/peers.ts'

function call(fields: Partial<Call> = {}): Call {
  return Object.assign(new Call(), fields)
}

/** The text for a call, with the variables that every configuration has. */
function text(source: string, fields: Partial<Call> = {}): string {
  return new Variables({ hostname: 'box', pid: 7, version: '1.2.3' }).compile(source)(call(fields))
}

test('a text without variables is what it is, and can be asked for at load', () => {
  const variables = new Variables()
  assert.equal(variables.compile('plain')(call()), 'plain')
  assert.equal(variables.compile('')(call()), '')
  assert.equal(variables.constant('plain'), 'plain')
  assert.equal(variables.constant('$uri'), undefined)
})

test('variables stand in a text with and without braces, wherever they are', () => {
  const fields = { method: 'PUT', uri: '/a', scheme: 'http' }
  assert.equal(text('$uri', fields), '/a')
  assert.equal(text('<$uri', fields), '</a')
  assert.equal(text('$uri>', fields), '/a>')
  assert.equal(text('$uri$scheme', fields), '/ahttp')
  assert.equal(text('${uri}x ${request_method}-$scheme.', fields), '/ax PUT-http.')
})

test('names are whatever their letter case, and a digit is a capture, followed by what it is followed by', () => {
  const fields = { uri: '/a', captures: ['all', 'one', undefined] }
  assert.equal(text('$URI $1 ${1} $10 [$2] [$9]', fields), '/a one one one0 [] []')
})

const mistakes: readonly (readonly [string, string])[] = [
  ['a $nope b', 'unknown "nope" variable'],
  ['${nope}', 'unknown "nope" variable'],
  ['costs 5$', 'invalid variable name'],
  ['$-', 'invalid variable name'],
  ['${}', 'invalid variable name'],
  ['${uri', 'the closing bracket in "uri" variable is missing'],
  ['$http_', 'unknown "http_" variable'],
  ['$constructor', 'unknown "constructor" variable'],
  ['$__proto__', 'unknown "__proto__" variable'],
  ['$0', 'unknown "0" variable'],
]
for (const [source, message] of mistakes) {
  test(`"${source}" is refused: ${message}`, () => {
    assert.throws(() => new Variables().compile(source), { message })
  })
}

const facts: readonly (readonly [string, string, Partial<Call>])[] = [
  ['$request', 'GET /a?b=%20 HTTP/1.0', { target: '/a?b=%20', httpVersion: '1.0' }],
  ['$request', 'POST / HTTP/1.1', { method: 'GET', originalMethod: 'POST' }],
  ['$request_uri $uri $document_uri', '/%61 /a /a', { target: '/%61', uri: '/a' }],
  ['$uri$is_args$args', '/?x=1', { args: 'x=1' }],
  ['$uri$is_args$query_string', '/', {}],
  ['$hostname $pid $nginx_version $angie_version', 'box 7 1.2.3 1.2.3', {}],
  ['$server_protocol $scheme $https', 'HTTP/1.1 https on', { scheme: 'https' }],
  ['[$https]', '[]', {}],
  ['$remote_addr:$remote_port', '192.0.2.1:9', { remoteAddr: '192.0.2.1', remotePort: '9' }],
  ['$realip_remote_addr', '10.0.0.1', { realipRemoteAddr: '10.0.0.1' }],
  ['$binary_remote_addr', '\x7f\x00\x00\x01', { remoteAddr: '127.0.0.1' }],
  ['$remote_user', 'ann', { rawHeaders: ['Authorization', 'Basic YW5uOnNlY3JldA=='] }],
  ['[$remote_user]', '[]', { rawHeaders: ['Authorization', 'Bearer YW5uOnNlY3JldA=='] }],
  ['$connection/$connection_requests', '12/3', { connection: 12, connectionRequests: 3 }],
  ['$connection_time', '1.500', { connectedAt: 1000, endedAt: 2500 }],
  ['$request_time', '0.123', { startedAt: 1000, endedAt: 1123.9 }],
  ['$content_length $content_type', '5 a/b', { rawHeaders: ['content-length', '5', 'Content-Type', 'a/b'] }],
  ['$status $bytes_sent $body_bytes_sent', '200 150 50', { status: 200, bytesSent: 150, bodyBytesSent: 50 }],
  ['$status', '000', {}],
  ['$request_completion', 'OK', { completed: true }],
  ['$request_body', 'h\xe9', { body: Buffer.from('h\xe9', 'latin1') }],
  ['$proxy_host:$proxy_port', 'backend:80', { proxyHost: 'backend', proxyPort: '80' }],
  ['$proxy_add_x_forwarded_for', '1.1.1.1', { remoteAddr: '1.1.1.1' }],
  [
    '$proxy_add_x_forwarded_for',
    '3.3.3.3, 2.2.2.2, 1.1.1.1',
    { remoteAddr: '1.1.1.1', rawHeaders: ['X-Forwarded-For', '3.3.3.3', 'x-forwarded-for', '2.2.2.2'] },
  ],
  ['$upstream_probe $upstream_probe_body', 'ready ok', { probe: 'ready', probeBody: 'ok' }],
  ['$upstream_queue_time', '0.250', { queueMs: 250 }],
  ['[$proxy_protocol_addr$limit_rate$upstream_cache_status]', '[]', {}],
]
for (const [source, expected, fields] of facts) {
  test(`${source} is ${JSON.stringify(expected)} for ${JSON.stringify(Object.keys(fields))}`, () => {
    assert.equal(text(source, fields), expected)
  })
}

test('a request keeps its id, and others have other ones', () => {
  const read = new Variables().compile('$request_id')
  const first = call()
  assert.match(read(first), /^[0-9a-f]{32}$/)
  assert.equal(read(first), read(first))
  const ids = new Set(Array.from({ length: 200 }, () => read(call())))
  assert.equal(ids.size, 200)
})

test('request headers are found by name with underscores, several lines joined', () => {
  const rawHeaders = ['X-Id', 'a', 'x-ID', 'b', 'X_Id', 'c', 'Cookie', 'p=1', 'cookie', 'q=2', 'X-I', 'no']
  assert.equal(text('$http_x_id', { rawHeaders }), 'a, b, c')
  assert.equal(text('$http_cookie', { rawHeaders }), 'p=1; q=2')
  assert.equal(text('[$http_other]', { rawHeaders }), '[]')
})

test('names of object properties are ordinary names of headers, arguments and cookies', () => {
  const source =
    '$http_constructor|$arg___proto__|$cookie_tostring|$sent_http_constructor|$upstream_http_valueof'
  assert.equal(text(source), '||||')
  const fields = { rawHeaders: ['constructor', 'h', 'cookie', 'toString=c'], args: '__proto__=a' }
  assert.equal(text(source, fields), 'h|a|c||')
})

test('an argument is the first of its name that has a value, undecoded', () => {
  const args = 'xa=0&a&A=%20x&a=2&b=&=9'
  assert.equal(text('$arg_a|$arg_b|$arg_xa|$arg_c', { args }), '%20x||0|')
  assert.equal(text('$arg_a', { args: 'b=a=1&a=2=3' }), '2=3')
})

test('a cookie is found by its whole name among several lines', () => {
  const rawHeaders = ['Cookie', 'xsid=0; sid = a b ;sid=2', 'Cookie', 'other=z']
  assert.equal(text('$cookie_sid|$cookie_other|$cookie_si', { rawHeaders }), 'a b |z|')
})

test('what was sent to the client can be read', () => {
  const fields = { sentHeaders: ['Content-Type', 'a/b', 'X-A', '1'], sentTrailers: ['Grpc-Status', '0'] }
  assert.equal(text('$sent_http_content_type|$sent_http_x_a|$sent_trailer_grpc_status', fields), 'a/b|1|0')
})

// What is told of attempts.

const backend = group([1, { track: 'canary' }])

function attempt(index: number | undefined, fields: Partial<Attempt> = {}): Attempt {
  const peer = index === undefined ? undefined : backend.peers[index]
  return Object.assign(new Attempt(backend, peer, 0, 'least_time'), fields)
}

const failed = attempt(0, {
  ending: 'error',
  reason: 'refused',
  status: 502,
  responseMs: 1.7,
  sticky: 'MISS',
})
const answered = attempt(1, {
  ending: 'ok',
  status: 200,
  connectMs: 0,
  headerMs: 12,
  responseMs: 1030,
  bodyLength: 5,
  bytesSent: 80,
  bytesReceived: 120,
  pick: 'explored',
  sticky: 'NEW',
  headers: ['X-Load', '7', 'Set-Cookie', 'sidx=0', 'Set-Cookie', 'SID=abc; Path=/'],
  trailers: ['X-Sum', '9'],
})
const running = attempt(1, { status: 200, connectMs: 1, headerMs: 2 })
const nobody = attempt(undefined, { ending: 'no_live', status: 502, pick: '' })

const lists: readonly (readonly [string, string, string, string, string])[] = [
  // variable, not proxied, failed and answered, a second run, while the answer is passed on
  ['upstream_addr', '', 'a, b', 'a : backend, b', 'b'],
  ['upstream_status', '', '502, 200', '502 : 502, 200', '200'],
  ['upstream_connect_time', '', '-, 0.000', '- : -, 0.000', '0.001'],
  ['upstream_header_time', '', '-, 0.012', '- : -, 0.012', '0.002'],
  ['upstream_response_time', '', '0.001, 1.030', '0.001 : 0.000, 1.030', '-'],
  ['upstream_response_length', '', '0, 5', '0 : 0, 5', '0'],
  ['upstream_bytes_sent', '', '0, 80', '0 : 0, 80', '0'],
  ['upstream_bytes_received', '', '0, 120', '0 : 0, 120', '0'],
  ['upstream_reason', '', 'refused, -', 'refused : no_live, -', '-'],
  ['upstream_pick', '', 'least_time, explored', 'least_time : -, explored', 'least_time'],
  ['upstream_sticky_status', '', 'MISS, NEW', 'MISS : -, NEW', ''],
  ['upstream_track', '', 'canary', 'canary', 'canary'],
  ['upstream_http_x_load', '', '7', '7', ''],
  ['upstream_cookie_sid', '', 'abc', 'abc', ''],
  ['upstream_trailer_x_sum', '', '9', '9', ''],
]
for (const [name, none, two, runs, now] of lists) {
  test(`$${name}: empty when not proxied, an item an attempt, a colon between runs, unknown while it runs`, () => {
    assert.deepEqual(
      [
        text(`$${name}`),
        text(`$${name}`, { attempts: [failed, answered] }),
        text(`$${name}`, { attempts: [failed, nobody, answered], runs: [1] }),
        text(`$${name}`, { attempts: [running] }),
      ],
      [none, two, runs, now],
    )
  })
}

test('the reason for nobody is the word of the denial where it ended the request', () => {
  const fields = { attempts: [failed, nobody], denial: 'overflow' }
  assert.equal(text('$upstream_reason', fields), 'refused, overflow')
})

test('a header of an earlier answer is not taken for one of the last attempt', () => {
  assert.equal(text('[$upstream_http_x_load]', { attempts: [answered, failed] }), '[]')
})

// What configurations declare.

test('a declared variable is empty until it is set, one call apart from another', () => {
  const variables = new Variables()
  const set = variables.declareSet('Color')
  const read = variables.compile('[$color]')
  const [one, two] = [call(), call()]
  set(one, 'red')
  assert.equal(read(one), '[red]')
  assert.equal(read(two), '[]')
  variables.declareSet('color')(two, 'blue')
  assert.equal(read(two), '[blue]')
})

test('what every configuration has cannot be declared, except the arguments, which can be set', () => {
  const variables = new Variables()
  assert.throws(() => variables.declareSet('host'), { message: 'the duplicate "host" variable' })
  assert.throws(() => variables.declareMap('status', () => ''), {
    message: 'the duplicate "status" variable',
  })
  const request = call({ args: 'a=1' })
  variables.declareSet('args')(request, 'b=2')
  assert.equal(variables.compile('$args $arg_b')(request), 'b=2 2')
})

test('captures of a match are kept by number and by name, until the next match', () => {
  const variables = new Variables()
  const regex = /^\/(?<lang>..)(?:-(?<region>..))?\/(.*)$/
  const keep = variables.declareCaptures(['lang', 'region'])
  const keepOther = variables.declareCaptures([])
  const read = variables.compile('$lang|$region|$1|$3')
  const request = call()
  keep(request, regex.exec('/de-ch/x')!)
  assert.equal(read(request), 'de|ch|de|x')
  keep(request, regex.exec('/fr/y')!)
  assert.equal(read(request), 'fr||fr|y')
  keepOther(request, /(z)/.exec('z')!)
  assert.equal(read(request), 'fr||z|')
})

test('a computed variable is computed once a request, a volatile one each time', () => {
  const variables = new Variables()
  let computed = 0
  const count = () => `${++computed}`
  variables.declareMap('once', count)
  variables.declareMap('always', count, true)
  const read = variables.compile('$once$once$always$always')
  assert.equal(read(call()), '1123')
  assert.equal(read(call()), '4456')
})

test('a value that was set goes before a computed one', () => {
  const variables = new Variables()
  variables.declareMap('v', () => 'computed')
  const set = variables.declareSet('v')
  const request = call()
  assert.equal(variables.compile('$v')(request), 'computed')
  set(request, 'set')
  assert.equal(variables.compile('$v')(request), 'set')
})

test('variables that read each other in a circle end, finding nothing where the circle closes', () => {
  const variables = new Variables()
  variables.declareSet('a')
  variables.declareSet('b')
  variables.declareMap('a', variables.compile('a$b'))
  variables.declareMap('b', variables.compile('b$a'), true)
  assert.equal(variables.compile('$a')(call()), 'ab')
  assert.equal(variables.compile('$b')(call()), 'ba')
})

test('what a text is made of is found through maps, sets and captures, and round a circle', () => {
  const variables = new Variables()
  const http = {
    $good: { source: '$inner', values: { '~^(?<part>.)': '$1', x: '$from_value' } },
    $inner: { source: '$upstream_probe', default: '1' },
    $other: { source: '$uri', default: '$good_luck' },
    $good_luck: { source: '$host' },
    $round: { source: '$about' },
    $about: { source: '${round}' },
  }
  variables.declareSet('from_value')
  variables.depends('From_Value', ['a$http_x_b$'])
  declareMaps(http, variables)
  const involves = (text: string, name: string) => variables.involves(text, (one) => one === name)
  assert.equal(involves('$upstream_probe', 'upstream_probe'), true)
  for (const text of ['$inner', '$GOOD', 'a${good}b', '$part'])
    assert.equal(involves(text, 'upstream_probe'), true, text)
  assert.equal(involves('$good', 'http_x_b'), true)
  for (const text of ['$other', '$round', '$uri', 'upstream_probe', '']) {
    assert.equal(involves(text, 'upstream_probe'), false, text)
  }
})

test('a fresh text is evaluated anew for each attempt, and leaves no trace', () => {
  const variables = new Variables()
  declareMaps(
    { $level: { source: '$upstream_http_x_load', default: 'none', values: { '~^(.)': 'l$1' } } },
    variables,
  )
  const request = call({ captures: ['kept'] })
  const once = variables.compile('$level')
  const fresh = variables.fresh('$level')
  assert.equal(once(request), 'none')
  const upstream = group([1])
  for (const load of ['5', '7']) {
    const attempt = new Attempt(upstream, upstream.peers[0], 0, '')
    attempt.headers = ['X-Load', load]
    request.attempts.push(attempt)
    assert.equal(fresh(request), `l${load}`)
    assert.equal(once(request), 'none')
    assert.deepEqual(request.captures, ['kept'])
  }
  assert.equal(variables.fresh('$uri')(call({ uri: '/a' })), '/a')
})

test('the program can add variables and prefixes of its own; the longest prefix that fits counts', () => {
  const variables = new Variables()
  variables.define('orca_rps', () => '12')
  variables.definePrefix('orca_named_', (rest) => () => `named ${rest}`)
  variables.definePrefix('orca_', (rest) => () => `other ${rest}`)
  assert.equal(variables.compile('$orca_rps|$orca_named_Queue|$orca_x')(call()), '12|named queue|other x')
  assert.equal(variables.has('orca_'), false)
  assert.equal(variables.has('ORCA_any'), true)
})

test('the names in a text can be asked for', () => {
  assert.deepEqual(new Variables().names('a$uri${Arg_x}$1'), ['uri', 'arg_x', '1'])
})

test('spans are cut to whole milliseconds and never negative', () => {
  assert.deepEqual([0, 0.9, 7, 45.99, 999.9, 61_005, -3].map(seconds), [
    '0.000',
    '0.000',
    '0.007',
    '0.045',
    '0.999',
    '61.005',
    '0.000',
  ])
})

test('moments are written in three forms and in the zone of the machine', () => {
  const when = new Date(2026, 10, 3, 4, 5, 6).getTime()
  assert.match(localTime(when + 999), /^03\/Nov\/2026:04:05:06 [+-]\d{4}$/)
  assert.match(isoTime(when), /^2026-11-03T04:05:06[+-]\d\d:\d\d$/)
  assert.equal(logTime(when), '2026/11/03 04:05:06')
  assert.equal(logTime(when + 1000), '2026/11/03 04:05:07')
  assert.equal(Date.parse(isoTime(when)), when)
  for (const ms of [0, 7, 45, 999]) assert.equal(utcTime(when + ms), new Date(when + ms).toISOString())
})

test('addresses become their bytes', () => {
  const hex = (address: string) => addressBytes(address)?.toString('hex')
  assert.equal(hex('192.0.2.255'), 'c00002ff')
  assert.equal(hex('::'), '0'.repeat(32))
  assert.equal(hex('::1'), `${'0'.repeat(31)}1`)
  assert.equal(hex('2001:db8::a:0:1'), '20010db8000000000000000a00000001')
  assert.equal(hex('::ffff:1.2.3.4'), '00000000000000000000ffff01020304')
  assert.equal(hex('fe80::1%eth0'), 'fe800000000000000000000000000001')
  assert.equal(hex('unix:'), undefined)
  assert.equal(hex('1.2.3'), undefined)
})
