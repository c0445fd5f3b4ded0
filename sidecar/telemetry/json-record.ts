import type { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import { utcTime } from '../../feedback/variables/clock.ts'
import { drawRequestId } from '../../feedback/variables/request.ts'
import { escapeJson } from './log-format.ts'

/**
 * The log format `json`: one object a request, with every attempt at a peer in it. Put together by hand, since it is
 * made for every request; `null` is what is not known.
 */
export function jsonRecord(call: Call): string {
  const { attempts, trace } = call
  const ended = call.endedAt || monotonic()
  let line = `{"time":"${utcTime(Date.now())}","request_id":"${call.requestId(drawRequestId)}"`
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
  line += ',"attempts":['
  for (let i = 0; i < attempts.length; i++)
    line += (i === 0 ? '' : ',') + record(attempts[i]!, call.startedAt)
  return `${line}]}`
}

/** @param from when the request began: what lies between two attempts was waiting */
function record(attempt: Attempt, from: number): string {
  let line = `{"peer":${text(attempt.address)},"track":${word(attempt.peer?.options.track)}`
  line += `,"pick":${word(attempt.pick)},"at_ms":${ms(attempt.startedAt - from)}`
  line += `,"ending":${word(attempt.ending)},"reason":${word(attempt.reason)}`
  line += `,"status":${attempt.status ?? null},"connect_ms":${ms(attempt.connectMs)}`
  line += `,"header_ms":${ms(attempt.headerMs)},"response_ms":${ms(attempt.responseMs)}`
  line += `,"bytes_sent":${attempt.bytesSent},"bytes_received":${attempt.bytesReceived}`
  if (attempt.grpcStatus !== undefined) line += `,"grpc_status":${attempt.grpcStatus}`
  return `${line},"reused":${attempt.reused}}`
}

/** One of our own words, or a track, whose name has nothing in it to escape either. */
export const word = (value: string | undefined): string => (value ? `"${value}"` : 'null')
export const text = (value: string): string => `"${escapeJson(value)}"`
export const textOrNull = (value: string): string => (value === '' ? 'null' : text(value))

/** Microseconds are as far as the clock is worth anything. */
export function ms(value: number | undefined): number | null {
  return value === undefined || !Number.isFinite(value) ? null : Math.round(value * 1000) / 1000
}
