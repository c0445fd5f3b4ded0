import type { Draw } from './draw.ts'

/** A request as a generator makes it. */
export interface Made {
  readonly bytes: Buffer
  readonly method: string
  /** It is of a kind that has to be served, and not only may be. */
  readonly sound: boolean
}

const usual = [
  'GET',
  'GET',
  'GET',
  'HEAD',
  'POST',
  'POST',
  'PUT',
  'DELETE',
  'OPTIONS',
  'PATCH',
  'PROPFIND',
  'REPORT',
]
const unusual = ['FOO', 'get', 'TRACE', 'constructor', '__proto__', 'M-SEARCH', 'QUERY', "!#$%&'*+-.^_`|~"]
const tails = [
  '',
  '',
  '',
  '?a=1',
  '?__proto__=1&constructor=2',
  '//x',
  '/./x',
  '/a/../b',
  '/%2F%5C;x=1',
  '/...',
  '?a=/../b',
  "/~!$&'()*+,;=:@",
  '/toString',
]
const oddTails = ['/%00', '/../../..', '/%zz', '#frag', '/{|}^"<>\\', '/\xe9\xff', '?\xe9', '/%', '?#']

/** Names of all kinds; what a sidecar drops (underscores, dots) is among them. */
const names = [
  'X-F',
  'x-f-lower',
  'X-F-UPPER',
  '__proto__',
  'constructor',
  'hasOwnProperty',
  'X_F',
  'X.F',
  '!odd',
  'Accept',
  'Cookie',
  'X-Forwarded-For',
  'Authorization',
  'Content-Type',
  'If-None-Match',
  'Range',
  'Via',
  'Forwarded',
  'Max-Forwards',
  'valueOf',
]
const fieldValues = [
  '',
  'a',
  'a b\tc',
  '\xe9\xff\x80',
  '"quoted, with comma"',
  ',,,',
  'chunked',
  '0',
  'a=b; c=d',
  'GET /evil HTTP/1.1',
  '__proto__',
  '{"a":1}',
  '::1',
  '%0d%0a',
]

/**
 * Makes a valid request.
 * @param id of the case
 * @param last whether it may ask for the connection to be closed
 */
export function makeRequest(draw: Draw, id: string, index: number, last: boolean): Made {
  let sound = true
  let method = draw.pick(usual)
  if (draw.chance(0.03)) {
    method = draw.pick(unusual)
    sound = false
  }
  let target = `/q/${id}/${index}`
  if (draw.chance(0.05)) {
    target += draw.pick(oddTails)
    sound = false
  } else target += draw.pick(tails)
  if (draw.chance(0.08)) target = `${draw.cased('http')}://fuzz${draw.chance(0.3) ? ':80' : ''}${target}`
  const old = draw.chance(0.08)
  const fields: string[] = []
  if (!old || draw.chance(0.7))
    fields.push(
      field(draw, 'Host', draw.pick(['fuzz', 'fuzz:80', 'FUZZ', '127.0.0.1', '[::1]:80', '__proto__'])),
    )
  const named: string[] = []
  for (let left = draw.pick([0, 0, 1, 3, 8, 20]); left > 0; left--) {
    const name = draw.chance(0.3) ? `X-F-${draw.below(3)}` : draw.pick(names)
    if (draw.chance(0.1)) named.push(name)
    fields.push(
      field(draw, name, draw.chance(0.02) ? draw.hex(draw.between(500, 3000)) : draw.pick(fieldValues)),
    )
  }
  const options: string[] = []
  if (last && draw.chance(0.2)) options.push('close')
  // Without it the connection of an old client ends, and what follows is no request.
  else if (old && (!last || draw.chance(0.3))) options.push('keep-alive')
  if (draw.chance(0.1)) options.push(...named)
  if (draw.chance(0.04)) {
    options.push('TE')
    fields.push(field(draw, 'TE', draw.pick(['trailers', 'trailers, deflate;q=0.5'])))
  }
  if (options.length > 0)
    fields.push(
      field(draw, 'Connection', options.map((one) => draw.cased(one)).join(draw.pick([',', ', ', ' , ']))),
    )
  if (draw.chance(0.03))
    fields.push(field(draw, 'Keep-Alive', 'timeout=5'), field(draw, 'Proxy-Connection', 'keep-alive'))
  // Another protocol on an ordinary request is an offer that need not be taken.
  if (!old && draw.chance(0.02)) {
    fields.push(field(draw, 'Connection', 'Upgrade, HTTP2-Settings'), field(draw, 'Upgrade', 'h2c'))
  }
  const carries = method === 'POST' || method === 'PUT' || method === 'PATCH' || method === 'REPORT'
  let body = ''
  if (draw.chance(carries ? 0.9 : 0.06)) {
    const content = bodyOf(draw, id, index)
    if (!old && draw.chance(0.5)) {
      // A tab behind the coding is legal, and refused by some readers.
      fields.push(field(draw, 'Transfer-Encoding', draw.cased('chunked')).replace('\t\r\n', '\r\n'))
      body = chunked(draw, content)
    } else {
      fields.push(field(draw, 'Content-Length', String(content.length)))
      body = content
    }
    if (!old && draw.chance(0.08)) fields.push(field(draw, 'Expect', draw.cased('100-continue')))
  }
  shuffle(draw, fields)
  // The order of `Connection` among them does not matter; the empty line does.
  const lead = index > 0 && draw.chance(0.03) ? '\r\n' : ''
  const head = `${lead}${method} ${target} HTTP/1.${old ? 0 : 1}\r\n${fields.join('')}\r\n`
  return { bytes: Buffer.from(head + body, 'latin1'), method, sound }
}

/** A field line with blanks where they may be. */
export function field(draw: Draw, name: string, value: string): string {
  const before = draw.pick([' ', ' ', ' ', '', '  ', '\t'])
  const after = draw.pick(['', '', '', ' ', ' \t'])
  const spelt = /^[A-Za-z-]+$/.test(name) && draw.chance(0.3) ? draw.cased(name) : name
  return `${spelt}:${before}${value}${after}\r\n`
}

/** A body that would be read as something else where its framing is lost. */
export function bodyOf(draw: Draw, id: string, index: number): string {
  const size = draw.size()
  // Each another one, so that those which come of it can be told apart.
  const evil = (i: number) => `GET /evil/${id}/${index}/${i} HTTP/1.1\r\nHost: fuzz\r\n\r\n`
  const hex = draw.hex(32)
  const part = draw.pick([
    evil,
    (i: number) => `0\r\n\r\n${evil(i)}`,
    () => hex,
    () => '\r\n',
    () => '0\r\n\r\n',
    () => '\0\x01\xff\xfe',
  ])
  let text = ''
  for (let i = 0; text.length < size; i++) text += part(i)
  return text.slice(0, size)
}

/** A body in chunks of any size, spelt in any legal way. */
export function chunked(draw: Draw, body: string, trailers = true): string {
  let text = ''
  let at = 0
  const few = body.length > 4000
  while (at < body.length) {
    const length = few ? draw.between(1000, 20_000) : draw.between(1, Math.max(1, Math.ceil(body.length / 2)))
    const part = body.slice(at, at + length)
    at += part.length
    text += `${draw.pick(['', '', '0', '000'])}${draw.cased(part.length.toString(16))}${extension(draw)}\r\n${part}\r\n`
  }
  text += `${draw.pick(['0', '0', '00'])}${extension(draw)}\r\n`
  if (trailers && draw.chance(0.2)) {
    text += field(draw, 'X-F-Trailer', draw.pick(fieldValues))
    if (draw.chance(0.3)) text += field(draw, 'Content-Length', '3')
    if (draw.chance(0.3)) text += field(draw, '__proto__', 'x')
  }
  return `${text}\r\n`
}

function extension(draw: Draw): string {
  if (!draw.chance(0.15)) return ''
  return draw.pick([';a', ';a=b', ';a="b c"', ';a=b;c=d', ';__proto__=1'])
}

export function shuffle<T>(draw: Draw, list: T[]): void {
  for (let i = list.length - 1; i > 0; i--) {
    const other = draw.below(i + 1)
    const held = list[i]!
    list[i] = list[other]!
    list[other] = held
  }
}
