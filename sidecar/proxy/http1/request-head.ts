import type { IncomingHead, Unserved } from '../client-side.ts'
import { hasToken, readFields } from './fields.ts'

/** The head of a request, and what it says of the connection and of the body that follows. */
export interface ClientHead extends IncomingHead {
  readonly version: '1.1' | '1.0'
  /** Whether the client would send another request on the connection. */
  readonly persistent: boolean
}

// nginx's letters of a method, and digits. Methods are case-sensitive, and no registered one has small letters.
const requestLine = /^([A-Z][A-Z0-9_-]*) ([^\x00-\x20\x7f]+) HTTP\/([0-9])\.([0-9])$/

/**
 * Reads a request head strictly: what two parsers could read in two ways is refused (RFC 9112 sections 3, 5, 6).
 * @param text the head without its final empty line, latin1
 */
export function readRequestHead(text: string): ClientHead | Unserved {
  let end = text.indexOf('\r\n')
  if (end < 0) end = text.length
  const line = requestLine.exec(text.slice(0, end))
  if (!line) return unserved(400, 'invalid request line')
  const method = line[1]!
  const target = line[2]!
  if (line[3] !== '1') {
    const reason =
      method === 'PRI'
        ? 'HTTP/2 where HTTP/1.1 is spoken (no "http2 on", or no TLS)'
        : 'unknown version of HTTP'
    return unserved(line[3] === '0' ? 400 : 505, reason, method, target)
  }
  const version = line[4] === '0' ? '1.0' : '1.1'
  const fields = readFields(text, end)
  if (typeof fields === 'string') return unserved(400, fields, method, target)
  const { headers, length, lengths, encoding, connection, odd } = fields
  // Of repeated lengths, of other codings and of this one in HTTP/1.0 parsers disagree about where the body ends.
  if (lengths > 1) return unserved(400, 'repeated content-length', method, target)
  if (encoding !== undefined && (encoding.toLowerCase() !== 'chunked' || version === '1.0')) {
    return unserved(400, 'unknown transfer-encoding', method, target)
  }
  if (method === 'CONNECT') return unserved(405, 'CONNECT', method, target)
  const bodyLength = length === undefined ? 0 : Number(length)
  const framing = encoding !== undefined ? 'chunked' : bodyLength > 0 ? 'length' : 'none'
  const persistent = version === '1.1' ? !hasToken(connection, 'close') : hasToken(connection, 'keep-alive')
  let protocols = ''
  let expectsContinue = false
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!
    if (name.length === 7 && name.toLowerCase() === 'upgrade') {
      protocols += `${headers[i + 1]!},`
    } else if (name.length === 6 && name.toLowerCase() === 'expect' && version === '1.1') {
      if (headers[i + 1]!.toLowerCase() !== '100-continue')
        return unserved(417, 'unknown expectation', method, target)
      expectsContinue = framing !== 'none'
    }
  }
  return {
    method,
    target,
    version,
    headers,
    bytes: text.length + 4,
    framing,
    bodyLength,
    persistent,
    upgrade: protocols !== '' && mayUpgrade(protocols, connection, framing),
    expectsContinue,
    odd,
  }
}

/**
 * Whether a request that asks to switch protocols is taken at its word. Clients offer h2c on ordinary requests, and
 * a request with a body has to be read before anything else could be spoken: those stay requests.
 */
function mayUpgrade(protocols: string, connection: string, framing: ClientHead['framing']): boolean {
  return framing === 'none' && hasToken(connection, 'upgrade') && !/\bh2c\b/i.test(protocols)
}

export function unserved(status: number, why: string, method = '', target = ''): Unserved {
  return { status, why, method, target }
}
