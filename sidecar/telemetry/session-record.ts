import type { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import { attemptHead, ms, recordHead, recordTail, text, textOrNull, word } from './json-parts.ts'

/**
 * The log format `json` in `stream`: one object a session, with every attempt at a peer in it. What is the same as of a
 * request has the same name.
 */
export function sessionRecord(call: Call): string {
  const { attempts } = call
  const ended = call.endedAt || monotonic()
  let line = recordHead(call)
  line += `,"protocol":"${call.protocol}","client":${text(call.remoteAddr)},"server":${text(call.serverName)}`
  line += `,"status":${call.status},"bytes":${call.bytesSent},"request_bytes":${call.requestLength}`
  line += `,"duration_ms":${ms(ended - call.startedAt)},"upstream":${textOrNull(call.upstream)}`
  line += `,"track":${word(attempts.at(-1)?.peer?.options.track ?? call.track)},"denial":${word(call.denial)}`
  return line + recordTail(call, record)
}

function record(attempt: Attempt, from: number): string {
  let line = attemptHead(attempt, from)
  line += `,"connect_ms":${ms(attempt.connectMs)},"first_byte_ms":${ms(attempt.headerMs)}`
  line += `,"session_ms":${ms(attempt.responseMs)}`
  return `${line},"bytes_sent":${attempt.bytesSent},"bytes_received":${attempt.bytesReceived}}`
}
