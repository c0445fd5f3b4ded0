import assert from 'node:assert/strict'
import type { Facts } from '../../../sidecar/admin/facts.ts'
import { statusResponse } from '../../../sidecar/admin/status.ts'

/** The part of the status tree at a path, parsed. */
export function statusAt(from: Facts, path: string): unknown {
  const { status, body } = statusResponse(from, path, '', 'GET', '127.0.0.1')
  const text = body.toString()
  assert.equal(status, 200, `${path}: ${text}`)
  return JSON.parse(text)
}

/** Its members' names, in order. */
export function keysAt(from: Facts, path: string): string {
  return Object.keys(statusAt(from, path) as object).join(' ')
}
