import { type Context, type Span, SpanKind, SpanStatusCode, type Tracer } from '@opentelemetry/api'
import type { Call, CallTrace } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import {
  attemptAttributes,
  attemptError,
  endingAttributes,
  type Methods,
  requestAttributes,
  responseAttributes,
} from './trace-attributes.ts'
import { TraceClock } from './trace-clock.ts'
import { drawSpanId, drawTraceId, sampledFlag, type TraceContext } from './trace-context.ts'
import { contextOf, type Propagation, within } from './trace-propagation.ts'
import type { Sampler } from './trace-sampler.ts'
import type { SentRequest, Tracing } from './tracing.ts'

/** The trace of one request. */
class RequestTrace implements CallTrace {
  readonly traceId: string
  readonly spanId: string
  readonly origin: TraceContext | undefined
  /** Undefined where the trace is not kept. */
  readonly spans: LiveSpans | undefined

  constructor(traceId: string, spanId: string, origin: TraceContext | undefined, spans?: LiveSpans) {
    this.traceId = traceId
    this.spanId = spanId
    this.origin = origin
    this.spans = spans
  }

  get parentId(): string {
    return this.origin?.spanId ?? ''
  }

  get parentSampled(): boolean {
    return ((this.origin?.flags ?? 0) & sampledFlag) !== 0
  }

  get sampled(): boolean {
    return this.spans !== undefined
  }
}

/** The spans of a trace that is kept, as long as they run. */
interface LiveSpans {
  readonly request: Span
  /** What the attempts' spans have as their parent. */
  readonly context: Context
  /** Those of attempts that have not ended. */
  readonly attempts: Map<Attempt, Span>
  /** For `TraceClock.at`. */
  readonly offset: number
}

/** Gives the SDK the id of a trace that was decided on before there was a span. */
export class TraceIds {
  next = ''
  generateTraceId = (): string => this.next || drawTraceId()
  generateSpanId = drawSpanId
}

/** What spans are made with. */
export interface SpanParts {
  /** One that keeps every trace that it is asked to begin, under the id that `ids` has for it. */
  readonly tracer: Tracer
  readonly ids: TraceIds
  readonly sampler: Sampler
  readonly propagation: Propagation
  readonly methods: Methods
  readonly stop: (withinMs: number) => Promise<void>
}

/** Makes one span a request and one an attempt, of traces that are kept; of others there are no more than the ids. */
export class Spans implements Tracing {
  readonly fields: ReadonlySet<string>
  readonly #parts: SpanParts
  readonly #clock = new TraceClock(monotonic, Date.now)

  constructor(parts: SpanParts) {
    this.#parts = parts
    this.fields = parts.propagation.fields
  }

  begin(call: Call): void {
    if (call.trace !== undefined) return
    const { propagation, sampler } = this.#parts
    const origin = propagation.read(call.rawHeaders)
    const traceId = origin === undefined ? drawTraceId() : origin.traceId
    const parent = origin && { sampled: (origin.flags & sampledFlag) !== 0 }
    call.trace = sampler(traceId, parent)
      ? this.#keep(call, traceId, origin)
      : new RequestTrace(traceId, drawSpanId(), origin)
  }

  #keep(call: Call, traceId: string, origin: TraceContext | undefined): RequestTrace {
    const { tracer, ids, methods } = this.#parts
    const offset = this.#clock.follow()
    ids.next = traceId
    const request = tracer.startSpan(
      methods.word(call.originalMethod ?? call.method),
      { kind: SpanKind.SERVER, startTime: TraceClock.at(call.startedAt, offset) },
      contextOf(origin),
    )
    // Not with its start, where the SDK checks all of them twice: no sampler looks at them.
    request.setAttributes(requestAttributes(call, methods))
    const { spanId } = request.spanContext()
    call.traceId = traceId
    call.spanId = spanId
    return new RequestTrace(traceId, spanId, origin, {
      request,
      context: within(request),
      attempts: new Map(),
      offset,
    })
  }

  attempt(call: Call, attempt: Attempt, request: SentRequest): string {
    const trace = traceOf(call)
    if (trace === undefined) return ''
    const { traceId, origin, spans } = trace
    const spanId = spans === undefined ? drawSpanId() : this.#send(spans, call, attempt, request)
    // Where the configuration sets the context by hand, what the client sent has passed.
    if (request.own.has('traceparent')) return ''
    // Peers are told of traces that are not kept too, so that they do not begin others.
    return this.#parts.propagation.lines(
      { traceId, spanId, sampled: spans !== undefined },
      origin,
      request.own,
    )
  }

  /** Begins the span of an attempt. @returns its id */
  #send(spans: LiveSpans, call: Call, attempt: Attempt, request: SentRequest): string {
    const { tracer, methods } = this.#parts
    const span = tracer.startSpan(
      methods.word(request.method),
      { kind: SpanKind.CLIENT, startTime: TraceClock.at(attempt.startedAt, spans.offset) },
      spans.context,
    )
    span.setAttributes(attemptAttributes(call, attempt, request, methods))
    const { traceId, spanId } = span.spanContext()
    attempt.traceId = traceId
    attempt.spanId = spanId
    spans.attempts.set(attempt, span)
    return spanId
  }

  ended(call: Call, attempt: Attempt): void {
    const spans = traceOf(call)?.spans
    const span = spans?.attempts.get(attempt)
    if (spans === undefined || span === undefined) return
    spans.attempts.delete(attempt)
    span.setAttributes(endingAttributes(attempt))
    if (attemptError(attempt) !== undefined) span.setStatus({ code: SpanStatusCode.ERROR })
    const { startedAt, responseMs } = attempt
    const end = responseMs === undefined ? monotonic() : startedAt + responseMs
    span.end(TraceClock.at(end, spans.offset))
  }

  end(call: Call): void {
    this.begin(call)
    const spans = traceOf(call)?.spans
    if (spans === undefined) return
    // An attempt that nobody has seen to its end (a mistake of ours) must not leave a hole.
    for (const attempt of [...spans.attempts.keys()]) this.ended(call, attempt)
    const { request } = spans
    const word = this.#parts.methods.word(call.originalMethod ?? call.method)
    if (call.location !== '') request.updateName(`${word} ${call.location}`)
    const attributes = responseAttributes(call)
    request.setAttributes(attributes)
    if (attributes['error.type'] !== undefined) request.setStatus({ code: SpanStatusCode.ERROR })
    request.end(TraceClock.at(call.endedAt || monotonic(), spans.offset))
  }

  stop(withinMs: number): Promise<void> {
    return this.#parts.stop(withinMs)
  }
}

/** Whoever sets `call.trace` is this file, but its type does not say so. */
function traceOf({ trace }: Call): RequestTrace | undefined {
  return trace instanceof RequestTrace ? trace : undefined
}
