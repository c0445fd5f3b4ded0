import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Asked, refuseHost, sameSecret } from '../../../sidecar/admin/guard.ts'

const gate = { local: true, unix: false, hosts: [], token: undefined }
const asked: Asked = { host: undefined, origin: undefined, contentType: undefined, authorization: undefined }

test('a request without a Host is refused, but for one over a Unix socket', () => {
  assert.equal(refuseHost(asked, gate)?.status, 421)
  assert.equal(refuseHost({ ...asked, host: '' }, gate)?.status, 421)
  assert.equal(refuseHost(asked, { ...gate, unix: true }), undefined)
})

test('secrets are the same only when every byte is, whatever their lengths', () => {
  assert.equal(sameSecret('abc', 'abc'), true)
  assert.equal(sameSecret('', 'abc'), false)
  assert.equal(sameSecret('abd', 'abc'), false)
  assert.equal(sameSecret('abcabc', 'abc'), false)
  assert.equal(sameSecret('ü', 'ü'), true)
})
