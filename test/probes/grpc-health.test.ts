import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkRequest, servingStatus, statusName } from '../../probes/grpc-health.ts'
import { fc } from '../support/property.ts'

/** A message behind its prefix. */
function framed(message: readonly number[], flag = 0): Buffer {
  return Buffer.from([flag, 0, 0, 0, message.length, ...message])
}

test('a request names its service, or none', () => {
  assert.equal(checkRequest('').toString('hex'), '0000000000')
  assert.equal(
    checkRequest('a.B').toString('hex'),
    `0000000005${'0a03'}${Buffer.from('a.B').toString('hex')}`,
  )
  assert.equal(checkRequest('é').toString('hex'), '00000000040a02c3a9')
  // A length of two bytes.
  assert.equal(checkRequest('x'.repeat(300)).toString('hex', 0, 8), '000000012f0aac02')
})

test('a serving status is read by its name', () => {
  assert.equal(servingStatus(framed([8, 1])), 'SERVING')
  assert.equal(servingStatus(framed([8, 2])), 'NOT_SERVING')
  assert.equal(servingStatus(framed([8, 3])), 'SERVICE_UNKNOWN')
  assert.equal(servingStatus(framed([8, 0])), 'UNKNOWN')
  // What is not there has the first value.
  assert.equal(servingStatus(framed([])), 'UNKNOWN')
  assert.equal(servingStatus(framed([8, 9])), '9')
  // A negative number has ten bytes.
  assert.match(servingStatus(framed([8, ...Array(9).fill(0xff), 1])) ?? '', /^\d+$/)
})

test('of a field that comes twice the last holds, and fields that nobody knows are passed over', () => {
  assert.equal(servingStatus(framed([8, 2, 8, 1])), 'SERVING')
  const unknown = [0x10, 0x96, 0x01, 0x1a, 2, 8, 2, 0x21, 1, 2, 3, 4, 5, 6, 7, 8, 0x2d, 1, 2, 3, 4]
  assert.equal(servingStatus(framed([...unknown, 8, 1])), 'SERVING')
  // The same number with another type is another field.
  assert.equal(servingStatus(framed([0x0a, 1, 1, 8, 1])), 'SERVING')
})

test('what is no such message has no status', () => {
  assert.equal(servingStatus(Buffer.alloc(0)), undefined)
  assert.equal(servingStatus(Buffer.from('HTTP/1.1 200 OK')), undefined)
  assert.equal(servingStatus(framed([8, 1], 1)), undefined, 'compressed')
  assert.equal(servingStatus(framed([8])), undefined, 'a field without its value')
  assert.equal(servingStatus(framed([8, 0x81])), undefined, 'a number without its end')
  assert.equal(servingStatus(framed([0x1a, 9, 1])), undefined, 'a text that is too short')
  assert.equal(servingStatus(framed([0x0b])), undefined, 'a type that there is not')
  assert.equal(servingStatus(Buffer.concat([framed([8, 1]), framed([8, 1])])), undefined, 'two messages')
  assert.equal(servingStatus(framed([8, 1]).subarray(0, 6)), undefined, 'a part of one')
})

test('any bytes are read without an accident', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      const status = servingStatus(framed([...bytes]))
      assert.ok(status === undefined || /^([A-Z_]+|\d+)$/.test(status) || Number(status) > 1e20)
    }),
  )
})

test('a grpc-status is told by its number and name', () => {
  assert.equal(statusName('0'), '0 OK')
  assert.equal(statusName('16'), '16 UNAUTHENTICATED')
  assert.equal(statusName('17'), '17')
  assert.equal(statusName('constructor'), 'constructor')
})
