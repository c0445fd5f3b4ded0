import assert from 'node:assert/strict'
import { test } from 'node:test'
import { passedHead } from '../../../sidecar/proxy/answer-headers.ts'
import {
  intercepted,
  type LocalAnswer,
  type LocalContent,
  localResponse,
} from '../../../sidecar/proxy/respond.ts'
import type { ErrorPage, Settings } from '../../../sidecar/proxy/route.ts'
import { callFor } from '../../support/call.ts'
import { added, field, settings, variables } from '../../support/location-settings.ts'

const client = { host: 'front.example', serverPort: '8080' }

const pages = (entries: Record<number, [to: string, status?: number | undefined]>): Settings =>
  settings({
    errorPages: new Map(
      Object.entries(entries).map(([code, [to, status]]): [number, ErrorPage] => [
        Number(code),
        { status, to: variables.compile(to) },
      ]),
    ),
  })

type Response = Extract<LocalAnswer, { kind: 'response' }>

function response(status: number, content: LocalContent = {}, use = settings(), call = callFor('/', client)) {
  const answer = localResponse(call, use, status, content)
  assert.equal(answer.kind, 'response')
  // The assertion above says so.
  return answer as Response
}

test('a failure has a small page with our name at its foot', () => {
  const { status, headers, body } = response(502)
  assert.equal(status, 502)
  assert.match(String(body), /<h1>502 Bad Gateway<\/h1>.*evenkeel/s)
  assert.equal(field(headers, 'content-type'), 'text/html')
  assert.equal(field(headers, 'content-length'), String(body?.length))
  assert.equal(field(headers, 'server'), 'evenkeel')
  assert.match(field(headers, 'date') ?? '', / GMT$/)
  assert.match(String(response(504).body), /504 Gateway Time-out/)
  assert.match(String(response(405).body), /405 Not Allowed/)
})

test('a status nobody knows has no page', () => {
  const { status, body, headers } = response(599)
  assert.deepEqual([status, body, field(headers, 'content-length')], [599, undefined, '0'])
})

test('HEAD gets the length and no body', () => {
  const { headers, body } = response(404, {}, settings(), callFor('/', { method: 'HEAD' }))
  assert.equal(body, undefined)
  assert.ok(Number(field(headers, 'content-length')) > 0)
})

test('a text has the default type, or that of a name in the path', () => {
  const plain = response(200, { text: 'h\xe9' })
  assert.equal(String(plain.body?.toString('latin1')), 'h\xe9')
  assert.equal(field(plain.headers, 'content-type'), 'text/plain')
  assert.equal(field(plain.headers, 'content-length'), '2')
  const json = response(200, { text: '{}' }, settings({ defaultType: 'application/json' }))
  assert.equal(field(json.headers, 'content-type'), 'application/json')
  const html = response(200, { text: '' }, settings(), callFor('/a.HTML'))
  assert.equal(field(html.headers, 'content-type'), 'text/html')
  const typed = response(200, { text: '{}', type: 'application/json' })
  assert.equal(field(typed.headers, 'content-type'), 'application/json')
})

test('204 and 304 have neither body nor length', () => {
  for (const status of [204, 304]) {
    const { headers, body } = response(status, { text: 'x' })
    assert.deepEqual(
      [body, field(headers, 'content-length'), field(headers, 'content-type')],
      [undefined, undefined, undefined],
    )
  }
})

test('a redirect to a path of this server is made absolute', () => {
  const { headers, body } = response(301, { location: '/sub/?a=1' })
  assert.equal(field(headers, 'location'), 'http://front.example:8080/sub/?a=1')
  assert.match(String(body), /301 Moved Permanently/)
  assert.equal(field(response(302, { location: 'https://h/x' }).headers, 'location'), 'https://h/x')
})

test('line breaks in a location or a field cannot begin another field', () => {
  const use = settings({ addHeaders: [added('X-Uri', '$uri')] })
  const call = callFor('/a%0D%0AX-Evil:%201', client)
  const { headers } = response(302, { location: `http://h${call.uri}` }, use, call)
  assert.equal(field(headers, 'location'), 'http://h/a%0D%0AX-Evil:%201')
  assert.equal(field(headers, 'x-uri'), '/a  X-Evil: 1')
})

test('bad requests and broken ones end the connection', () => {
  const closes = (status: number) => response(status).close
  assert.deepEqual([400, 408, 413, 414, 431, 500].map(closes), Array(6).fill(true))
  assert.deepEqual([301, 403, 404, 405, 502, 504].map(closes), Array(6).fill(false))
  assert.equal(response(400, { text: 'said by return' }).close, false)
})

test('nginx’s own words for bad requests are 400 to a client', () => {
  assert.equal(response(495).status, 400)
  assert.equal(response(0).status, 500)
})

test('an error page with a path becomes an internal redirect, and the status stays that of the failure', () => {
  const call = callFor('/')
  const answer = localResponse(call, pages({ 502: ['/50x.html?from=$uri'] }), 502)
  assert.deepEqual(answer, { kind: 'redirect', uri: '/50x.html', args: 'from=/' })
  assert.equal(response(200, { text: 'sorry' }, settings(), call).status, 502)
})

test('with = and a status that is the answer’s status, with = alone the page’s own', () => {
  const fixed = callFor('/')
  localResponse(fixed, pages({ 502: ['@fallback', 200] }), 502)
  assert.equal(passedHead(fixed, settings(), 503, []).status, 200)
  const own = callFor('/')
  localResponse(own, pages({ 404: ['/empty.gif', 0] }), 404)
  assert.equal(passedHead(own, settings(), 418, []).status, 418)
})

test('nginx’s own words for bad requests are 400 with an error page too, and $status says so there', () => {
  const call = callFor('/')
  const status = variables.compile('$status')
  assert.equal(status(call), '000')
  localResponse(call, pages({ 495: ['/bad'] }), 495)
  assert.equal(status(call), '400')
  assert.equal(response(200, { text: 'sorry' }, settings(), call).status, 400)
})

test('a named page keeps the method, a path makes a GET of it', () => {
  const method = (to: string, method: string) => {
    const call = callFor('/', { method })
    localResponse(call, pages({ 502: [to] }), 502)
    return `${call.method} ${call.originalMethod}`
  }
  assert.equal(method('@fallback', 'POST'), 'POST undefined')
  assert.equal(method('/x', 'POST'), 'GET POST')
  assert.equal(method('/x', 'HEAD'), 'HEAD undefined')
})

test('an error page on another host is a redirect for the client', () => {
  const answer = (status?: number) => {
    const { status: given, headers } = response(403, {}, pages({ 403: ['http://h/denied', status] }))
    return `${given} ${field(headers, 'location')}`
  }
  assert.equal(answer(), '302 http://h/denied')
  assert.equal(answer(301), '301 http://h/denied')
  assert.equal(answer(200), '302 http://h/denied')
})

test('a failure of the error page gets the built-in page', () => {
  const call = callFor('/')
  const use = pages({ 502: ['/a'], 404: ['/b'] })
  assert.equal(localResponse(call, use, 502).kind, 'redirect')
  assert.equal(response(404, {}, use, call).status, 404)
  assert.equal(response(502, {}, use, call).status, 502)
})

test('a text of return has no error page', () => {
  assert.equal(response(404, { text: 'gone' }, pages({ 404: ['/x'] })).status, 404)
})

test('added fields see the status that is sent, and cannot contradict the framing', () => {
  const use = settings({
    addHeaders: [added('X-Status', '$status', true), added('Content-Length', '5'), added('Connection', 'x')],
  })
  const { headers } = response(503, {}, use)
  assert.equal(field(headers, 'x-status'), '503')
  assert.equal(headers.filter((text) => /^content-length$/i.test(text)).length, 1)
  assert.equal(field(headers, 'connection'), undefined)
})

test('answers of peers are replaced only from 300 on, where asked, and where there is a page', () => {
  const use = { ...pages({ 404: ['/x'], 200: ['/y'] }), interceptErrors: true }
  assert.ok(intercepted(use, 404))
  assert.ok(!intercepted(use, 503))
  assert.ok(!intercepted(use, 200))
  assert.ok(!intercepted({ ...use, interceptErrors: false }, 404))
})
