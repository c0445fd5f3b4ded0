import type { Type as TypeBox } from 'typebox'

type Builders = Pick<
  typeof TypeBox,
  | 'Array'
  | 'Boolean'
  | 'Enum'
  | 'Integer'
  | 'Literal'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Record'
  | 'String'
  | 'Union'
>

interface Schema {
  readonly pattern?: string
}

/** Schemas that an object may lack. */
const optional = new WeakSet<Schema>()

const of =
  (type: string) =>
  (options: object = {}) => ({ type, ...options })

const own = {
  String: of('string'),
  Number: of('number'),
  Integer: of('integer'),
  Boolean: of('boolean'),
  Literal: (value: string | number | boolean, options?: object) => ({
    type: typeof value,
    const: value,
    ...options,
  }),
  Enum: (values: readonly string[], options?: object) => ({ enum: [...values], ...options }),
  Array: (items: Schema, options?: object) => ({ type: 'array', items, ...options }),
  Union: (schemas: readonly Schema[], options?: object) => ({ anyOf: [...schemas], ...options }),
  Record: (names: Schema, each: Schema, options?: object) => ({
    type: 'object',
    patternProperties: { [names.pattern ?? '^.*$']: each },
    ...options,
  }),
  Object: (properties: Readonly<Record<string, Schema>>, options?: object) => {
    const required = Object.keys(properties).filter((name) => !optional.has(properties[name]!))
    return { type: 'object', ...(required.length > 0 && { required }), properties, ...options }
  },
  Optional: (schema: Schema) => {
    const copy = { ...schema }
    optional.add(copy)
    return copy
  },
}

/**
 * Builds schemas as TypeBox does, with its types: JSON Schema, of which `Static` infers what fits it. TypeBox itself is
 * more than three hundred modules, which would take a fourth of the time of each start, once again in every thread.
 */
// What these make is what TypeBox makes, but for the marks that its own checkers read; the test compares the two.
export const Type = own as unknown as Builders
