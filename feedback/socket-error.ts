import type { Ending } from './outcome.ts'
import type { AttemptReason } from './reasons.ts'

/** What an error of a socket means for who was asked. */
export interface SocketVerdict {
  readonly ending: Ending
  readonly reason: AttemptReason
  /** It is this machine that has no descriptor or port: says nothing of the peer. */
  readonly local: boolean
}

/** Errors of connecting that are this machine's and not the peer's. */
const localErrors = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL', 'EAGAIN'])

/** There is no connection. */
export function connectVerdict(error: NodeJS.ErrnoException): SocketVerdict {
  const { code = '' } = error
  if (code === 'ECONNREFUSED') return { ending: 'error', reason: 'refused', local: false }
  if (code === 'ETIMEDOUT') return { ending: 'timeout', reason: 'timeout_connect', local: false }
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return { ending: 'error', reason: 'dns', local: false }
  if (isTls(error)) return { ending: 'error', reason: 'tls', local: false }
  if (isReset(error)) return { ending: 'error', reason: 'reset', local: false }
  if (isBreach(error)) return { ending: 'error', reason: 'invalid_header', local: false }
  return { ending: 'error', reason: 'unreachable', local: localErrors.has(code) }
}

/** Why a connection is gone before the answer was there. @param error undefined where the peer closed it in order */
export function lossReason(
  error: NodeJS.ErrnoException | undefined,
): 'reset' | 'closed' | 'tls' | 'invalid_header' {
  if (error && isTls(error)) return 'tls'
  if (error && isBreach(error)) return 'invalid_header'
  return error && isReset(error) ? 'reset' : 'closed'
}

/** A handshake that failed, or what the peer says of TLS afterwards: it may refuse a certificate once it has seen it. */
function isTls({ code = '' }: NodeJS.ErrnoException): boolean {
  return code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_')
}

/** What came is no HTTP/2, so that the whole connection is of no use. */
function isBreach({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ERR_HTTP2_ERROR'
}

function isReset({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ECONNRESET' || code === 'EPIPE' || code === 'ECONNABORTED'
}
