import assert from 'node:assert/strict'
import { test } from 'node:test'
import { murmur2 } from '../../../sidecar/balance/murmur2.ts'

/** What the original in C prints, with the seed 0. */
const known: readonly (readonly [string, number])[] = [
  ['', 0],
  ['a', 2456313694],
  ['ab', 446775395],
  ['abc', 324500635],
  ['abcd', 646393889],
  ['abcde', 1594468574],
  ['abcdef', 1271458169],
  ['abcdefg', 4188131059],
  ['abcdefgh', 69371878],
  ['192.0.2.1', 3369748723],
  ['The quick brown fox jumps over the lazy dog', 556214736],
  ['\xff', 2664983274],
  ['\x80\x81\x82', 2105878428],
  ['t\xe9st', 2921807998],
  ['\xa2A\xaa`', 4294967295],
  ['\x81rwt', 4294967294],
]

test('MurmurHash2 is the original one, whatever the length and the bytes', () => {
  for (const [text, hash] of known) assert.equal(murmur2(text), hash, JSON.stringify(text))
})
