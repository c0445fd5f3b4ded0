import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  escapeArgs,
  escapeUri,
  fitForLine,
  lowerCase,
  normalise,
  parseHost,
  parseTarget,
  unescapeRedirect,
} from '../../../sidecar/proxy/uri.ts'
import { fc } from '../../support/property.ts'

test('a path is decoded, its slashes merged and its dots resolved', () => {
  const paths: Record<string, string> = {
    '/': '/',
    '/a/b': '/a/b',
    '/a%20b': '/a b',
    '/a%2fb': '/a/b',
    '/a//b///c': '/a/b/c',
    '/a/./b': '/a/b',
    '/a/../b': '/b',
    '/a/b/..': '/a/',
    '/a/.': '/a/',
    '/a/b/../../': '/',
    '/.../x': '/.../x',
    '/..x/y': '/..x/y',
    '/.x': '/.x',
    '/a%2e%2e': '/a..',
    '/a/%2E%2e/b': '/b',
    '/a/.%2e/b': '/b',
    '/a%2f..%2fb': '/b',
    '/a%25b': '/a%b',
    '/a%2525': '/a%25',
    '/a%3Fb%23': '/a?b#',
    '/a\\b': '/a\\b',
    '/a;b=1//c': '/a;b=1/c',
  }
  for (const [path, expected] of Object.entries(paths)) assert.equal(normalise(path), expected, path)
})

test('slashes stay when they are not to be merged', () => {
  assert.equal(normalise('/a//b', false), '/a//b')
  assert.equal(normalise('//a/../b', false), '//b')
  assert.equal(normalise('/a//..', false), '/a/')
})

test('a path that leads out of the root, or cannot be read, is none', () => {
  for (const path of ['/..', '/../a', '/a/../../b', '/%2e%2e/a', '/a%', '/a%2', '/a%zz', '/a%00b']) {
    assert.equal(normalise(path), undefined, path)
  }
})

test('a target in origin form', () => {
  assert.deepEqual(parseTarget('/a%20b/?x=%41&y'), {
    uri: '/a b/',
    args: 'x=%41&y',
    origin: '/a%20b/?x=%41&y',
    authority: undefined,
  })
  assert.equal(parseTarget('/a?x=/../y')?.uri, '/a')
})

test('a target in absolute form keeps its host, and gets a slash where its path is empty', () => {
  assert.deepEqual(parseTarget('http://h:81/a'), {
    uri: '/a',
    args: '',
    origin: '/a',
    authority: 'h:81',
  })
  assert.equal(parseTarget('HTTP://h')?.origin, '/')
  const query = parseTarget('http://h?token=1')
  assert.equal(query?.origin, '/?token=1')
  assert.equal(query?.uri, '/')
  assert.equal(query?.args, 'token=1')
})

test('a fragment is cut off, from what is sent on too', () => {
  assert.equal(parseTarget('/public#/../admin')?.origin, '/public')
  assert.equal(parseTarget('/a?x=1#y')?.origin, '/a?x=1')
  assert.equal(parseTarget('/a?x=1#y')?.args, 'x=1')
})

test('what is no target', () => {
  for (const target of [
    '',
    'x',
    '*',
    '@evil/',
    'http:/a',
    'http://',
    'ftp://h/',
    'http://h#x',
    '/a b',
    '/a\r\nX: y',
    '/\x7f',
    '/\0',
  ]) {
    assert.equal(parseTarget(target), undefined, JSON.stringify(target))
  }
})

test('no target makes the parser throw, and no path keeps a dot segment', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      '/',
      '.',
      '..',
      '%2e',
      '%2E',
      '%2f',
      '%5c',
      '//',
      '%',
      '%25',
      '?',
      '#',
      'a',
      '%00',
      '\\',
      ';',
    ),
    fc.string({ maxLength: 3 }),
  )
  const target = fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join('')}`)
  fc.assert(
    fc.property(target, fc.boolean(), (text, merge) => {
      const parsed = parseTarget(text, merge)
      if (!parsed) return
      assert.ok(parsed.uri.startsWith('/'))
      assert.ok(!parsed.uri.split('/').some((segment) => segment === '..' || segment === '.'), parsed.uri)
      if (merge) assert.ok(!parsed.uri.includes('//'), parsed.uri)
      assert.ok(!parsed.origin.includes('#'))
    }),
    { numRuns: 2000 },
  )
})

test('a path that was escaped again reads as the same path', () => {
  const bytes = fc
    .array(fc.integer({ min: 1, max: 255 }), { maxLength: 20 })
    .map((codes) => `/x${String.fromCharCode(...codes)}`)
  fc.assert(
    fc.property(bytes, (path) => {
      const parsed = parseTarget(escapeUri(path))
      assert.ok(parsed === undefined || parsed.args === '')
      if (!/\/\/|\/\./.test(path)) assert.equal(parsed?.uri, path)
    }),
    { numRuns: 1000 },
  )
})

test('a path is escaped as nginx does it, arguments a little more', () => {
  assert.equal(escapeUri('/a b"<>\\^`{|}?#%\xe9\x01'), '/a%20b%22%3C%3E%5C%5E%60%7B%7C%7D%3F%23%25%E9%01')
  assert.equal(escapeUri("/-._~!$&'()*+,;=:@[]"), "/-._~!$&'()*+,;=:@[]")
  assert.equal(escapeArgs('a&b+c;d e/'), 'a%26b%2Bc%3Bd%20e/')
})

test('a text with line breaks cannot end a line', () => {
  assert.equal(fitForLine('/a b\r\nX: y'), '/a%20b%0D%0AX:%20y')
  assert.equal(fitForLine('/a\xe9%20'), '/a\xe9%20')
})

test('a redirect has its printable escapes undone up to the question mark', () => {
  assert.equal(unescapeRedirect('http://h/a%2Fb%20c%E9%25?x=%2F'), 'http://h/a/b%20c%E9%25?x=%2F')
  assert.equal(unescapeRedirect('/a%3Fb%2F'), '/a?b%2F')
})

test('hosts are read in lower case without port and final dot', () => {
  assert.equal(parseHost('Example.COM:8080'), 'example.com')
  assert.equal(parseHost('example.com.'), 'example.com')
  assert.equal(parseHost('[::1]:80'), '[::1]')
  assert.equal(parseHost('a_b'), 'a_b')
  for (const bad of ['', '.', 'a b', 'a/b', 'a@b', 'a..b', 'a:b', '[::1', 'a\0', 'h:80:90', '::1']) {
    assert.equal(parseHost(bad), undefined, bad)
  }
  assert.equal(lowerCase('\xc9A'), '\xc9a')
})
