import assert from 'node:assert/strict'
import { networkInterfaces } from 'node:os'
import { test } from 'node:test'
import { ipBytes, isOwn } from '../../probes/ip.ts'

function hex(host: string): string | undefined {
  const bytes = ipBytes(host)
  return bytes && Buffer.from(bytes).toString('hex')
}

test('addresses become their bytes, whichever way they are written', () => {
  assert.equal(hex('127.0.0.1'), '7f000001')
  assert.equal(hex('::1'), `${'0'.repeat(31)}1`)
  assert.equal(hex('::'), '0'.repeat(32))
  assert.equal(hex('fe80::1:2%eth0'), 'fe800000000000000000000000010002')
  assert.equal(hex('2001:db8:1:2:3:4:5:6'), '20010db8000100020003000400050006')
  assert.equal(hex('2001:DB8::5:6'), '20010db8000000000000000000050006')
  assert.equal(hex('64:ff9b::192.0.2.33'), '0064ff9b0000000000000000c0000221')
})

test("IPv4 in IPv6's form is IPv4", () => {
  assert.equal(hex('::ffff:192.0.2.33'), 'c0000221')
  assert.equal(hex('::ffff:c000:221'), 'c0000221')
})

test('a name has no bytes', () => {
  assert.equal(hex('localhost'), undefined)
  assert.equal(hex('1.2.3'), undefined)
  assert.equal(hex(''), undefined)
})

test("this host's addresses are told from others", () => {
  const own = (host: string) => isOwn(ipBytes(host)!)
  assert.deepEqual(
    ['127.0.0.1', '127.9.9.9', '0.0.0.0', '::', '::1'].filter((host) => !own(host)),
    [],
  )
  const all = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses)
  assert.deepEqual(
    all.map(({ address }) => address).filter((host) => !own(host)),
    [],
  )
  assert.equal(own('198.51.100.7'), false)
  assert.equal(own('2001:db8::7'), false)
})
