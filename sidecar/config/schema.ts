import type { TSchema } from 'typebox'
import { Type } from '../../feedback/schema-type.ts'
import { formatSize, formatTime, secondsMs, sizeBytes, timeMs } from './units.ts'

/**
 * The kinds of values that directives take, as JSON Schema. What JSON Schema cannot say (a time, a size) is a
 * `format`; `readScalar` obeys both.
 */

/** `on` or `off` in nginx syntax; inside of an argument list a bare word. */
export const flag = Type.Boolean()
export const time = Type.String({ format: 'time', description: 'a time: 10s, 500ms, 1h30m' })
/** A time that nginx keeps in whole seconds. */
export const seconds = Type.String({ format: 'seconds', description: 'a time in whole seconds: 10s, 1h' })
export const size = Type.String({ format: 'size', description: 'a size: 512, 64k, 1m, 1g' })
export const text = Type.String()
/** A text that ends up in a head, where a line break would begin another field. */
export const line = Type.String({ pattern: '^[^\\r\\n\\u0000]*$' })
/** A name of a header field. */
export const fieldName = Type.String({ pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" })
export const variable = Type.String({
  format: 'variable',
  pattern: '^\\$[A-Za-z0-9_]+$',
  description: 'a variable',
})

export const integer = (minimum: number, maximum?: number) =>
  Type.Integer(maximum === undefined ? { minimum } : { minimum, maximum })

/** One of several words. */
export const word = <const W extends string[]>(...words: W) => Type.Enum<W>([...words])

/** A part of a JSON Schema, as far as it is used here. */
export interface Shape {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Shape>>
  readonly required?: readonly string[]
  readonly items?: Shape
  /** Of an object by names: what stands under each, by the names' pattern. */
  readonly patternProperties?: Readonly<Record<string, Shape>>
  readonly anyOf?: readonly Shape[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly pattern?: string
  readonly format?: string
  readonly description?: string
  readonly default?: unknown
}

/** A schema as the plain JSON Schema that it is; TypeBox declares its schemas without their members. */
export function shapeOf(schema: TSchema): Shape {
  // The members are there at run time: that is TypeBox's contract.
  return schema as Shape
}

export type Scalar = string | number | boolean

/**
 * The canonical value of a text.
 * @returns undefined when the text does not fit the schema
 */
export function readScalar(shape: Shape, text: string): Scalar | undefined {
  if (shape.anyOf) {
    for (const option of shape.anyOf) {
      const value = readScalar(option, text)
      if (value !== undefined) return value
    }
    return undefined
  }
  if (shape.enum) return shape.enum.includes(text) ? text : undefined
  if (shape.const !== undefined) {
    // Constants of these schemas are words and `true`.
    return String(shape.const) === text ? (shape.const as Scalar) : undefined
  }
  if (shape.type === 'boolean') return text === 'on' ? true : text === 'off' ? false : undefined
  if (shape.type === 'integer' || shape.type === 'number') {
    const number = readNumber(shape, text)
    return number !== undefined && inBounds(shape, number) ? number : undefined
  }
  if (shape.pattern !== undefined && !new RegExp(shape.pattern, 'u').test(text)) return undefined
  if (shape.format === 'variable' && !/^\$\w+$/.test(text)) return undefined
  if (shape.format === 'size') return formatted(sizeBytes(text), formatSize)
  if (shape.format === 'seconds') return formatted(secondsMs(text), formatTime)
  if (shape.format === 'time') return formatted(timeMs(text), formatTime)
  return text
}

/** The number of a text, whatever the bounds; undefined when it is none. */
export function readNumber(shape: Shape, text: string): number | undefined {
  const pattern = shape.type === 'integer' ? /^\d{1,15}$/ : /^\d{1,15}(?:\.\d+)?$/
  return pattern.test(text) ? Number(text) : undefined
}

function inBounds(shape: Shape, number: number): boolean {
  return (
    number >= (shape.minimum ?? Number.NEGATIVE_INFINITY) &&
    number <= (shape.maximum ?? Number.POSITIVE_INFINITY)
  )
}

function formatted(value: number | undefined, format: (value: number) => string): string | undefined {
  return value === undefined ? undefined : format(value)
}
