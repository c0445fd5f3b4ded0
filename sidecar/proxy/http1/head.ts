import type { AttemptReason } from '../../../feedback/reasons.ts'
import type { Framing } from './body-decoder.ts'
import { hasToken, isFieldText, readFields } from './fields.ts'

/** The head of a response, and what it says of the body that follows. */
export interface ResponseHead {
  readonly status: number
  readonly reasonPhrase: string
  /** Names and values in turn, as received (latin1). */
  readonly headers: string[]
  /** How the body ends. `length` counts down from `bodyLength`. */
  readonly framing: Framing
  /** Bytes of body announced; 0 unless framing is `length`. */
  readonly bodyLength: number
  /** Whether the connection may carry another request once the body has ended. */
  readonly persistent: boolean
}

/** Why a head cannot be accepted. */
export interface HeadFault {
  readonly reason: AttemptReason
  readonly detail: string
}

/** What is needed of the request to read the response to it (RFC 9112 section 6.3). */
export interface HeadContext {
  readonly method: string
  /** Whether the request asked to switch protocols: only then may a 101 come. */
  readonly upgrade: boolean
}

const statusLine = /^HTTP\/1\.([01]) ([1-5][0-9][0-9])(?: (.*))?$/

/**
 * Reads a response head strictly: what two parsers could read in two ways is refused (RFC 9112 sections 4, 5, 6).
 * @param text the head without its final empty line, latin1
 */
export function readHead(text: string, context: HeadContext): ResponseHead | HeadFault {
  let end = text.indexOf('\r\n')
  if (end < 0) end = text.length
  const match = statusLine.exec(text.slice(0, end))
  if (!match) return fault('invalid status line')
  const minor = match[1]!
  const status = Number(match[2])
  const reasonPhrase = match[3] ?? ''
  if (!isFieldText(reasonPhrase)) return fault('invalid reason phrase')
  const fields = readFields(text, end)
  if (typeof fields === 'string') return fault(fields)
  const { headers, length, encoding, connection } = fields
  if (encoding !== undefined) {
    if (minor === '0') return fault('transfer-encoding in HTTP/1.0')
    if (encoding.toLowerCase() !== 'chunked') return fault('unknown transfer-encoding')
  }
  if (status === 101 && !context.upgrade) return fault('unasked 101')
  const persistent =
    minor === '1' ? !hasToken(connection, 'close') : hasToken(connection, 'keep-alive') && status !== 101
  const bodyless = context.method === 'HEAD' || status < 200 || status === 204 || status === 304
  if (bodyless) {
    // A 204 that announces a body may well send one: the connection is not trusted any further.
    const odd = status === 204 && (encoding !== undefined || (length !== undefined && Number(length) > 0))
    return { status, reasonPhrase, headers, framing: 'none', bodyLength: 0, persistent: persistent && !odd }
  }
  if (encoding !== undefined) {
    return { status, reasonPhrase, headers, framing: 'chunked', bodyLength: 0, persistent }
  }
  if (length !== undefined) {
    const bodyLength = Number(length)
    const framing = bodyLength === 0 ? 'none' : 'length'
    return { status, reasonPhrase, headers, framing, bodyLength, persistent }
  }
  return { status, reasonPhrase, headers, framing: 'close', bodyLength: 0, persistent: false }
}

function fault(detail: string): HeadFault {
  return { reason: 'invalid_header', detail }
}
