import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  formatAddress,
  formatLocation,
  grpcAddress,
  hasVariables,
  listenAddress,
  locationKey,
  proxyAddress,
  serverAddress,
} from '../../../sidecar/config/address.ts'

test('takes the address of a server apart, with 80 as its port where none is written', () => {
  assert.deepEqual(serverAddress('127.0.0.1:8081'), { kind: 'tcp', host: '127.0.0.1', port: 8081 })
  assert.deepEqual(serverAddress('app_1.example.com'), { kind: 'tcp', host: 'app_1.example.com', port: 80 })
  assert.deepEqual(serverAddress('[::1]:81'), { kind: 'tcp', host: '::1', port: 81 })
  assert.deepEqual(serverAddress('[::1]'), { kind: 'tcp', host: '::1', port: 80 })
  assert.deepEqual(serverAddress('unix:/run/a.sock'), { kind: 'unix', path: '/run/a.sock' })
})

test('writes listening addresses in one way', () => {
  const written = {
    '8080': '*:8080',
    '*:80': '*:80',
    '127.0.0.1': '127.0.0.1:80',
    '[::]:81': '[::]:81',
    'unix:/a': 'unix:/a',
  }
  for (const [text, canonical] of Object.entries(written)) {
    assert.equal(formatAddress(listenAddress(text)), canonical)
    assert.equal(formatAddress(listenAddress(canonical)), canonical)
  }
})

test('takes a proxy_pass apart and leaves its URI as it is', () => {
  const parts = (url: string) => {
    const { authority, host, port, uri } = proxyAddress(url)
    return [authority, host, port, uri]
  }
  assert.deepEqual(parts('http://Backend'), ['Backend', 'backend', undefined, undefined])
  assert.deepEqual(parts('http://127.0.0.1:8000/v2/?a=/b'), [
    '127.0.0.1:8000',
    '127.0.0.1',
    8000,
    '/v2/?a=/b',
  ])
  assert.deepEqual(parts('HTTP://[::1]:81?x'), ['[::1]:81', '::1', 81, '?x'])
  assert.deepEqual(parts('http://unix:/run/a.sock:/x'), ['unix:/run/a.sock', '/run/a.sock', undefined, '/x'])
  assert.deepEqual(parts('http://unix:/run/a.sock'), [
    'unix:/run/a.sock',
    '/run/a.sock',
    undefined,
    undefined,
  ])
})

test('tells by the scheme whether TLS is spoken', () => {
  const secure = (url: string) => proxyAddress(url).secure
  assert.deepEqual(['http://a', 'https://a', 'HTTPS://unix:/a:/b'].map(secure), [false, true, true])
})

test('takes a grpc_pass apart, with and without a scheme', () => {
  const parts = (text: string) => {
    const { authority, host, unix, port, secure, uri } = grpcAddress(text)
    assert.equal(uri, undefined)
    return [authority, host, unix, port, secure]
  }
  assert.deepEqual(parts('Calls'), ['Calls', 'calls', false, undefined, false])
  assert.deepEqual(parts('grpc://[::1]:50051'), ['[::1]:50051', '::1', false, 50_051, false])
  assert.deepEqual(parts('GRPCS://a.example.com:443'), [
    'a.example.com:443',
    'a.example.com',
    false,
    443,
    true,
  ])
  assert.deepEqual(parts('grpcs://unix:/run/a:b'), ['unix:/run/a:b', '/run/a:b', true, undefined, true])
})

test('knows a text with variables', () => {
  assert.deepEqual(['$a', `x$\{b}`, '$1', 'a$', '$$', 'a'].map(hasVariables), [
    true,
    true,
    true,
    false,
    false,
    false,
  ])
})

test('takes keys of locations apart and writes them in one way', () => {
  const written = {
    '/a': ['prefix', '/a'],
    '= /a': ['exact', '/a'],
    '=/a': ['exact', '/a'],
    '^~ /a': ['prefix-only', '/a'],
    '~ a b': ['regex', 'a b'],
    '~*a': ['regex-any-case', 'a'],
    '@a': ['named', '@a'],
  }
  for (const [text, [kind, inner]] of Object.entries(written)) {
    assert.deepEqual(locationKey(formatLocation([text])), { kind, text: inner })
  }
  assert.equal(formatLocation(['=', '/a']), '= /a')
})
