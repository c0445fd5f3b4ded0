import type { Call } from '../../feedback/call.ts'
import type { Attempt } from '../../feedback/outcome.ts'

/** What is said of a request to a peer. */
export interface SentRequest {
  readonly method: string
  /** In origin form, as it goes to the peer. */
  readonly target: string
  /** Whether it goes over HTTP/2. */
  readonly http2: boolean
  /** Lower-case names of the fields that the configuration sets itself. */
  readonly own: ReadonlySet<string>
}

/** Makes spans of requests and attempts, and tells peers whose they are. */
export interface Tracing {
  /** Lower-case names of the fields that a request to a peer gets anew for each attempt; a client's are not passed. */
  readonly fields: ReadonlySet<string>
  /** A request has come: its server and host are known. A second call for the same request does nothing. */
  begin(call: Call): void
  /**
   * An attempt is about to be sent; it is the last of the call's.
   * @returns further header lines for the peer, each with its line end
   */
  attempt(call: Call, attempt: Attempt, request: SentRequest): string
  /** An attempt has ended: all of its fields are filled in. */
  ended(call: Call, attempt: Attempt): void
  /** A request has ended: its record is complete. One that never began does so now. */
  end(call: Call): void
  /** Hands over what is not yet sent. Never rejects. @param withinMs how long it may take */
  stop(withinMs: number): Promise<void>
}

/** How long the last spans may take on their way, milliseconds. */
const lastSpansMs = 1000

/** Undefined while requests are not traced: that costs a comparison. */
export let tracing: Tracing | undefined

/** Who traces requests from now on. */
function traceBy(by: Tracing | undefined): void {
  tracing = by
}

/**
 * Variables that say that traces are wanted. Others of OpenTelemetry's do not, since they concern metrics, logs, or
 * programs in other languages, or only say how much is logged.
 */
const telling =
  /^OTEL_(?:SERVICE_NAME|RESOURCE_ATTRIBUTES|PROPAGATORS|TRACES_.+|BSP_.+|SPAN_.+|EXPORTER_ZIPKIN_.+|EXPORTER_OTLP_(?!METRICS_|LOGS_).+)$/

/** Whether the environment asks for traces. An empty variable is as good as none, by the specification. */
export function tracesWanted(env: Readonly<Record<string, string | undefined>>): boolean {
  const text = (name: string) => env[name]?.trim().toLowerCase() ?? ''
  if (text('OTEL_SDK_DISABLED') === 'true' || text('OTEL_TRACES_EXPORTER') === 'none') return false
  return Object.keys(env).some((name) => telling.test(name) && text(name) !== '')
}

/** This program, as its spans tell of it. */
export interface Program {
  readonly version: string
  /** Wall clock milliseconds; the same in all of its threads. */
  readonly startedAt: number
}

let started = false

/** Begins to trace requests where the environment asks for it; the second time it does nothing. */
export async function startTracing(program: Program): Promise<void> {
  if (started || !tracesWanted(process.env)) return
  started = true
  // A large part of the program's memory, and of its start: not for those who do not want it.
  const { traceByEnvironment } = await import('./trace-sdk.ts')
  traceBy(await traceByEnvironment(process.env, program))
}

/** The end: what is not yet sent is sent, where that is done soon. Never rejects. */
export async function stopTracing(): Promise<void> {
  await tracing?.stop(lastSpansMs)
}
