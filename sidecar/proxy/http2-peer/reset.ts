import { type ClientHttp2Stream, constants } from 'node:http2'
import { addAbortSignal } from 'node:stream'

/** Error codes of RFC 9113 section 7 in words. */
const codeNames: ReadonlyMap<number, string> = new Map(
  Object.entries(constants).flatMap(([name, code]) => {
    const error =
      /^NGHTTP2_(NO_ERROR|.*_ERROR|REFUSED_STREAM|CANCEL|STREAM_CLOSED|ENHANCE_YOUR_CALM|.*_TIMEOUT|INADEQUATE_SECURITY|HTTP_1_1_REQUIRED)$/.exec(
        name,
      )
    return error && typeof code === 'number' && code >= 0 ? [[code, error[1]!] as const] : []
  }),
)

const cancelled = AbortSignal.abort()

/**
 * Resets a stream that is not wanted any more. `close` would not do: it ends the request in order first, and what the
 * peer has of it would look like all of it. What ends it by a signal is the one error that says CANCEL to the peer.
 */
export function cancel(stream: ClientHttp2Stream): void {
  addAbortSignal(cancelled, stream)
}

/** The peer has ended a stream before its answer was whole. */
export function resetError(code: number, error: Error | undefined): NodeJS.ErrnoException {
  const text =
    code === 0 && error !== undefined ? error.message : `stream ended by ${codeNames.get(code) ?? code}`
  return Object.assign(new Error(text), { code: 'ECONNRESET' })
}

/** What nghttp2 ended a session with, in words; undefined for other errors: it is the peer that speaks no HTTP/2. */
export function breach(error: NodeJS.ErrnoException | undefined): NodeJS.ErrnoException | undefined {
  if (error?.code !== 'ERR_HTTP2_ERROR') return undefined
  return Object.assign(new Error(`peer broke HTTP/2: ${error.message}`), { code: error.code })
}
