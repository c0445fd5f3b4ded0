import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { after, test } from 'node:test'
import { TlsStore } from '../../../sidecar/tls/store.ts'
import { Issuer } from '../../support/authority.ts'

const issuer = new Issuer()
after(() => issuer[Symbol.dispose]())
const one = issuer.issue('one')
const other = issuer.issue('other')
const locked = issuer.issue('locked', { passPhrase: 'open sesame' })
const passwords = issuer.write('passwords', 'wrong\nopen sesame\n')
const nowhere = `${issuer.folder}/nowhere`

test('files that are missing or are not what they should be are named, with what is wrong', () => {
  const store = new TlsStore()
  const text = issuer.write('text', 'nothing of the kind')
  const says = (read: () => unknown, pattern: RegExp) => assert.throws(read, pattern)
  says(
    () => store.certificate(nowhere),
    /cannot load certificate ".*nowhere" \(2: No such file or directory\)$/,
  )
  says(() => store.certificate(text), /cannot load certificate ".*text": no PEM text in it/)
  says(() => store.certificate(one.keyFile), /cannot load certificate ".*one\.key": /)
  says(() => store.key(nowhere, undefined, one.certFile), /cannot load certificate key ".*nowhere" \(2: /)
  says(() => store.key(one.certFile, undefined, one.certFile), /cannot load certificate key ".*one\.crt": /)
  says(
    () => store.key(other.keyFile, undefined, one.certFile),
    /one\.crt" and key ".*other\.key" do not belong together/,
  )
  says(() => store.pem(text, 'cannot load it:'), /cannot load it: ".*text": no PEM text in it/)
  says(() => store.tickets(text), /".*text" must be 48 or 80 bytes/)
})

test('a key is opened by whichever pass phrase fits, and is kept without one', () => {
  const store = new TlsStore()
  assert.throws(() => store.key(locked.keyFile, undefined, locked.certFile), /cannot load certificate key/)
  const plain = store.key(locked.keyFile, passwords, locked.certFile)
  assert.equal(createPrivateKey(plain).asymmetricKeyType, 'ec')
})

test('others have what was read, and read nothing themselves', () => {
  const store = new TlsStore()
  store.certificate(one.certFile)
  store.key(one.keyFile, undefined, one.certFile)
  const joined = new TlsStore(structuredClone(store.share()))
  assert.equal(joined.certificate(one.certFile), one.cert)
  assert.match(joined.key(one.keyFile, undefined, one.certFile), /BEGIN PRIVATE KEY/)
  assert.deepEqual(Buffer.from(joined.ticketKey), store.ticketKey)
  assert.throws(() => joined.certificate(other.certFile), /has not been read/)
  assert.deepEqual(store.paths, [one.certFile, one.keyFile])
})

test('keys of tickets are the same for all configurations of a process, unless a file says them', () => {
  assert.deepEqual(new TlsStore().ticketKey, new TlsStore().ticketKey)
  const bytes = Buffer.from(Array.from({ length: 80 }, (_, i) => i))
  const store = new TlsStore()
  assert.deepEqual(store.tickets(issuer.write('short', bytes.subarray(0, 48))), bytes.subarray(0, 48))
  assert.equal(store.tickets(issuer.write('long', bytes)).length, 48)
})
