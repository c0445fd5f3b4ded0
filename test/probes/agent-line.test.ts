import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readAgentLine } from '../../probes/agent-line.ts'
import { fc } from '../support/property.ts'

test('each word has its order', () => {
  assert.deepEqual(readAgentLine('75%').orders, { weightFactor: 0.75 })
  assert.deepEqual(readAgentLine('0%').orders, { weightFactor: 0 })
  assert.deepEqual(readAgentLine('weight:12').orders, { weight: 12 })
  assert.deepEqual(readAgentLine('weight:0').orders, { weight: 0 })
  assert.deepEqual(readAgentLine('weight:256').orders, { weight: 256 })
  assert.deepEqual(readAgentLine('weight:150%').orders, { weightFactor: 1.5 })
  assert.deepEqual(readAgentLine('maxconn:30').orders, { maxConns: 30 })
  assert.deepEqual(readAgentLine('maxconn:0').orders, { maxConns: 0 })
  for (const word of ['ready', 'drain', 'maint'] as const) {
    assert.deepEqual(readAgentLine(word).orders, { administrative: word })
  }
  for (const word of ['down', 'fail', 'failed', 'stopped']) {
    assert.deepEqual(readAgentLine(word).orders, { operational: 'down' })
  }
  assert.deepEqual(readAgentLine('up').orders, { operational: 'up' })
})

test('a percentage has the bounds that HAProxy gives it', () => {
  assert.deepEqual(readAgentLine('25600%').orders, { weightFactor: 256 })
  assert.deepEqual(readAgentLine('weight:999999999%').orders, { weightFactor: 256 })
})

test('words stand between blanks, tabs and commas, in any order and case', () => {
  const all = { weightFactor: 0.5, maxConns: 3, administrative: 'ready', operational: 'up' }
  assert.deepEqual(readAgentLine('up 50% maxconn:3 ready').orders, all)
  assert.deepEqual(readAgentLine(',READY,\t,MaxConn:3, 50%  ,Up,').orders, all)
})

test('what begins with a sharp is a reason, and no order', () => {
  assert.deepEqual(readAgentLine('down #up 75% drain'), { orders: { operational: 'down' }, ignored: [] })
  assert.deepEqual(readAgentLine('stopped#maint'), { orders: { operational: 'down' }, ignored: [] })
  assert.deepEqual(readAgentLine('# nothing'), { orders: undefined, ignored: [] })
})

test('of several words for one thing the last holds', () => {
  assert.deepEqual(readAgentLine('down up').orders, { operational: 'up' })
  assert.deepEqual(readAgentLine('drain ready maint').orders, { administrative: 'maint' })
  assert.deepEqual(readAgentLine('weight:9 50%').orders, { weightFactor: 0.5 })
  assert.deepEqual(readAgentLine('50% weight:9').orders, { weight: 9 })
})

test('unknown words, and orders that cannot be, are left out without spoiling the others', () => {
  const words = ['hello', '75', '-5%', '7.5%', '%', 'weight:257', 'weight:', 'weight:-1', 'weight:1e2']
  words.push('maxconn:', 'maxconn:5%', 'maxconn:-1', 'uptime', 'constructor', '__proto__', '99999999999%')
  assert.deepEqual(readAgentLine(`${words.join(' ')} up`), { orders: { operational: 'up' }, ignored: words })
  assert.deepEqual(readAgentLine('hello').orders, undefined)
})

test('an empty line orders nothing', () => {
  assert.deepEqual(readAgentLine(''), { orders: undefined, ignored: [] })
  assert.deepEqual(readAgentLine(' ,\t'), { orders: undefined, ignored: [] })
})

test('whatever comes, orders stay within their bounds', () => {
  const word = fc.oneof(
    fc.constantFrom('up', 'down', 'drain', '#', 'weight:', 'maxconn:', '%'),
    fc.nat().map(String),
    fc.string(),
  )
  fc.assert(
    fc.property(fc.array(word), fc.constantFrom('', ' ', ','), (words, between) => {
      const { orders = {} } = readAgentLine(words.join(between))
      const { weight = 0, weightFactor = 0, maxConns = 0 } = orders
      assert.ok(Number.isInteger(weight) && weight >= 0 && weight <= 256)
      assert.ok(weightFactor >= 0 && weightFactor <= 1e7)
      assert.ok(Number.isInteger(maxConns) && maxConns >= 0 && maxConns < 1e9)
      assert.ok(orders.weight === undefined || orders.weightFactor === undefined)
    }),
  )
})
