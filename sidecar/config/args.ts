import type { Directive, Part, Value } from './directive.ts'
import { Fault } from './fault.ts'
import { readNumber, readScalar, type Shape, shapeOf } from './schema.ts'

/** What was found among the arguments beside their value. */
export interface Found {
  /** Names of arguments that are accepted and have no effect. */
  readonly ignored: string[]
  /** Words of a list that stood there twice. */
  readonly repeated: string[]
  /** The arguments as written, by name. */
  readonly tokens: Map<string, string>
}

export function nothingFound(): Found {
  return { ignored: [], repeated: [], tokens: new Map() }
}

/**
 * The canonical value of one occurrence in nginx's words.
 * @throws Fault with nginx's text
 */
export function fromWords(directive: Directive, words: readonly string[], found: Found): Value {
  if (directive.off && words.length === 1 && words[0] === 'off') return 'off'
  if (directive.inner) {
    const [name, ...rest] = words
    if (name === undefined || words.length < (directive.leastWords ?? 1))
      throw new Fault(wrongCount(directive))
    return fromInner(directive, name, (inner) => fromWords(inner, rest, found))
  }
  const shape = shapeOf(directive.args)
  const literal = words.length === 1 ? shape.anyOf?.find((option) => option.const === words[0]) : undefined
  if (directive.split && !literal) return fromParts(directive, directive.split(words), found)
  const object = objectShape(directive)
  if (object && !literal) return fromParts(directive, partsOf(directive, object, words), found)
  if (words.length === 0) throw new Fault(wrongCount(directive))
  const ignored = words.filter((word) => directive.ignored?.includes(word))
  const heeded = words.filter((word) => !ignored.includes(word))
  found.ignored.push(...ignored)
  if (shape.type === 'array') {
    const items = heeded.map((word) => scalar(directive, shape.items!, word))
    return tidied(directive, shape.items!.enum ? distinct(items, found) : items)
  }
  if (heeded.length > 1 && directive.stray) throw new Fault(directive.stray(heeded.slice(1).join(' ')))
  if (heeded.length !== 1) throw new Fault(wrongCount(directive))
  return tidied(directive, scalar(directive, shape, heeded[0]!))
}

/**
 * The canonical value of one occurrence from arguments by name.
 * @throws Fault with nginx's text
 */
export function fromParts(directive: Directive, parts: Readonly<Record<string, Part>>, found: Found): Value {
  const { properties = {}, required = [] } = objectShape(directive) ?? {}
  const given = new Map<string, Value>()
  for (const [written, part] of Object.entries(parts)) {
    const name = own(directive.alias, written) ?? written
    const token = tokenOf(directive, written, part)
    if (directive.later?.includes(name)) throw new Fault(`"${name}" parameter is not supported yet`, written)
    if (directive.ignored?.includes(name)) {
      found.ignored.push(name)
      continue
    }
    const shape = own(properties, name)
    if (shape === undefined)
      throw new Fault(directive.stray?.(token) ?? `invalid parameter "${token}"`, written)
    found.tokens.set(name, token)
    try {
      given.set(name, argument(directive, shape, name, part, token))
    } catch (error) {
      throw error instanceof Fault ? new Fault(error.message, written) : error
    }
  }
  const value: Record<string, Value> = {}
  // In the schema's order, so that both syntaxes and every order of arguments print alike.
  for (const name of Object.keys(properties)) {
    const one = given.get(name)
    if (one !== undefined) value[name] = one
    else if (required.includes(name)) throw new Fault(wrongCount(directive))
  }
  return tidied(directive, value)
}

/**
 * The canonical value of one occurrence of a directive whose arguments are another one.
 * @param read the other one's value
 * @throws Fault with nginx's text
 */
export function fromInner(directive: Directive, name: string, read: (inner: Directive) => Value): Value {
  const inner = directive.inner?.find((one) => one.name === name)
  if (inner === undefined) throw new Fault(directive.wrong?.(name) ?? `invalid parameter "${name}"`)
  // Messages name a method with what it is for; other words of a line are no directives of their own.
  const own = inner.method ? `${directive.name} ${name}` : directive.name
  const value = read({ ...inner, name: own })
  return { [name]: isEmpty(value) ? true : value }
}

/** Whether it is an object without anything in it: the arguments of what has none. */
export function isEmpty(value: Value): boolean {
  return typeof value === 'object' && Object.keys(value).length === 0
}

export function wrongCount(directive: { readonly name: string }): string {
  return `invalid number of arguments in "${directive.name}" directive`
}

/** How an argument reads in a message: as nginx would have it written. */
function tokenOf(directive: Directive, name: string, part: Part): string {
  if (part === true) return name
  if (isRecord(part))
    return Object.entries(part)
      .map(([key, text]) => `${key}=${text}`)
      .join(' ')
  const text = typeof part === 'string' ? part : part.join(' ')
  return directive.words?.includes(name) ? text : `${name}=${text}`
}

/** The arguments of a directive that has them by name; undefined for one that takes a scalar or a list. */
export function objectShape(directive: Directive): Shape | undefined {
  const shape = shapeOf(directive.args)
  return shape.type === 'object' ? shape : shape.anyOf?.find((option) => option.type === 'object')
}

/** Whether the property is a bare word that stands or does not stand. */
export function isFlag(shape: Shape): boolean {
  return shape.type === 'boolean'
}

/** Whether the argument may be texts by name. */
export function takesObject(shape: Shape): boolean {
  return shape.type === 'object' || shape.anyOf?.some(takesObject) === true
}

/** Sorts words into arguments: first those that stand by place, then `name=value` and flags. */
function partsOf(directive: Directive, shape: Shape, words: readonly string[]): Record<string, Part> {
  const parts: Record<string, Part> = Object.create(null)
  const places = [...(directive.words ?? [])]
  const required = places.filter((name) => shape.required?.includes(name)).length
  if (words.length < required) throw new Fault(wrongCount(directive))
  const named = Object.keys(shape.properties ?? {}).length > places.length
  if (!named && words.length > places.length) throw new Fault(wrongCount(directive))
  for (const [i, written] of words.entries()) {
    const [name, value] = cut(written)
    const known = own(directive.alias, name) ?? name
    const listed = directive.ignored?.includes(known) || directive.later?.includes(known)
    const property = own(shape.properties ?? {}, known)
    if (i >= required && listed) {
      parts[name] = value ?? true
    } else if (
      i >= required &&
      property &&
      !places.includes(known) &&
      isFlag(property) === (value === undefined)
    ) {
      parts[name] = value ?? true
    } else {
      const place = places.find((place) => !(place in parts))
      if (place === undefined) throw new Fault(directive.stray?.(written) ?? `invalid parameter "${written}"`)
      parts[place] = written
    }
  }
  return parts
}

function argument(directive: Directive, shape: Shape, name: string, part: Part, token: string): Value {
  if (isFlag(shape)) {
    if (part !== true) throw new Fault(`invalid parameter "${token}"`)
    return true
  }
  if (part === true) throw new Fault(`invalid parameter "${token}"`)
  if (shape.type === 'array') {
    if (isRecord(part)) throw new Fault(`invalid parameter "${token}"`)
    const list = typeof part === 'string' ? [part] : part
    return list.map((text) => scalar(directive, shape.items!, text))
  }
  if (isRecord(part) && takesObject(shape)) return part
  if (typeof part !== 'string' || shape.type === 'object') throw new Fault(`invalid parameter "${token}"`)
  if (directive.words?.includes(name)) return scalar(directive, shape, part)
  const value = readScalar(shape, part)
  if (value !== undefined) return value
  if (isVariable(shape)) throw new Fault(`variable expected as the "${name}" argument`)
  // A pattern alone tells people little, and so does the one word that may stand.
  const { pattern, const: only, description } = shape
  const ruled = (pattern !== undefined || only !== undefined) && description !== undefined
  const rule = ruled ? `, it must be ${description}` : ''
  throw new Fault(`invalid parameter "${token}"${rule}`)
}

function scalar(directive: Directive, shape: Shape, text: string): Value {
  const value = readScalar(shape, text)
  if (value !== undefined) return value
  throw new Fault(complaint(directive, shape, text))
}

/** nginx's text for a word that does not fit. */
function complaint(directive: Directive, shape: Shape, text: string): string {
  if (directive.wrong) return directive.wrong(text)
  if (isVariable(shape)) return `invalid variable name "${text}"`
  if (directive.method || directive.step) return `invalid parameter "${text}"`
  if (shape.type === 'boolean') {
    return `invalid value "${text}" in "${directive.name}" directive, it must be "on" or "off"`
  }
  if (shape.type === 'integer' || shape.type === 'number') {
    if (readNumber(shape, text) === undefined) return `"${directive.name}" directive invalid number "${text}"`
    const { minimum = 0, maximum } = shape
    if (maximum === undefined) return `value must be equal to or greater than ${minimum}`
    return `value must be between ${minimum} and ${maximum}`
  }
  if (shape.format !== undefined) return `"${directive.name}" directive invalid value "${text}"`
  return `invalid value "${text}"`
}

function isRecord(part: Part): part is Readonly<Record<string, string>> {
  return typeof part === 'object' && !Array.isArray(part)
}

function isVariable(shape: Shape): boolean {
  return shape.format === 'variable' || shape.pattern?.startsWith('^\\$') === true
}

function distinct(items: readonly Value[], found: Found): Value[] {
  return items.filter((item, i) => {
    const first = items.indexOf(item) === i
    if (!first) found.repeated.push(String(item))
    return first
  })
}

function tidied(directive: Directive, value: Value): Value {
  // The schema's readers have just made it what the entry's own type says.
  return directive.tidy ? directive.tidy(value as never) : value
}

function cut(word: string): [string, string | undefined] {
  const at = word.indexOf('=')
  return at < 0 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)]
}

function own<T>(record: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return record && Object.hasOwn(record, name) ? record[name] : undefined
}
