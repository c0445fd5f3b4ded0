/** Request targets: read as nginx reads them, and written again for peers. All texts are latin1, one character a byte. */

/** A request target, taken apart. */
export interface ParsedTarget {
  /** Path, decoded, with `//` merged and `.` and `..` resolved. What locations and rewrites see. */
  readonly uri: string
  /** Query string without its question mark, untouched. */
  readonly args: string
  /** Origin form as it may be sent on: the bytes as received, without scheme, host and fragment. */
  readonly origin: string
  /** Host with its port, of an absolute target; undefined for one in origin form. */
  readonly authority: string | undefined
}

/** Bytes that cannot stand in a request line. */
const unfit = /[\x00-\x20\x7f]/

/**
 * Reads a request target in origin or absolute form (RFC 9112 section 3.2).
 *
 * A fragment has no place in a request. It is cut off, from what is sent on as well: a peer that took it for a part
 * of the path (`/public#/../admin`) would see another path than the one that was routed.
 * @param mergeSlashes whether `//` counts as `/`
 * @returns undefined when it is none, or leads out of the root
 */
export function parseTarget(target: string, mergeSlashes = true): ParsedTarget | undefined {
  if (unfit.test(target)) return undefined
  let origin = target
  let authority: string | undefined
  if (!target.startsWith('/')) {
    const [, host, rest] = /^https?:\/\/([^/?#]+)(.*)$/i.exec(target) ?? []
    if (host === undefined || rest === undefined || rest.startsWith('#')) return undefined
    authority = host
    // RFC 9112 section 3.2.1: an empty path is sent as a slash.
    origin = rest.startsWith('/') ? rest : `/${rest}`
  }
  const fragment = origin.indexOf('#')
  if (fragment >= 0) origin = origin.slice(0, fragment)
  const question = origin.indexOf('?')
  const path = question < 0 ? origin : origin.slice(0, question)
  const uri = normalise(path, mergeSlashes)
  if (uri === undefined) return undefined
  return { uri, args: question < 0 ? '' : origin.slice(question + 1), origin, authority }
}

/** What makes a path differ from its normal form. */
const notPlain = /%|\/\/|\/\./

/**
 * Decodes a path, merges slashes and resolves dot segments, in this order, so that `%2e%2e` and `%2f` mean what
 * they stand for, as in nginx.
 * @returns undefined for bad escapes, `%00` and paths that lead out of the root
 */
export function normalise(path: string, mergeSlashes = true): string | undefined {
  if (!notPlain.test(path)) return path
  const decoded = decode(path)
  if (decoded === undefined) return undefined
  const parts = decoded.slice(1).split('/')
  const kept: string[] = []
  const last = parts.length - 1
  for (let i = 0; i <= last; i += 1) {
    const part = parts[i]!
    if (part === '..') {
      if (kept.pop() === undefined) return undefined
    } else if (part !== '.' && (part !== '' || !mergeSlashes)) {
      kept.push(part)
      continue
    }
    // `/a/.` and `/a/b/..` are folders.
    if (i === last) kept.push('')
  }
  return `/${kept.join('/')}`
}

function decode(path: string): string | undefined {
  if (!path.includes('%')) return path
  if (/%(?![0-9a-f]{2})|%00/i.test(path)) return undefined
  return path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

const escaped = (byte: string) => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`

/**
 * Escapes a decoded path for a request line: everything that RFC 3986 does not allow in a path, and what would end
 * one. The same set as nginx's since 1.21.1.
 */
export function escapeUri(path: string): string {
  return path.replace(/[\x00-\x20"#%<>?\\^`{|}\x7f-\xff]/g, escaped)
}

/** Escapes a capture for a query string: as a path, and what separates arguments. */
export function escapeArgs(text: string): string {
  return text.replace(/[\x00-\x20"#%&+;<>?\\^`{|}\x7f-\xff]/g, escaped)
}

/**
 * Makes a text that variables yielded fit for a request line or a `Location`: `$uri` may hold decoded spaces and
 * line breaks, which would end the line and begin another.
 */
export function fitForLine(text: string): string {
  return unfit.test(text) ? text.replace(/[\x00-\x20\x7f]/g, escaped) : text
}

/**
 * Undoes the escapes in the path of a redirect that stand for printable characters, as nginx does with what
 * `rewrite … redirect` yields: a captured `%2F` is a slash again, a `%20` stays. The query string is left alone.
 */
export function unescapeRedirect(text: string): string {
  const end = text.search(/\?|%3f/i)
  const path = end < 0 ? text : text.slice(0, end)
  const rest = end < 0 ? '' : text[end] === '?' ? text.slice(end) : `?${text.slice(end + 3)}`
  const opened = path.replace(/%([0-9a-f]{2})/gi, (whole, hex: string) => {
    const code = Number.parseInt(hex, 16)
    return code > 0x25 && code < 0x7f ? String.fromCharCode(code) : whole
  })
  return opened + rest
}

/** Splits `/path?args` at its first question mark. */
export function splitArgs(text: string): { readonly uri: string; readonly args: string } {
  const at = text.indexOf('?')
  return at < 0 ? { uri: text, args: '' } : { uri: text.slice(0, at), args: text.slice(at + 1) }
}

/** Lower case of ASCII letters alone: bytes above are parts of UTF-8 characters, not letters. */
export function lowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

const hostForm = /^(\[[0-9a-f:.]+\]|[a-z0-9._~!$&'()*+,;=%\x80-\xff-]+)(?::(\d*))?$/

/**
 * Reads `host[:port]` of a Host header or an absolute target.
 * @returns the host in lower case, without its port and a final dot; undefined when it is none
 */
export function parseHost(text: string): string | undefined {
  const [, host] = hostForm.exec(lowerCase(text)) ?? []
  if (host === undefined || host.includes('..')) return undefined
  const name = host.endsWith('.') ? host.slice(0, -1) : host
  return name === '' ? undefined : name
}
