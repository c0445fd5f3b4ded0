import {
  type Context,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api'
import type { Call, CallTrace } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import {
  attemptAttributes,
  attemptError,
  endingAttributes,
  type Methods,
  requestAttributes,
  requestError,
  responseAttributes,
} from './trace-attributes.ts'
import { TraceClock } from './trace-clock.ts'
import { drawSpanId } from './trace-context.ts'
import { type Origin, type Propagation, within } from './trace-propagation.ts'
import type { SentRequest, Tracing } from './tracing.ts'

/** The trace of one request, with its spans as long as they run. */
class LiveTrace implements CallTrace {
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string
  readonly parentSampled: boolean
  readonly sampled: boolean
  readonly origin: Origin
  readonly span: Span
  /** For `TraceClock.at`. */
  readonly offset: number
  /** Spans of attempts that have not ended. */
  readonly attempts = new Map<Attempt, Span>()
  /** What its attempts' spans have as their parent; made when it is first asked for. */
  #context: Context | undefined

  constructor(span: Span, origin: Origin, offset: number) {
    const { traceId, spanId, traceFlags } = span.spanContext()
    const { parent } = origin
    this.traceId = traceId
    this.spanId = spanId
    this.parentId = parent?.spanId ?? ''
    this.parentSampled = parent !== undefined && (parent.traceFlags & TraceFlags.SAMPLED) !== 0
    this.sampled = (traceFlags & TraceFlags.SAMPLED) !== 0
    this.origin = origin
    this.span = span
    this.offset = offset
  }

  get context(): Context {
    this.#context ??= within(this.span)
    return this.#context
  }
}

/** Makes one span a request and one an attempt. Of a trace that is not kept there is the request's alone, which is empty. */
export class Spans implements Tracing {
  readonly fields: ReadonlySet<string>
  readonly #tracer: Tracer
  readonly #propagation: Propagation
  readonly #methods: Methods
  readonly #clock = new TraceClock(monotonic, Date.now)
  readonly #stop: (withinMs: number) => Promise<void>

  constructor(parts: {
    readonly tracer: Tracer
    readonly propagation: Propagation
    readonly methods: Methods
    readonly stop: (withinMs: number) => Promise<void>
  }) {
    this.fields = parts.propagation.fields
    this.#tracer = parts.tracer
    this.#propagation = parts.propagation
    this.#methods = parts.methods
    this.#stop = parts.stop
  }

  begin(call: Call): void {
    if (call.trace !== undefined) return
    const origin = this.#propagation.read(call.rawHeaders)
    const offset = this.#clock.follow()
    const span = this.#tracer.startSpan(
      this.#methods.word(call.originalMethod ?? call.method),
      { kind: SpanKind.SERVER, startTime: TraceClock.at(call.startedAt, offset) },
      origin.context,
    )
    const trace = new LiveTrace(span, origin, offset)
    call.trace = trace
    if (!span.isRecording()) return
    // Not with its start: no sampler that the environment can name looks at them, and the SDK, which checks each of them
    // with some garbage, would do so for requests that are not kept, and twice for those that are.
    span.setAttributes(requestAttributes(call, this.#methods))
    if (!trace.sampled) return
    call.traceId = trace.traceId
    call.spanId = trace.spanId
  }

  attempt(call: Call, attempt: Attempt, request: SentRequest): string {
    const trace = liveTrace(call)
    if (trace === undefined) return ''
    const { origin, span } = trace
    if (!span.isRecording()) {
      // Peers are told all the same, so that they do not begin a trace of their own.
      const sent = { ...span.spanContext(), spanId: drawSpanId() }
      return this.#lines(sent, origin, request)
    }
    const client = this.#tracer.startSpan(
      this.#methods.word(request.method),
      { kind: SpanKind.CLIENT, startTime: TraceClock.at(attempt.startedAt, trace.offset) },
      trace.context,
    )
    client.setAttributes(attemptAttributes(call, attempt, request, this.#methods))
    const sent = client.spanContext()
    if ((sent.traceFlags & TraceFlags.SAMPLED) !== 0) {
      attempt.traceId = sent.traceId
      attempt.spanId = sent.spanId
    }
    trace.attempts.set(attempt, client)
    return this.#lines(sent, origin, request)
  }

  /** None where the configuration sets the context by hand: then what the client sent has passed. */
  #lines(span: SpanContext, origin: Origin, { own }: SentRequest): string {
    return own.has('traceparent') ? '' : this.#propagation.lines(span, origin, own)
  }

  ended(call: Call, attempt: Attempt): void {
    const trace = liveTrace(call)
    const span = trace?.attempts.get(attempt)
    if (trace === undefined || span === undefined) return
    trace.attempts.delete(attempt)
    span.setAttributes(endingAttributes(attempt))
    if (attemptError(attempt) !== undefined) span.setStatus({ code: SpanStatusCode.ERROR })
    const { startedAt, responseMs } = attempt
    const end = responseMs === undefined ? monotonic() : startedAt + responseMs
    span.end(TraceClock.at(end, trace.offset))
  }

  end(call: Call): void {
    this.begin(call)
    const trace = liveTrace(call)
    if (trace === undefined || !trace.span.isRecording()) return
    // An attempt that nobody has seen to its end (a mistake of ours) must not leave a hole.
    for (const attempt of [...trace.attempts.keys()]) this.ended(call, attempt)
    const { span } = trace
    const word = this.#methods.word(call.originalMethod ?? call.method)
    if (call.location !== '') span.updateName(`${word} ${call.location}`)
    span.setAttributes(responseAttributes(call))
    if (requestError(call) !== undefined) span.setStatus({ code: SpanStatusCode.ERROR })
    span.end(TraceClock.at(call.endedAt || monotonic(), trace.offset))
  }

  stop(withinMs: number): Promise<void> {
    return this.#stop(withinMs)
  }
}

/** Whoever sets `call.trace` is this file, but its type does not say so. */
function liveTrace({ trace }: Call): LiveTrace | undefined {
  return trace instanceof LiveTrace ? trace : undefined
}
