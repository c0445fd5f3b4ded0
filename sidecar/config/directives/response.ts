import { Type } from '../../../feedback/schema-type.ts'
import { type Context, directive } from '../directive.ts'
import { Fault } from '../fault.ts'
import { fieldName, flag, integer, line, text, word } from '../schema.ts'
import { logPath } from './file-path.ts'

const location: readonly Context[] = ['http', 'server', 'location']

/** Directives on what the client is answered, and on what is logged of it. */
export const responseDirectives = [
  directive({
    name: 'server_tokens',
    in: location,
    doc: 'Whether the version is said in the `Server` field and on error pages.',
    default: 'off',
    args: Type.Union([flag, Type.Literal('build')]),
  }),
  directive({
    name: 'absolute_redirect',
    in: location,
    doc: 'Whether a redirect to a path here is told with scheme, host and port, or as the path alone.',
    default: 'on',
    args: flag,
  }),
  directive({
    name: 'port_in_redirect',
    in: location,
    doc: 'Whether such a redirect says the port that the client has connected to, where it is not the usual one.',
    default: 'on',
    args: flag,
  }),
  directive({
    name: 'internal',
    in: ['location'],
    doc: 'Nobody comes to the location from outside, by `error_page` and `rewrite` alone: a client gets 404.',
    args: Type.Object({}),
    words: [],
    tidy: () => true,
  }),
  directive({
    name: 'default_type',
    in: location,
    doc: 'Type of what `return` answers.',
    default: 'text/plain',
    args: line,
  }),
  directive({
    name: 'add_header',
    in: ['http', 'server', 'location', 'if'],
    doc: 'Adds a field to responses with status 200, 201, 204, 206, 301, 302, 303, 304, 307 or 308; with `always` to all.',
    args: Type.Object({ name: fieldName, value: line, always: Type.Optional(flag) }),
    words: ['name', 'value'],
    many: true,
  }),
  directive({
    name: 'error_page',
    in: ['http', 'server', 'location', 'if'],
    doc: 'What to answer in place of these statuses: a URI, a `@name` or a URL; `=CODE` changes the status.',
    syntax: 'error_page CODE … [=[CODE]] URI;',
    args: Type.Object({
      codes: Type.Array(integer(300, 599)),
      response: Type.Optional(integer(0, 999)),
      uri: line,
    }),
    words: ['codes', 'uri'],
    many: true,
    wrong(word) {
      return /^\d+$/.test(word) ? `value "${word}" must be between 300 and 599` : `invalid value "${word}"`
    },
    split(words) {
      const uri = words.at(-1)!
      const codes = words.slice(0, -1)
      const response = codes.at(-1)?.startsWith('=') ? codes.pop()!.slice(1) || '0' : undefined
      if (codes.length === 0) throw new Fault('invalid number of arguments in "error_page" directive')
      return response === undefined ? { codes, uri } : { codes, response, uri }
    },
    tidy(value) {
      if (value.codes.includes(499)) throw new Fault('value "499" must not be used in "error_page" directive')
      return value
    },
  }),
  directive({
    name: 'access_log',
    in: ['http', 'server', 'location', 'if', 'stream', 'stream server'],
    doc: 'Where requests or sessions are logged, in which format, and which of them.',
    default: '/dev/stdout json',
    args: Type.Object({ path: line, format: Type.Optional(text), if: Type.Optional(text) }),
    words: ['path', 'format'],
    many: true,
    off: true,
    ignored: ['buffer', 'flush', 'gzip'],
    tidy: ({ path, ...more }) => ({ path: logPath('access_log', path), ...more }),
  }),
  directive({
    name: 'log_format',
    in: ['http', 'stream'],
    doc: 'A format for `access_log`. `json` is built in, in `http` also `combined`.',
    syntax: 'log_format NAME [escape=default | json | none] TEXT …;',
    args: Type.Object({
      name: text,
      escape: Type.Optional(word('default', 'json', 'none')),
      format: text,
    }),
    words: ['name', 'format'],
    many: true,
    split([name, ...texts]) {
      const escaping = texts[0]?.startsWith('escape=') ? texts.shift()!.slice(7) : undefined
      if (name === undefined || texts.length === 0) {
        throw new Fault('invalid number of arguments in "log_format" directive')
      }
      if (escaping !== undefined && !['default', 'json', 'none'].includes(escaping)) {
        throw new Fault(`unknown log format escaping "${escaping}"`)
      }
      const format = texts.join('')
      return escaping === undefined ? { name, format } : { name, escape: escaping, format }
    },
  }),
  directive({
    name: 'explain_header',
    in: location,
    doc: 'Response field that tells the attempts and the reason of the pick.',
    default: 'off',
    args: fieldName,
    off: true,
  }),
  directive({
    name: 'load_report',
    in: location,
    doc: 'Whether load reports of peers reach the client.',
    default: 'strip',
    args: word('pass', 'strip'),
  }),
]
