import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type LocationEntry, Locations } from '../../../sidecar/proxy/locations.ts'
import { callFor, matcher } from '../../support/call.ts'

/** `= /x`, `^~ /x`, `~ re`, `~* re` or `/x`; `>` before it: a request without the final slash is redirected. */
type Level = { readonly [key: string]: Level }

function locations(level: Level): Locations<string> {
  return new Locations(
    Object.entries(level).map(([text, inner]): LocationEntry<string> => {
      const slashRedirect = text.startsWith('>')
      const key = slashRedirect ? text.slice(1) : text
      const [, mark = '', rest = key] = /^(=|\^~|~\*|~) (.*)$/.exec(key) ?? []
      const kinds = {
        '': 'prefix',
        '=': 'exact',
        '^~': 'prefix_no_regex',
        '~': 'regex',
        '~*': 'regex',
      } as const
      // The expression above yields these marks only.
      const kind = kinds[mark as keyof typeof kinds]
      return {
        kind,
        path: kind === 'regex' ? '' : rest,
        matches: kind === 'regex' ? matcher(mark === '~*' ? `*${rest}` : rest) : undefined,
        slashRedirect,
        inner: Object.keys(inner).length > 0 ? locations(inner) : undefined,
        value: key,
      }
    }),
  )
}

function find(level: Level, uri: string): string | undefined {
  const found = locations(level).find(uri, callFor('/'))
  return found?.kind === 'slash' ? `301 ${found.path}` : found?.value
}

test('the order is exact, longest prefix, regular expressions in file order', () => {
  const level: Level = {
    '/': {},
    '= /': {},
    '/documents/': {},
    '^~ /images/': {},
    '~* \\.(gif|jpg|jpeg)$': {},
    '~ \\.jpg$': {},
  }
  assert.equal(find(level, '/'), '= /')
  assert.equal(find(level, '/index.html'), '/')
  assert.equal(find(level, '/documents/document.html'), '/documents/')
  assert.equal(find(level, '/images/1.gif'), '^~ /images/')
  assert.equal(find(level, '/documents/1.JPG'), '~* \\.(gif|jpg|jpeg)$')
})

test('file order does not matter to prefixes, and does to regular expressions', () => {
  assert.equal(find({ '/a/b/': {}, '/a/': {}, '/': {} }, '/a/b/c'), '/a/b/')
  assert.equal(find({ '/': {}, '/a/': {}, '/a/b/': {} }, '/a/b/c'), '/a/b/')
  assert.equal(find({ '~ x': {}, '~ /x': {} }, '/x'), '~ x')
  assert.equal(find({ '~ /x': {}, '~ x': {} }, '/x'), '~ /x')
})

test('a prefix need not end with a segment', () => {
  assert.equal(find({ '/p': {} }, '/pq'), '/p')
  assert.equal(find({ '/p': {} }, '/P'), undefined)
})

test('a regular expression minds letter case unless told otherwise, and leaves its captures', () => {
  assert.equal(find({ '~ ^/a/(.*)$': {} }, '/A/x'), undefined)
  const call = callFor('/')
  locations({ '~* ^/a/(.*)$': {} }).find('/A/x', call)
  assert.equal(call.captures[1], 'x')
})

test('a longer prefix takes the right of ^~ away from a shorter one', () => {
  const level: Level = { '^~ /a/': {}, '/a/b/': {}, '~ c$': {} }
  assert.equal(find(level, '/a/c'), '^~ /a/')
  assert.equal(find(level, '/a/b/c'), '~ c$')
})

test('without a fitting location the server itself is left', () => {
  assert.equal(find({ '/a': {} }, '/b'), undefined)
  assert.equal(find({}, '/'), undefined)
})

test('inner locations are looked at inside of the longest prefix', () => {
  const level: Level = {
    '/': {},
    '/api/': { '= /api/x': {}, '/api/v1/': { '/api/v1/deep/': {} }, '~ \\.json$': {} },
    '~ ^/api/v1/.*\\.xml$': {},
  }
  assert.equal(find(level, '/api/x'), '= /api/x')
  assert.equal(find(level, '/api/v1/deep/a'), '/api/v1/deep/')
  assert.equal(find(level, '/api/v2/a.json'), '~ \\.json$')
  // An outer expression is asked when no inner one has matched.
  assert.equal(find(level, '/api/v1/a.xml'), '~ ^/api/v1/.*\\.xml$')
  assert.equal(find(level, '/api/other'), '/api/')
})

test('^~ inside does not keep outer expressions away, outside it does', () => {
  assert.equal(find({ '/a/': { '^~ /a/b/': {} }, '~ c$': {} }, '/a/b/c'), '~ c$')
  assert.equal(find({ '^~ /a/': { '/a/b/': {} }, '~ c$': {} }, '/a/b/c'), '/a/b/')
})

test('inner locations of a regular expression', () => {
  const level: Level = { '~ ^/u/': { '/u/a/': {}, '~ \\.png$': {} } }
  assert.equal(find(level, '/u/a/x'), '/u/a/')
  assert.equal(find(level, '/u/b.png'), '~ \\.png$')
  assert.equal(find(level, '/u/b'), '~ ^/u/')
})

test('a proxied prefix is found without its final slash, for a redirect', () => {
  const level: Level = { '/': {}, '>/sub/': {}, '~ sub': {} }
  assert.equal(find(level, '/sub'), '301 /sub/')
  assert.equal(find(level, '/subx'), '~ sub')
  assert.equal(find({ '/': {}, '/sub/': {} }, '/sub'), '/')
})

test('a location of its own for the path without slash stands before that redirect', () => {
  assert.equal(find({ '>/sub/': {}, '= /sub': {} }, '/sub'), '= /sub')
  assert.equal(find({ '>/sub/': {}, '/sub': {} }, '/sub'), '/sub')
  assert.equal(find({ '/': { '>/sub/': {} } }, '/sub'), '301 /sub/')
})
