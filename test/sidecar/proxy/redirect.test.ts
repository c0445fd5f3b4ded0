import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Variables } from '../../../feedback/variables.ts'
import { absoluteUrl, compileRedirect, type RedirectRule } from '../../../sidecar/proxy/redirect.ts'
import { callFor, matcher } from '../../support/call.ts'

const variables = new Variables()
const client = { host: 'front.example', serverPort: '8080', serverAddr: '127.0.0.1' }

const prefix = (from: string, to: string): RedirectRule => ({
  kind: 'prefix',
  from: variables.compile(from),
  to: variables.compile(to),
})
const regex = (source: string, to: string): RedirectRule => ({
  kind: 'regex',
  matches: matcher(source, variables),
  to: variables.compile(to),
})

function location(value: string, ...rules: RedirectRule[]): string {
  const redirect = compileRedirect(rules)
  assert.ok(redirect)
  return redirect(callFor('/', client), 'location', value)
}

test('no rules, no rewriting', () => {
  assert.equal(compileRedirect([]), undefined)
})

test('the beginning of a Location is replaced, by the first rule that fits', () => {
  const rules = [prefix('http://localhost:8000/two/', 'http://frontend/one/'), prefix('http://', 'ftp://')]
  assert.equal(location('http://localhost:8000/two/some/uri/', ...rules), 'http://frontend/one/some/uri/')
  assert.equal(location('http://other/', ...rules), 'ftp://other/')
  assert.equal(location('/relative', ...rules), '/relative')
})

test('a replacement without a host gets that of this server, and its port', () => {
  const rule = prefix('http://backend/', '/one/')
  assert.equal(location('http://backend/x?y', rule), 'http://front.example:8080/one/x?y')
})

test('an expression replaces the whole, with its captures and with variables', () => {
  assert.equal(
    location('http://h:8000/a/b', regex('^http://[^:]+:\\d+(/.*)$', 'http://$host$1')),
    'http://front.example/a/b',
  )
  assert.equal(location('HTTP://H/a', regex('*^http://h/', 'x')), 'x')
  assert.equal(location('HTTP://H/a', regex('^http://h/', 'x')), 'HTTP://H/a')
})

test('in Refresh the URL behind url= is rewritten, and the rest stays', () => {
  const redirect = compileRedirect([prefix('http://backend/', '/one/')])
  assert.equal(redirect?.(callFor('/'), 'refresh', '5; URL=http://backend/x'), '5; URL=/one/x')
  assert.equal(redirect?.(callFor('/'), 'refresh', '5'), '5')
  assert.equal(
    redirect?.(callFor('/', client), 'location', 'http://backend/login?url=http://backend/x'),
    'http://front.example:8080/one/login?url=http://backend/x',
  )
})

test('the port of an absolute URL is left out where it is the usual one', () => {
  assert.equal(absoluteUrl(callFor('/', { ...client, serverPort: '80' }), '/x'), 'http://front.example/x')
  assert.equal(
    absoluteUrl(callFor('/', { ...client, serverPort: '443', scheme: 'https' }), '/'),
    'https://front.example/',
  )
  assert.equal(absoluteUrl(callFor('/', { ...client, host: '' }), '/x'), 'http://127.0.0.1:8080/x')
})

test('a redirect to a path here says no port, or stays a path, where that is asked for', () => {
  const to = (path: string, absolute: boolean, port: boolean) => {
    const redirect = compileRedirect([prefix('http://backend/', path)], { absolute, port })
    return redirect?.(callFor('/', client), 'location', 'http://backend/x')
  }
  assert.equal(to('/a/', true, false), 'http://front.example/a/x')
  assert.equal(to('/a/', false, true), '/a/x')
  assert.equal(to('https://b/', false, false), 'https://b/x')
})
