import { Type } from '../../../feedback/schema-type.ts'
import { hasVariables } from '../address.ts'
import { type Context, type Directive, directive, type Part, type Value } from '../directive.ts'
import { Fault } from '../fault.ts'
import { flag, line, size, text } from '../schema.ts'
import { formatSize, formatTime, sizeBytes, timeMs } from '../units.ts'

const groups: readonly Context[] = ['upstream', 'stream upstream']

/** Eight pages: less would not hold a table in nginx's shared memory. */
const leastZone = 32_768

/** What a name may be so that `Set-Cookie` says it: RFC 6265 section 4.1.1. */
const cookieName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/

/** Memory with a size, as a text or taken apart. */
const zone = Type.Union([Type.String(), Type.Object({ name: text, size: Type.Optional(size) })], {
  description: '`NAME:SIZE`',
})

const learning = {
  zone: Type.Optional(zone),
  create: Type.Optional(Type.Array(text)),
  lookup: Type.Optional(Type.Array(text)),
  timeout: Type.Optional(Type.String({ description: 'a time: 10s, 500ms, 1h30m' })),
}

const cookie = directive({
  name: 'cookie',
  in: [],
  doc: 'Writes a cookie with the id of the peer.',
  args: Type.Object({ name: line, attributes: Type.Optional(Type.Array(line)) }),
  words: ['name', 'attributes'],
  split: ([name = '', ...attributes]): Record<string, Part> =>
    attributes.length === 0 ? { name } : { name, attributes },
  tidy({ name, attributes = [] }) {
    if (name === '') throw new Fault('"sticky" directive empty cookie name', 'name')
    if (!cookieName.test(name)) throw new Fault(`invalid cookie name "${name}"`, 'name')
    if (attributes.filter((one) => /^expires=/i.test(one)).length > 1) {
      throw new Fault('parameter "expires" is duplicate', 'attributes')
    }
    return attributes.length === 0 ? { name } : { name, attributes }
  },
})

const route = directive({
  name: 'route',
  in: [],
  doc: 'Takes the id of the peer from the first variable that is not empty.',
  args: Type.Array(text),
})

/** Learns ids that others make. `when` is the word for learning early. */
const learn = (when: 'header' | 'connect') =>
  directive({
    name: 'learn',
    in: [],
    doc: 'Learns which peer has made a session, and finds it again.',
    args: Type.Object({ ...learning, [when]: Type.Optional(flag), norefresh: Type.Optional(flag) }),
    later: ['remote_action', 'remote_result', 'remote_uri'],
    stray: (word) => `unknown sticky learn parameter "${word}"`,
    split: learnParts,
    tidy(given) {
      // The early word's name is a computed one, which the type cannot show.
      const { zone, create = [], lookup = [], timeout, ...flags } = given as typeof given & Flags
      if (zone === undefined) throw new Fault('zone not specified')
      if (create.length === 0) throw new Fault('no create vars')
      if (lookup.length === 0) throw new Fault('no lookup vars')
      const ms = timeout === undefined ? undefined : timeMs(timeout)
      if (timeout !== undefined && !ms) throw new Fault('invalid timeout', 'timeout')
      return {
        zone: tableOf(zone),
        create,
        lookup,
        ...(ms === undefined ? {} : { timeout: formatTime(ms) }),
        ...flags,
      }
    },
  })

interface Flags {
  readonly header?: boolean
  readonly connect?: boolean
}

function learnParts(words: readonly string[]): Record<string, Part> {
  const parts: Record<string, Part> = Object.create(null)
  const lists: Record<string, string[]> = { create: [], lookup: [] }
  for (const word of words) {
    const at = word.indexOf('=')
    const [name, value] = at < 0 ? [word] : [word.slice(0, at), word.slice(at + 1)]
    const list = Object.hasOwn(lists, name!) ? lists[name!] : undefined
    if (list !== undefined) {
      if (value === undefined) throw new Fault(`unknown sticky learn parameter "${name}"`)
      list.push(value)
    } else if (name! in parts) throw new Fault(`duplicate ${name}`)
    else parts[name!] = value ?? true
  }
  return { ...parts, ...lists }
}

function tableOf(zone: string | { readonly name: string; readonly size?: string }): Value {
  const colon = typeof zone === 'string' ? zone.lastIndexOf(':') : 0
  const { name, size } =
    typeof zone !== 'string'
      ? zone
      : colon < 0
        ? { name: zone }
        : { name: zone.slice(0, colon), size: zone.slice(colon + 1) }
  if (name === '') throw new Fault('empty zone name', 'zone')
  if (size === undefined)
    throw new Fault(`zone size is not specified: "${name}", it must be "NAME:SIZE"`, 'zone')
  const bytes = sizeBytes(size)
  if (bytes === undefined) throw new Fault(`invalid zone size "${size}"`, 'zone')
  if (bytes < leastZone)
    throw new Fault(`zone is too small: "${size}", it must be at least ${formatSize(leastZone)}`, 'zone')
  return { name, size: formatSize(bytes) }
}

const sticky = (context: Context, inner: readonly Directive[], syntax: string) =>
  directive({
    name: 'sticky',
    in: [context],
    doc:
      'Requests of a session go to the peer that its id names while that can take them, also when it drains. ' +
      'The id is the `sid` of a `server` line, or the MD5 of its address.',
    args: Type.Object({}),
    inner,
    leastWords: 2,
    wrong: (mode) => `unknown sticky mode "${mode}", it must be ${oneOf(inner.map(({ name }) => name))}`,
    remark: (value) => constantRoute(value) ?? oddExpires(value),
    syntax,
  })

/** Angie takes a word without a variable, too: last it is for those who name nobody, but first it is everybody's. */
function constantRoute(value: object): string | undefined {
  const { route } = value as { route?: readonly string[] }
  const word = route?.[0]
  return word === undefined || hasVariables(word)
    ? undefined
    : `"${word}" of the "sticky" directive is no variable`
}

function oneOf(names: readonly string[]): string {
  const quoted = names.map((name) => `"${name}"`)
  return `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`
}

/** `expires` is a time or `max`; anything else goes to the client as it stands. */
function oddExpires(value: object): string | undefined {
  const { cookie } = value as { cookie?: { attributes?: readonly string[] } }
  const expires = cookie?.attributes?.find((one) => /^expires=/i.test(one))?.slice(8)
  if (expires === undefined || expires === 'max' || timeMs(expires) !== undefined) return undefined
  return `"expires=${expires}" of the "sticky" directive is no time, it is sent as it stands`
}

const learnSyntax = 'learn zone=NAME:SIZE create=$VARIABLE … lookup=$VARIABLE … [timeout=TIME]'

/** Directives that bind sessions to peers. */
export const stickyDirectives = [
  sticky(
    'upstream',
    [cookie, route, learn('header')],
    `sticky cookie NAME [ATTRIBUTE …] | route $VARIABLE … | ${learnSyntax} [header] [norefresh];`,
  ),
  sticky(
    'stream upstream',
    [route, learn('connect')],
    `sticky route $VARIABLE … | ${learnSyntax} [connect] [norefresh];`,
  ),
  directive({
    name: 'sticky_secret',
    in: groups,
    doc: 'A text that is mixed into the ids of peers before clients see them. May have variables.',
    args: text,
  }),
  directive({
    name: 'sticky_strict',
    in: groups,
    doc: 'Whether what belongs to a session is refused, and not sent elsewhere, when its peer cannot take it.',
    default: 'off',
    args: flag,
  }),
]
