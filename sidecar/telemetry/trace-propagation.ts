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
import { randomFlag, readTraceContext, traceparent } from './trace-context.ts'

/** The span that a request came from, and what goes on from it to peers. */
export interface Origin {
  readonly parent: SpanContext | undefined
  /** What the sampler and the request's own span are given. */
  readonly context: Context
  /** The `tracestate` as it came, checked; empty for none. */
  readonly state: string
  /** `randomFlag` where it was set. */
  readonly random: number
}

const none: Origin = { parent: undefined, context: ROOT_CONTEXT, state: '', random: 0 }

/** How contexts come in with requests, and go out with attempts. */
export interface Propagation {
  /** Lower-case names of the fields that carry them. */
  readonly fields: ReadonlySet<string>
  read(rawHeaders: readonly string[]): Origin
  /**
   * Header lines that make a span the parent of what a peer does.
   * @param own fields that the configuration sets itself, `traceparent` not among them: they are left out
   */
  lines(span: SpanContext, origin: Origin, own: ReadonlySet<string>): string
}

/** Neither in nor out: what clients send passes on as it is. */
const silent: Propagation = { fields: new Set(), read: () => none, lines: () => '' }

/** W3C Trace Context alone. */
const w3c: Propagation = {
  fields: new Set(['traceparent', 'tracestate']),
  read(rawHeaders) {
    const found = readTraceContext(rawHeaders)
    if (found === undefined) return none
    const { traceId, spanId, flags, state } = found
    const parent: SpanContext = { traceId, spanId, traceFlags: flags & TraceFlags.SAMPLED, isRemote: true }
    if (state !== '') parent.traceState = createTraceState(state)
    return {
      parent,
      context: trace.setSpanContext(ROOT_CONTEXT, parent),
      state,
      random: flags & randomFlag,
    }
  },
  lines(span, { parent, state, random }, own) {
    const lines = `traceparent: ${traceparent(span.traceId, span.spanId, span.traceFlags | random)}\r\n`
    // A sampler may have put something of its own in; otherwise what came goes on to the letter.
    const text = span.traceState === parent?.traceState ? state : (span.traceState?.serialize() ?? '')
    return text === '' || own.has('tracestate') ? lines : `${lines}tracestate: ${text}\r\n`
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
      const context = propagation.extract(ROOT_CONTEXT, rawHeaders, getter)
      const parent = trace.getSpanContext(context)
      return parent === undefined ? none : { parent, context, state: '', random: 0 }
    },
    lines(span, _, own) {
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

/** What an attempt's span is given as its parent. */
export function within(span: Span): Context {
  return trace.setSpan(ROOT_CONTEXT, span)
}
