import type { Call } from '../call.ts'

type Read = (call: Call) => string

/**
 * Variables that tell the trace of the request, by the names that nginx's OpenTelemetry module gives them. Empty where
 * requests are not traced; the ids are told of traces that are not kept, too, since peers are told them.
 */
export const traceVariables: ReadonlyMap<string, Read> = new Map<string, Read>([
  ['otel_trace_id', ({ trace }) => trace?.traceId ?? ''],
  ['otel_span_id', ({ trace }) => trace?.spanId ?? ''],
  ['otel_parent_id', ({ trace }) => trace?.parentId ?? ''],
  ['otel_parent_sampled', ({ trace }) => (trace === undefined ? '' : trace.parentSampled ? '1' : '0')],
])
