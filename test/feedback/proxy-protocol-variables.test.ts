import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../feedback/call.ts'
import { Variables } from '../../feedback/variables.ts'

const variables = new Variables({}, 'stream')

function read(name: string, more?: string): string {
  const call = new Call()
  const addresses = { addr: '', port: '', serverAddr: '', serverPort: '' }
  if (more !== undefined) call.proxied = { ...addresses, more: Buffer.from(more, 'latin1') }
  return variables.compile(`$proxy_protocol_tlv_${name}`)(call)
}

test('a value of a PROXY header is found by its name and by its number, in http too', () => {
  const more = '\x04\0\x01x\x01\0\x02h2\x02\0\x01a\xea\0\x03v\xff1\x01\0\x01z'
  assert.equal(read('alpn', more), 'h2')
  assert.equal(read('0x1', more), 'h2')
  assert.equal(read('authority', more), 'a')
  assert.equal(read('0xEA', more), 'v\xff1')
  assert.equal(read('unique_id', more), '')
  assert.equal(new Variables().compile('$proxy_protocol_tlv_alpn')(new Call()), '')
})

test('what is inside of ssl has names of its own', () => {
  const more = '\x20\0\x0d\x01\0\0\0\x00\x22\0\x02me\x99\0\0'
  assert.equal(read('ssl_cn', more), 'me')
  assert.equal(read('ssl_0x22', more), 'me')
  assert.equal(read('ssl_verify', more), '0')
  assert.equal(read('ssl_cipher', more), '')
  assert.equal(read('ssl', more).length, 13)
})

test('what is broken, absent or unknown is empty', () => {
  for (const more of [undefined, '', '\x01', '\x01\0', '\x01\0\x05ab', '\x20\0\x01x', '\x20\0\0']) {
    for (const name of [
      'alpn',
      'ssl_cn',
      'ssl_verify',
      'ssl_0x99',
      'nothing',
      '0x',
      '__proto__',
      'constructor',
    ])
      assert.equal(read(name, more), '', `${name} of ${JSON.stringify(more)}`)
  }
})
