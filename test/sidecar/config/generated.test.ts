import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import Schema from 'typebox/schema'
import { parse } from 'yaml'
import { foreign } from '../../../sidecar/config/directives/foreign.ts'
import { areas, blocks } from '../../../sidecar/config/directives.ts'
import { jsonSchema } from '../../../sidecar/config/json-schema.ts'
import { reference } from '../../../sidecar/config/reference.ts'

const file = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')

test('the reference and the schema are what `node scripts/reference.ts` writes', () => {
  assert.equal(file('docs/reference.md'), reference())
  assert.deepEqual(JSON.parse(file('docs/evenkeel.schema.json')), JSON.parse(JSON.stringify(jsonSchema())))
})

test('the schema takes the YAML that the loader takes, and every model', () => {
  const schema = Schema.Compile(JSON.parse(JSON.stringify(jsonSchema())))
  const folder = new URL('./pairs/', import.meta.url)
  let checked = 0
  for (const name of readdirSync(folder)) {
    const sections = readFileSync(new URL(name, folder), 'utf8').split(/^-----+ ?(.*)\n/m)
    if (/^error: /m.test(sections.at(-1)!)) continue
    const yaml = sections.indexOf('yaml')
    const model = sections.at(-1)!.replace(/^(?:warning|notice): .*\n/gm, '')
    for (const text of [yaml < 0 ? '{}' : sections[yaml + 1]!, model]) {
      // Directives without effect are no part of the schema.
      const value = parse(text.replace(/^(?:user|daemon|events): .*\n/gm, ''))
      const [ok, errors] = schema.Errors(value ?? {})
      assert.ok(ok, `${name}: ${JSON.stringify(errors.at(-1))}`)
      checked += 1
    }
  }
  assert.ok(checked > 50)
})

test('the schema refuses unknown keys and misplaced ones', () => {
  const schema = Schema.Compile(JSON.parse(JSON.stringify(jsonSchema())))
  for (const text of [
    'http: { proxy_pas: 1 }',
    'proxy_pass: http://a',
    'http: { upstreams: { a: { hash: { kee: 1 } } } }',
    'http: { upstreams: { a: { least_time: { mode: connect } } } }',
    'stream: { upstreams: { a: { ip_hash: true } } }',
    'stream: { upstreams: { a: { sticky: { cookie: a } } } }',
    'stream: { servers: [{ location: a }] }',
  ]) {
    assert.equal(schema.Check(parse(text)), false, text)
  }
})

test('no directive of the table is among those that are noticed, refused or left for later', () => {
  for (const { name, in: contexts } of [...areas.flatMap((area) => area.directives), ...blocks]) {
    for (const context of contexts) {
      const treatment = foreign(name, context)
      assert.ok([undefined, 'elsewhere'].includes(treatment) || name.endsWith('_pass'), `${name} ${context}`)
    }
  }
})
