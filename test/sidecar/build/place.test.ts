import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PartError, placed } from '../../../sidecar/build/place.ts'
import { ConfigError } from '../../../sidecar/config/error.ts'

const files = [
  { path: '/a.conf', text: '# $missing is spoken of here\nset $missing_too 1;\nadd_header X $missing;\n' },
  { path: '/b.conf', text: 'server nowhere.invalid:80;\n' },
]

const told = (text: string) => {
  const error = placed(new Error(text), { files, at: () => undefined })
  return error instanceof ConfigError ? error.message : 'no place'
}

test('an unknown variable is reported where it stands, not where a longer name or a comment does', () => {
  assert.equal(told('unknown "missing" variable'), '/a.conf:3: unknown "missing" variable')
})

test('a host that cannot be found is reported where it stands, in whichever file', () => {
  const text = 'host not found in upstream "nowhere.invalid:80"'
  assert.equal(told(text), `/b.conf:1: ${text}`)
})

test('a mistake in a part of the model is reported where that stood', () => {
  const part = {}
  const at = (owner: object, key?: string) =>
    owner === part ? { file: '/c.yaml', line: key === 'scope' ? 7 : 5 } : undefined
  const of = (error: Error) => {
    const found = placed(error, { files, at })
    return found instanceof ConfigError ? found.message : 'no place'
  }
  assert.equal(of(new PartError('no "server"', part, 'scope')), '/c.yaml:7: no "server"')
  assert.equal(of(new PartError('no "server"', part)), '/c.yaml:5: no "server"')
  assert.equal(of(new PartError('no "server"', {})), 'no place')
})

test('a mistake about a word that stands nowhere keeps its text alone', () => {
  assert.equal(told('unknown "other" variable'), 'no place')
  assert.equal(told('something else'), 'no place')
})
