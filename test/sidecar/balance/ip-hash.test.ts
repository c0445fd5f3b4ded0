import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { IpHash } from '../../../sidecar/balance/ip-hash.ts'
import { readOctets } from '../../../sidecar/balance/octets.ts'
import { ask, peers, turns } from '../../support/peers.ts'

function from(address: string): Call {
  const call = new Call()
  call.remoteAddr = address
  return call
}

/** The place of a client by the words of the rule. */
function placeOf(octets: readonly number[], weights: readonly number[]): number {
  let hash = 89
  for (const octet of octets) hash = (hash * 113 + octet) % 6271
  const walk = weights.flatMap((weight, place) => Array<number>(weight).fill(place))
  return walk[hash % walk.length]!
}

test('places a client by three octets of IPv4 and by all of IPv6', () => {
  const weights = [1, 1, 2, 5]
  const balancer = new IpHash(peers(weights))
  const clients: readonly (readonly [string, readonly number[]])[] = [
    ['127.0.0.1', [127, 0, 0]],
    ['10.20.30.40', [10, 20, 30]],
    ['203.0.113.255', [203, 0, 113]],
    ['2001:db8::ff00:42:8329', [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0x42, 0x83, 0x29]],
    ['unix:', [0, 0, 0]],
  ]
  for (const [address, octets] of clients) {
    const peer = balancer.pick(ask(undefined, 0, from(address)))!
    assert.equal(peer.name, 'abcd'[placeOf(octets, weights)], address)
  }
})

test('keeps all clients of a /24 together, and tells IPv6 clients apart', () => {
  const balancer = new IpHash(peers([1, 1, 1, 1, 1]))
  const places = (addresses: string[]) =>
    new Set(addresses.map((address) => balancer.pick(ask(undefined, 0, from(address)))!.name)).size
  assert.equal(places(Array.from({ length: 256 }, (_, i) => `192.0.2.${i}`)), 1)
  assert.equal(places(Array.from({ length: 256 }, (_, i) => `2001:db8::${i.toString(16)}`)), 5)
})

test('leaves the clients of all others where a peer is out, and hashes on for its own', () => {
  const balancer = new IpHash(peers([1, 1, 1]))
  for (let i = 0; i < 256; i++) {
    const address = `10.0.${i}.1`
    const was = balancer.pick(ask(undefined, 0, from(address)))!.name
    const is = balancer.pick(ask(({ name }) => name !== 'b', 0, from(address)))!.name
    if (was !== 'b') assert.equal(is, was)
    // The hash goes on from where it was.
    else assert.equal(is, 'abc'[secondPlace([10, 0, i])])
  }
})

/** The first place after the first one that is not b's. */
function secondPlace(octets: readonly number[]): number {
  let hash = 89
  for (;;) {
    for (const octet of octets) hash = (hash * 113 + octet) % 6271
    if (hash % 3 !== 1) return hash % 3
  }
}

test('goes on with its hash at a retry', () => {
  const balancer = new IpHash(peers([1, 1, 1]))
  const tried = new Set<string>()
  const asked = ask(({ name }) => !tried.has(name), 0, from('10.0.7.1'))
  const found = turns(3, () => {
    const peer = balancer.pick(asked)!
    tried.add(peer.name)
    return peer
  })
  assert.equal(new Set(found.split(' ')).size, 3)
})

test('reads the octets of every form of address', () => {
  const read = (address: string) => {
    const into = new Uint8Array(16)
    const count = readOctets(address, into)
    return Buffer.from(into.subarray(0, count)).toString('hex')
  }
  assert.equal(read('1.2.3.255'), '010203ff')
  assert.equal(read('::'), '00'.repeat(16))
  assert.equal(read('::1'), `${'00'.repeat(15)}01`)
  assert.equal(read('a::'), `000a${'00'.repeat(14)}`)
  assert.equal(read('1:2:3:4:5:6:7:8'), '00010002000300040005000600070008')
  assert.equal(read('FE80::ABCD%eth0'), `fe80${'00'.repeat(12)}abcd`)
  assert.equal(read('::ffff:10.1.2.3'), '00000000000000000000ffff0a010203')
  assert.equal(read('unix:'), '')
  assert.equal(read(''), '')
})
