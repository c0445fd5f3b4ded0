import assert from 'node:assert/strict'
import { test } from 'node:test'
import { impliedTargets } from '../../../sidecar/build/stream.ts'
import {
  isNumeric,
  mostWritten,
  writtenTexts,
  writtenValues,
} from '../../../sidecar/build/written-targets.ts'

test('values of maps and of set lines are found wherever they stand, and those with variables are not', () => {
  const written = writtenValues({
    maps: { $a: { source: '$host', default: '10.0.0.1:80', values: { x: '10.0.0.2:80', y: '$host' } } },
    servers: [
      {
        rewrites: [{ set: { variable: '$b', value: '10.0.0.3' } }],
        locations: {
          '/': {
            rewrites: [
              { if: { variable: '$x' }, rewrites: [{ set: { variable: '$b', value: '10.0.0.4' } }] },
            ],
            locations: { '/in': { rewrites: [{ set: { variable: '$c', value: 'name' } }] } },
          },
        },
      },
    ],
  })
  assert.deepEqual(Object.fromEntries(written), {
    $a: ['10.0.0.1:80', '10.0.0.2:80'],
    $b: ['10.0.0.3', '10.0.0.4'],
    $c: ['name'],
  })
})

test('the first variable of a text is filled in, and nothing else', () => {
  const written = new Map([['$a', ['1', '2']]])
  assert.deepEqual(writtenTexts('http://$a/$b', written), ['http://1/$b', 'http://2/$b'])
  assert.deepEqual(writtenTexts(['http://$', '{a}0'].join(''), written), ['http://10', 'http://20'])
  assert.deepEqual(writtenTexts('http://$b/$a', written), [])
  assert.deepEqual(writtenTexts('http://plain', written), [])
})

test('an address is what needs no looking up', () => {
  assert.deepEqual(['10.0.0.1', '[::1]', '::1', 'host', '10.0.0', ''].map(isNumeric), [
    true,
    true,
    true,
    false,
    false,
    false,
  ])
})

test('a map of very many addresses makes groups of the first ones alone', () => {
  const values = Object.fromEntries(
    Array.from({ length: 1000 }, (_, i) => [`k${i}`, `10.0.${i >> 8}.${i & 255}:80`]),
  )
  const maps = { $to: { source: '$remote_addr', values } }
  const targets = impliedTargets({ maps, servers: [{ proxy_pass: '$to' }, { proxy_pass: 'named:80' }] })
  assert.equal(targets.length, mostWritten + 1)
  assert.deepEqual(targets.slice(0, 2), ['named:80', '10.0.0.0:80'])
})
