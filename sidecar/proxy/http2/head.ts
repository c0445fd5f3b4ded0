import type { IncomingHead, Unserved } from '../client-side.ts'
import { isFieldText, plainName, token } from '../http1/fields.ts'

const method = /^[A-Z][A-Z0-9_-]*$/
const target = /^[^\x00-\x20\x7f]+$/

/** The head of a request in HTTP/2. */
export interface StreamHead extends IncomingHead {
  /** Whether the client said that it can take trailers. */
  readonly takesTrailers: boolean
}

/**
 * Reads the fields of a request's head, strictly (RFC 9113 section 8.3.1): what nghttp2 lets pass and an HTTP/1.1 head
 * could not say, or what two parsers could read in two ways, is refused. The host becomes a `Host` field, at the front,
 * and the parts of a cookie become one.
 * @param raw names and values in turn, pseudo-fields first
 * @param ended whether no body follows
 * @param maxHead most bytes of request line and fields together, as HTTP/1.1 would write them
 */
export function readHead(raw: readonly string[], ended: boolean, maxHead: number): StreamHead | Unserved {
  const head = new Fields()
  const why = head.read(raw)
  const refused = (status: number, why: string): Unserved => {
    return { status, why, method: head.method, target: head.target }
  }
  if (why !== undefined) return refused(400, why)
  if (head.method === 'CONNECT') return refused(405, 'CONNECT')
  if (!method.test(head.method)) return refused(400, 'invalid method')
  const asterisk = head.target === '*' && head.method === 'OPTIONS'
  if (!target.test(head.target) || (head.target[0] !== '/' && !asterisk)) return refused(400, 'invalid path')
  if (head.bytes > maxHead) return refused(431, 'header too large')
  if (head.expectation !== undefined && head.expectation !== '100-continue') {
    return refused(417, 'unknown expectation')
  }
  const bodyLength = ended || head.length === undefined ? 0 : Number(head.length)
  const framing = ended || head.length === '0' ? 'none' : head.length === undefined ? 'chunked' : 'length'
  return {
    method: head.method,
    target: head.target,
    version: '2.0',
    headers: head.headers,
    bytes: head.bytes,
    framing,
    bodyLength,
    upgrade: false,
    expectsContinue: head.expectation !== undefined && framing !== 'none',
    odd: head.odd,
    takesTrailers: head.takesTrailers,
  }
}

/** The fields of a head, and those that decide what it is. */
class Fields {
  method = ''
  target = ''
  /** Names and values in turn. */
  headers: string[] = []
  bytes = ' / HTTP/2.0\r\n\r\n'.length
  length: string | undefined = undefined
  /** Lower case. */
  expectation: string | undefined = undefined
  odd = false
  takesTrailers = false
  #authority: string | undefined = undefined
  #cookie: string | undefined = undefined

  /** @returns what is wrong, where something is */
  read(raw: readonly string[]): string | undefined {
    let wrong: string | undefined
    const { headers } = this
    for (let i = 0; i < raw.length; i += 2) {
      const name = raw[i]!
      const value = raw[i + 1]!
      this.bytes += name.length + value.length + 4
      if (name[0] === ':') this.#pseudo(name, value)
      else if (name === 'cookie')
        this.#cookie = this.#cookie === undefined ? value : `${this.#cookie}; ${value}`
      else {
        wrong ??= this.#field(name, value)
        headers.push(name, value)
      }
      if (!isFieldText(value)) wrong ??= `invalid value of header ${name}`
    }
    if (this.#cookie !== undefined) headers.push('cookie', this.#cookie)
    // Where a Host field names another host than this, it stays beside it: two hosts are refused like any others.
    if (this.#authority !== undefined) this.headers = this.#withHost(this.#authority)
    return wrong
  }

  #pseudo(name: string, value: string): void {
    if (name === ':method') this.method = value
    else if (name === ':path') this.target = value
    else if (name === ':authority') this.#authority = value
  }

  #field(name: string, value: string): string | undefined {
    if (!plainName.test(name)) {
      if (!token.test(name)) return 'invalid header name'
      this.odd = true
    }
    if (name === 'content-length') {
      if (this.length !== undefined) return 'repeated content-length'
      this.length = value
      if (!/^[0-9]{1,15}$/.test(value)) return 'invalid content-length'
    } else if (name === 'expect') this.expectation = value.toLowerCase()
    // Nothing else may stand there (RFC 9113 section 8.2.2).
    else if (name === 'te') this.takesTrailers = true
    return undefined
  }

  #withHost(authority: string): string[] {
    const { headers } = this
    const out = ['host', authority]
    for (let i = 0; i < headers.length; i += 2) {
      const same = headers[i] === 'host' && headers[i + 1]!.toLowerCase() === authority.toLowerCase()
      if (!same) out.push(headers[i]!, headers[i + 1]!)
    }
    return out
  }
}
