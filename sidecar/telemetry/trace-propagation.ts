import {
  type Context,
  createTraceState,
  propagation,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { findHeader } from '../../feedback/call.ts'
import { randomFlag, readTraceContext, sampledFlag, type TraceContext, traceparent } from './trace-context.ts'

/** A span that a peer's work belongs to. */
export interface Sender {
  readonly traceId: string
  readonly spanId: string
  /** Whether the trace is kept. */
  readonly sampled: boolean
}

/** How contexts come in with requests, and go out with attempts. */
export interface Propagation {
  /** Lower-case names of the fields that carry them. */
  readonly fields: ReadonlySet<string>
  /** @returns undefined where a trace begins here */
  read(rawHeaders: readonly string[]): TraceContext | undefined
  /**
   * Header lines that make a span the parent of what a peer does.
   * @param origin what the request came with
   * @param own fields that the configuration sets itself, `traceparent` not among them: they are left out
   */
  lines(sender: Sender, origin: TraceContext | undefined, own: ReadonlySet<string>): string
}

/** Neither in nor out: what clients send passes on as it is. */
const silent: Propagation = { fields: new Set(), read: () => undefined, lines: () => '' }

/** W3C Trace Context alone. */
const w3c: Propagation = {
  fields: new Set(['traceparent', 'tracestate']),
  read: readTraceContext,
  lines({ traceId, spanId, sampled }, origin, own) {
    const flags = (sampled ? sampledFlag : 0) | ((origin?.flags ?? 0) & randomFlag)
    const line = `traceparent: ${traceparent(traceId, spanId, flags)}\r\n`
    if (origin === undefined || origin.state === '' || own.has('tracestate')) return line
    return `${line}tracestate: ${origin.state}\r\n`
  },
}

/** What a client may send of B3, in either form, whichever goes out. */
const b3Fields = ['b3', 'x-b3-traceid', 'x-b3-spanid', 'x-b3-parentspanid', 'x-b3-sampled', 'x-b3-flags']

/** By the SDK's propagators, where others than W3C's are asked for; W3C's own fields are checked as strictly as ever. */
function bySdk(): Propagation {
  const fields = new Set([...propagation.fields(), ...b3Fields])
  // Baggage is the application's: it passes through like any other field.
  fields.delete('baggage')
  const getter = {
    keys: () => [],
    get: (raw: readonly string[], name: string) =>
      name === 'baggage' || (w3c.fields.has(name) && readTraceContext(raw) === undefined)
        ? undefined
        : findHeader(raw, name.toLowerCase()),
  }
  return {
    fields,
    read(rawHeaders) {
      const found = trace.getSpanContext(propagation.extract(ROOT_CONTEXT, rawHeaders, getter))
      if (found === undefined) return undefined
      const { traceId, spanId, traceFlags, traceState } = found
      return { traceId, spanId, flags: traceFlags, state: traceState?.serialize() ?? '' }
    },
    lines({ traceId, spanId, sampled }, origin, own) {
      const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE
      const span = withState({ traceId, spanId, traceFlags }, origin)
      const found: [name: string, value: string][] = []
      propagation.inject(trace.setSpanContext(ROOT_CONTEXT, span), found, {
        set: (carrier, name, value) => carrier.push([name, value]),
      })
      let lines = ''
      for (const [name, value] of found) if (!own.has(name.toLowerCase())) lines += `${name}: ${value}\r\n`
      return lines
    },
  }
}

/**
 * What `OTEL_PROPAGATORS` asks for.
 * @param names its value; undefined: W3C Trace Context and baggage
 */
export function propagationOf(names: string | undefined): Propagation {
  const asked = (names ?? '').split(',').flatMap((name) => name.trim() || [])
  if (asked.length === 0) return w3c
  if (asked.includes('none')) return silent
  const ours = asked.filter((name) => name !== 'baggage')
  if (ours.length === 0) return silent
  return ours.every((name) => name === 'tracecontext') ? w3c : bySdk()
}

/** What the SDK is given as the parent of a request's span. */
export function contextOf(origin: TraceContext | undefined): Context {
  if (origin === undefined) return ROOT_CONTEXT
  const { traceId, spanId, flags } = origin
  const parent = { traceId, spanId, traceFlags: flags & TraceFlags.SAMPLED, isRemote: true }
  return trace.setSpanContext(ROOT_CONTEXT, withState(parent, origin))
}

/** What it is given as the parent of an attempt's span. */
export function within(span: Span): Context {
  return trace.setSpan(ROOT_CONTEXT, span)
}

function withState(span: SpanContext, origin: TraceContext | undefined): SpanContext {
  if (origin !== undefined && origin.state !== '') span.traceState = createTraceState(origin.state)
  return span
}
