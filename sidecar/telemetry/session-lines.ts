import type { Call } from '../../feedback/call.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import { escapeText } from './log-format.ts'

/** Where an attempt of `stream` was when it came to nothing, in nginx's words. */
export function sessionPhase(attempt: Attempt): string {
  if (attempt.connectMs === undefined) return 'while connecting to upstream'
  const from = attempt.reason === 'client_abort' ? 'client' : 'upstream'
  return `while proxying and reading from ${from}`
}

/** Whose session it was, and what had passed. */
export function sessionContext(call: Call, attempt: Attempt): string {
  const client = escapeText(call.remoteAddr)
  return (
    `, client: ${client}, server: ${escapeText(call.serverName)}, upstream: "${attempt.address}"` +
    `, bytes from/to client:${call.requestLength}/${call.bytesSent}` +
    `, bytes from/to upstream:${attempt.bytesReceived}/${attempt.bytesSent}`
  )
}
