import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { Hash } from '../../../sidecar/balance/hash.ts'
import { ask, type PeerSketch, peers, turns } from '../../support/peers.ts'

const letters = [...'abcdef123456']
const three: PeerSketch[] = [1, 1, 2]

/** Whom each key goes to. */
function places(sketches: readonly PeerSketch[], ready?: (peer: { readonly name: string }) => boolean) {
  let key = ''
  const balancer = new Hash(peers(sketches), () => key)
  return letters.map((letter) => {
    key = letter
    return balancer.pick(ask(ready))!.name
  })
}

test('places keys as nginx does', () => {
  assert.equal(places(three).join(' '), 'c c b b c c a b c c b a')
})

test('keeps the keys of all others where a peer is marked down, and moves them where it is removed', () => {
  const all = places(three)
  const without = places(three, ({ name }) => name !== 'b')
  for (const [i, name] of all.entries()) {
    if (name === 'b') assert.notEqual(without[i], 'b')
    else assert.equal(without[i], name)
  }
  // The list is now a and c, and c goes by the name b.
  const removed = places([1, 2])
  assert.notDeepEqual(
    removed.map((name) => (name === 'b' ? 'c' : name)),
    without,
  )
})

test('goes on with the hash of the number and the key, added up over the retries of a request', () => {
  const list = peers([3, 1, 2, 1, 1])
  const walk = 'aaabccde'
  for (const key of letters) {
    // The same by the words of the rule, with the machine's own checksum.
    const expected: string[] = []
    let sum = 0
    for (let number = 0; expected.length < 5; number++) {
      sum += (crc32(`${number > 0 ? number : ''}${key}`) >>> 16) & 0x7fff
      const name = walk[sum % 8]!
      if (!expected.includes(name)) expected.push(name)
      if (number > 18) break
    }
    const tried = new Set<string>()
    const balancer = new Hash(list, () => key)
    const asked = ask(({ name }) => !tried.has(name))
    const found = expected.map(() => {
      const peer = balancer.pick(asked)!
      tried.add(peer.name)
      return peer.name
    })
    assert.deepEqual(found, expected)
  }
})

test('evaluates its key once a request', () => {
  let evaluated = 0
  const balancer = new Hash(peers([1, 1]), () => `key-${evaluated++}`)
  const asked = ask()
  balancer.pick(asked)
  balancer.pick(asked)
  assert.equal(evaluated, 1)
})

test('takes turns for an empty key', () => {
  const balancer = new Hash(peers([1, 1, 1]), () => '')
  assert.equal(
    turns(4, () => balancer.pick(ask())),
    'a b c a',
  )
})

test('leaves it to round robin once twenty places were not ready', () => {
  const balancer = new Hash(peers([1000, 1000, 1, 1]), () => 'key')
  const asked = ask(({ name }) => name === 'c' || name === 'd')
  assert.deepEqual([balancer.pick(asked)!.name, balancer.pick(asked)!.name], ['c', 'd'])
})

test('takes each character of a key for one byte', () => {
  // The UTF-8 bytes of é, as heads are read, and the same bytes for the machine's own checksum.
  const balancer = new Hash(peers([1, 1, 1, 1, 1]), () => '\u00c3\u00a9')
  const place = ((crc32(Buffer.from('é', 'utf8')) >>> 16) & 0x7fff) % 5
  assert.equal(balancer.pick(ask())!.name, 'abcde'[place])
})
