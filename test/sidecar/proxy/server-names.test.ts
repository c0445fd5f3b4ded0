import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Variables } from '../../../feedback/variables.ts'
import { ServerNames } from '../../../sidecar/proxy/server-names.ts'
import { callFor, matcher } from '../../support/call.ts'

/** Names, in file order, each of the server of the same text. */
function named(...names: string[]): (host: string) => string | undefined {
  const table = new ServerNames<string>()
  for (const name of names) table.add(name.startsWith('~') ? matcher(name.slice(1)) : name, name)
  return (host) => table.find(host, callFor('/'))
}

test('an exact name goes before a beginning star, that before an ending one, that before an expression', () => {
  const find = named('~^www\\.', 'www.*', '*.example.com', 'www.example.com')
  assert.equal(find('www.example.com'), 'www.example.com')
  assert.equal(find('a.example.com'), '*.example.com')
  assert.equal(find('www.example.org'), 'www.*')
  assert.equal(named('~^www\\.', '~example')('www.example.net'), '~^www\\.')
})

test('of two stars the longer name wins', () => {
  const find = named('*.com', '*.example.com', 'www.*', 'www.example.*')
  assert.equal(find('b.example.com'), '*.example.com')
  assert.equal(find('b.com'), '*.com')
  assert.equal(find('www.example.net'), 'www.example.*')
})

test('a star stands for at least one label', () => {
  const find = named('*.example.com')
  assert.equal(find('example.com'), undefined)
  assert.equal(find('.example.com'), undefined)
  assert.equal(find('a.b.example.com'), '*.example.com')
})

test('a beginning dot is the name and all below it', () => {
  const find = named('.example.com')
  assert.equal(find('example.com'), '.example.com')
  assert.equal(find('a.example.com'), '.example.com')
  assert.equal(find('aexample.com'), undefined)
})

test('an empty name is for requests without a host, and no other name is', () => {
  assert.equal(named('', '~.*')(''), '')
  assert.equal(named('~.*', '*.com')(''), undefined)
})

test('names are compared whatever their letter case, and the first of two equal ones has it', () => {
  const table = new ServerNames<string>()
  table.add('Example.COM', 'first')
  table.add('example.com', 'second')
  assert.equal(table.find('example.com', callFor('/')), 'first')
})

test('names that only look like members of an object are nobody', () => {
  const find = named('a')
  assert.equal(find('constructor'), undefined)
  assert.equal(find('__proto__'), undefined)
})

test('an expression leaves its captures on the call', () => {
  const variables = new Variables()
  const table = new ServerNames<string>()
  table.add(matcher('^(?<user>\\w+)\\.(\\w+)$', variables), 'x')
  const call = callFor('/')
  assert.equal(table.find('alice.example', call), 'x')
  assert.equal(variables.compile('$user-$2')(call), 'alice-example')
})
