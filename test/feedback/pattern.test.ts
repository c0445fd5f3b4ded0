import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compilePattern, PatternError } from '../../feedback/pattern.ts'

const matches = (source: string, text: string, anyCase = false) =>
  compilePattern(source, anyCase).regex.test(text)

test('named groups in all of their spellings are found, in order', () => {
  const { names, captures, regex } = compilePattern(`^/(?<a>\\w+)/(?P<b>\\d+)/(?'c'.)/(.)(?:x)?$`)
  assert.deepEqual(names, ['a', 'b', 'c'])
  assert.equal(captures, 4)
  assert.deepEqual({ ...regex.exec('/one/22/y/z')!.groups }, { a: 'one', b: '22', c: 'y' })
})

test('options at the beginning are flags', () => {
  assert.ok(matches('(?i)^/ABC$', '/abc'))
  assert.ok(matches('^/ABC$', '/abc', true))
  assert.ok(!matches('^/ABC$', '/abc'))
  assert.ok(matches('(?s)a.b', 'a\nb'))
})

test('a dot takes a carriage return and no line feed', () => {
  assert.ok(matches('^a.b$', 'a\rb'))
  assert.ok(!matches('^a.b$', 'a\nb'))
})

test('what JavaScript spells otherwise means the same', () => {
  assert.ok(matches('\\Aabc\\z', 'abc'))
  assert.ok(!matches('\\Aabc\\z', 'abcd'))
  assert.ok(matches('^[]x]+$', ']x]'))
  assert.ok(matches('^[^]x]+$', 'abc'))
  assert.ok(!matches('^[^]x]+$', 'a]c'))
  assert.ok(matches('^[[:alpha:]_]+[[:digit:]]$', 'ab_1'))
  assert.ok(matches('^\\Qa.b\\E$', 'a.b'))
  assert.ok(!matches('^\\Qa.b\\E$', 'axb'))
  assert.ok(matches('^\\x{41}\\x42$', 'AB'))
  assert.ok(matches('^(?<q>.)\\k{q}(?P=q)\\g1$', 'zzzz'))
  assert.ok(matches('^a\\hb$', 'a\tb'))
  assert.ok(matches('^a(?#a comment)b$', 'ab'))
  assert.ok(matches('\\.php$', '/index.php'))
})

test('characters above ASCII are the bytes of their UTF-8', () => {
  const bytes = Buffer.from('/caf\u00e9', 'utf8').toString('latin1')
  assert.ok(matches('^/caf\u00e9$', bytes))
  // 0xA0 is the second byte of this one, and no space.
  assert.ok(!matches('\\s', Buffer.from('\u00e0', 'utf8').toString('latin1')))
  assert.ok(matches('^[\\S]+$', Buffer.from('\u00e0', 'utf8').toString('latin1')))
})

test('bad expressions, and what is not to be had, are refused with their text', () => {
  for (const source of [
    '(',
    'a)',
    '[a',
    '[[:foo:]]',
    'a\\',
    '(?>a)',
    'a++',
    '(?R)',
    '\\Ka',
    '(?x)a b',
    '\\pL',
    '[\\R]',
  ]) {
    assert.throws(
      () => compilePattern(source),
      (error: unknown) =>
        error instanceof PatternError &&
        error.message.startsWith('regex compilation failed: ') &&
        error.message.endsWith(` in "${source}"`),
      source,
    )
  }
})
