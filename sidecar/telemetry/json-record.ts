import type { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import { attemptHead, ms, recordHead, recordTail, text, textOrNull, word } from './json-parts.ts'

/**
 * The log format `json`: one object a request, with every attempt at a peer in it. Put together by hand, since it is
 * made for every request; `null` is what is not known.
 */
export function jsonRecord(call: Call): string {
  const { attempts, trace } = call
  const ended = call.endedAt || monotonic()
  let line = recordHead(call)
  if (trace !== undefined) {
    // As OpenTelemetry names them in logs of others' formats.
    line += `,"trace_id":"${trace.traceId}","span_id":"${trace.spanId}","trace_flags":"${trace.sampled ? '01' : '00'}"`
  }
  line += `,"client":${text(call.remoteAddr)},"method":${text(call.originalMethod ?? call.method)}`
  line += `,"host":${text(call.host)},"path":${text(call.target)}`
  line += `,"status":${call.endStatus},"bytes":${call.bytesSent},"request_bytes":${call.requestLength}`
  line += `,"duration_ms":${ms(ended - call.startedAt)},"upstream":${textOrNull(call.upstream)}`
  line += `,"track":${word(attempts.at(-1)?.peer?.options.track ?? call.track)}`
  if (call.queueMs !== undefined) line += `,"queue_ms":${ms(call.queueMs)}`
  line += `,"denial":${word(call.denial)},"user_agent":${textOrNull(call.header('user-agent') ?? '')}`
  return line + recordTail(call, record)
}

function record(attempt: Attempt, from: number): string {
  let line = attemptHead(attempt, from)
  line += `,"status":${attempt.status ?? null},"connect_ms":${ms(attempt.connectMs)}`
  line += `,"header_ms":${ms(attempt.headerMs)},"response_ms":${ms(attempt.responseMs)}`
  line += `,"bytes_sent":${attempt.bytesSent},"bytes_received":${attempt.bytesReceived}`
  if (attempt.grpcStatus !== undefined) line += `,"grpc_status":${attempt.grpcStatus}`
  return `${line},"reused":${attempt.reused}}`
}
