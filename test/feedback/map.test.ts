import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../feedback/call.ts'
import { compileMap, declareMaps, type MapOptions } from '../../feedback/map.ts'
import { Variables } from '../../feedback/variables.ts'

/** What a map of `$http_key` gives for each text. */
function look(options: Omit<MapOptions, 'source'>, ...texts: string[]): string[] {
  const read = compileMap({ source: '$http_key', ...options }, new Variables())
  return texts.map((text) => read(withKey(text)))
}

function withKey(text: string): Call {
  return Object.assign(new Call(), { rawHeaders: ['Key', text] })
}

test('a literal is found whatever its letter case, and nothing else is', () => {
  assert.deepEqual(look({ values: { Red: '1', blue: '2' }, default: 'd' }, 'red', 'BLUE', 'reds', ''), [
    '1',
    '2',
    'd',
    'd',
  ])
})

test('without a default it is empty; an empty key is a key', () => {
  assert.deepEqual(look({ values: { a: '1' } }, 'b'), [''])
  assert.deepEqual(look({ values: { '': 'none' }, default: 'd' }, '', 'b'), ['none', 'd'])
})

test('names of object properties are ordinary keys', () => {
  const values = Object.fromEntries([['__proto__', 'p']])
  assert.deepEqual(look({ values, default: 'd' }, '__proto__', 'constructor', 'toString'), ['p', 'd', 'd'])
})

test('a literal goes before regular expressions, and those are tried in order', () => {
  const values = { '~^a': 'first', '~b$': 'second', '~*^C': 'any case', ab: 'literal' }
  assert.deepEqual(look({ values }, 'ab', 'axb', 'xb', 'cc', 'Ax'), [
    'literal',
    'first',
    'second',
    'any case',
    '',
  ])
})

test('a value may have variables, and the captures of its key by number and by name', () => {
  const values = { '~^/(?<user>[^/]+)/(.*)$': '$user:$2:$request_method', '~^(x)': '$1' }
  assert.deepEqual(look({ values, default: '<$http_key>' }, '/ann/a/b', 'xy', 'q'), [
    'ann:a/b:GET',
    'x',
    '<q>',
  ])
})

test('a backslash makes a literal of what would be something else', () => {
  const values = { '\\~a': 'tilde', '\\hostnames': 'word', '\\\\b': 'backslash' }
  assert.deepEqual(look({ values }, '~a', 'hostnames', '\\b', 'a'), ['tilde', 'word', 'backslash', ''])
})

test('with hostnames masks stand for hosts, the longest first, a tail before a head', () => {
  const values = {
    'www.example.com': 'exact',
    '*.example.com': 'tail',
    '*.a.example.com': 'longer tail',
    'www.*': 'head',
    'www.sub.*': 'longer head',
    '.both.org': 'both',
  }
  const hosts = [
    'www.example.com',
    'WWW.example.com.',
    'x.example.com',
    'x.y.a.example.com',
    'example.com',
    'www.other.net',
    'www.sub.net',
    'both.org',
    'a.both.org',
    'xboth.org',
    'www.',
    '',
  ]
  assert.deepEqual(look({ values, hostnames: true, default: '-' }, ...hosts), [
    'exact',
    'exact',
    'tail',
    'longer tail',
    '-',
    'head',
    'longer head',
    'both',
    'both',
    '-',
    '-',
    '-',
  ])
})

test('without hostnames a star is a star', () => {
  assert.deepEqual(look({ values: { '*.a': '1' }, default: '-' }, 'x.a', '*.a'), ['-', '1'])
})

test('keys and values are bytes: those of a configuration are its UTF-8', () => {
  const utf8 = Buffer.from('größe').toString('latin1')
  assert.deepEqual(look({ values: { größe: 'ß' } }, utf8), [Buffer.from('ß').toString('latin1')])
})

test('maps may read each other in any order, and are evaluated once a request', () => {
  const variables = new Variables()
  declareMaps(
    {
      $first: { source: '$second', values: { b: 'found $second' } },
      $second: { source: '$http_key', values: { a: 'b' } },
      $again: { source: '$http_key', values: { '~(.)': '$1' }, volatile: true },
    },
    variables,
  )
  const read = variables.compile('$first/$second/$again')
  const call = withKey('a')
  assert.equal(read(call), 'found b/b/a')
  call.rawHeaders = ['Key', 'z']
  assert.equal(read(call), 'found b/b/z')
})

test('a map that cannot be compiled says why', () => {
  const declare = (options: MapOptions) => () => declareMaps({ $v: options }, new Variables())
  assert.throws(declare({ source: '$nope' }), { message: 'unknown "nope" variable' })
  assert.throws(declare({ source: '$uri', values: { a: '$nope' } }), { message: 'unknown "nope" variable' })
  assert.throws(declare({ source: '$uri', values: { '~(': 'x' } }), /"\("/)
  assert.throws(() => declareMaps({ $host: { source: '$uri' } }, new Variables()), {
    message: 'the duplicate "host" variable',
  })
})
