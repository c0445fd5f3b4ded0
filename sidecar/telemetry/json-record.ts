import type { Call } from '../../feedback/call.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import { drawRequestId } from '../../feedback/variables/request.ts'
import { escapeJson } from './log-format.ts'

/**
 * The log format `json`: one object a request, with every attempt at a peer in it. Put together by hand, since it is
 * made for every request; `null` is what is not known.
 */
export function jsonRecord(call: Call): string {
  const { attempts } = call
  const ended = call.endedAt || performance.now()
  let line = `{"time":"${new Date().toISOString()}","request_id":"${call.requestId(drawRequestId)}"`
  line += `,"client":${text(call.remoteAddr)},"method":${text(call.originalMethod ?? call.method)}`
  line += `,"host":${text(call.host)},"path":${text(call.target)}`
  line += `,"status":${call.status},"bytes":${call.bytesSent},"request_bytes":${call.requestLength}`
  line += `,"duration_ms":${ms(ended - call.startedAt)},"upstream":${textOrNull(call.upstream)}`
  if (call.queueMs !== undefined) line += `,"queue_ms":${ms(call.queueMs)}`
  line += `,"denial":${textOrNull(call.denial ?? '')},"user_agent":${textOrNull(call.header('user-agent') ?? '')}`
  line += ',"attempts":['
  for (let i = 0; i < attempts.length; i++) line += (i === 0 ? '' : ',') + record(attempts[i]!)
  return `${line}]}`
}

function record(attempt: Attempt): string {
  let line = `{"peer":${text(attempt.address)},"pick":${textOrNull(attempt.pick)}`
  line += `,"ending":${textOrNull(attempt.ending ?? '')},"reason":${textOrNull(attempt.reason ?? '')}`
  line += `,"status":${attempt.status ?? null},"connect_ms":${ms(attempt.connectMs)}`
  line += `,"header_ms":${ms(attempt.headerMs)},"response_ms":${ms(attempt.responseMs)}`
  line += `,"bytes_sent":${attempt.bytesSent},"bytes_received":${attempt.bytesReceived}`
  return `${line},"reused":${attempt.reused}}`
}

const text = (value: string): string => `"${escapeJson(value)}"`
const textOrNull = (value: string): string => (value === '' ? 'null' : text(value))

/** Microseconds are as far as the clock is worth anything. */
function ms(value: number | undefined): number | null {
  return value === undefined || !Number.isFinite(value) ? null : Math.round(value * 1000) / 1000
}
