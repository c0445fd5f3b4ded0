import { isUtf8 } from 'node:buffer'
import { bytes } from '../../feedback/bytes.ts'
import type { Call } from '../../feedback/call.ts'
import { splitText } from '../../feedback/variables/split.ts'
import type { Read, Variables } from '../../feedback/variables.ts'

/** How values are made harmless in a line: nginx's `escape=`. */
const escapes = ['default', 'json', 'none'] as const
export type Escape = (typeof escapes)[number]

/** Makes the text of a log line, without its line feed, latin1. */
export type LineFormat = (call: Call) => string

/** nginx's format where a log names none. */
export const combined =
  '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'

/** Variables that have a value even when it is empty: nginx writes nothing for them where others get a `-`. */
const present: ReadonlySet<string> = new Set([
  'is_args',
  'https',
  'request_completion',
  'server_name',
  'proxy_add_x_forwarded_for',
])

/**
 * Compiles a `log_format`. An absent value is `-`, and nothing at all in JSON.
 * @param format its texts joined; may have variables
 * @throws Error for an unknown variable
 */
export function compileFormat(format: string, mode: Escape, variables: Variables): LineFormat {
  const guard = guards[mode]
  const parts = splitText(format).map(({ literal, text }): string | Read => {
    if (literal) return bytes(text)
    const read = variables.variable(text)
    const empty = mode === 'json' || present.has(text.toLowerCase()) || variables.declared(text) ? '' : '-'
    return (call) => {
      const value = read(call)
      return value === '' ? empty : guard(value)
    }
  })
  return (call) => {
    let line = ''
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i]!
      line += typeof part === 'string' ? part : part(call)
    }
    return line
  }
}

/** nginx's own escaping: quotes, backslashes, and what is not printable ASCII, as `\x22`. */
export function escapeText(value: string): string {
  return /[^ !#-[\]-~]/.test(value) ? value.replace(/[^ !#-[\]-~]/g, hex) : value
}

/**
 * The inside of a JSON string. UTF-8 stays as it is; bytes that are none become the characters of the same number,
 * so that the line is always valid; control characters are escaped, those above ASCII too.
 */
export function escapeJson(value: string): string {
  if (!/[^ !#-[\]-~]/.test(value)) return value
  const octets = Buffer.from(value, 'latin1')
  if (!isUtf8(octets)) return value.replace(/[^ !#-[\]-~]/g, jsonCharacter)
  // Only where there are such characters is it worth decoding.
  const text = /[\x80-\xff]/.test(value) ? octets.toString('utf8') : value
  return bytes(text.replace(/[\x00-\x1f"\\\x7f-\x9f\u2028\u2029]/g, jsonCharacter))
}

/** `escape=none`, except that a value cannot end its line, nor steer a terminal. */
function escapeNone(value: string): string {
  return /[\x00-\x08\x0a-\x1f\x7f]/.test(value) ? value.replace(/[\x00-\x08\x0a-\x1f\x7f]/g, hex) : value
}

const guards: Readonly<Record<Escape, (value: string) => string>> = {
  default: escapeText,
  json: escapeJson,
  none: escapeNone,
}

function hex(character: string): string {
  return `\\x${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
}

const short: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\b': '\\b',
  '\f': '\\f',
}

function jsonCharacter(character: string): string {
  return short[character] ?? `\\u${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
}
