import assert from 'node:assert/strict'
import { test } from 'node:test'
import TypeBox from 'typebox'
import { Type } from '../../feedback/schema-type.ts'

/** One of each kind, and what can be said with them. */
function schemas(build: typeof Type) {
  const word = build.Enum(['a', 'b'], { description: 'a word' })
  return [
    build.String(),
    build.String({ format: 'time', pattern: '^a' }),
    build.Number({ minimum: 0.5 }),
    build.Integer({ minimum: 1, maximum: 4 }),
    build.Boolean({ default: true }),
    build.Literal('a'),
    build.Literal(1, { description: 'one' }),
    build.Literal(true),
    word,
    build.Array(build.String(), { minItems: 1 }),
    build.Union([build.Literal('off'), build.Array(word)], { default: 'off' }),
    build.Record(build.String(), build.Number()),
    build.Record(build.String({ pattern: '^x' }), word, { description: 'by name' }),
    build.Optional(word),
    build.Object({}),
    build.Object({ a: build.Optional(word), b: word }, { additionalProperties: false }),
    build.Object({ a: build.Optional(build.Object({ b: build.Integer() })) }),
  ]
}

test('schemas are those of TypeBox, member by member', () => {
  const own = schemas(Type)
  const theirs = schemas(TypeBox)
  assert.deepEqual(
    own.map((schema) => JSON.stringify(schema)),
    theirs.map((schema) => JSON.stringify(schema)),
  )
})

test('a schema that is optional in one place stays required where it is used as it was', () => {
  const word = Type.String()
  const both = Type.Object({ first: Type.Optional(word), second: word })
  assert.deepEqual(both.required, ['second'])
})
