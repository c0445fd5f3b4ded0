import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { type DiagLogger, DiagLogLevel, diag, SamplingDecision, trace } from '@opentelemetry/api'
import { NodeSDK, type NodeSDKConfiguration } from '@opentelemetry/sdk-node'
import { errorLog, type Level } from './error-log.ts'
import { Methods } from './trace-attributes.ts'
import { type SpanExporter, WatchedExporter } from './trace-export.ts'
import { propagationOf } from './trace-propagation.ts'
import { samplerOf } from './trace-sampler.ts'
import { Spans, TraceIds } from './trace-spans.ts'
import type { Program, Tracing } from './tracing.ts'

type Env = Readonly<Record<string, string | undefined>>

/** Keeps every span that is begun. */
const keeping = {
  shouldSample: () => ({ decision: SamplingDecision.RECORD_AND_SAMPLED }),
  toString: () => 'decided before',
}

/** Longest value of an attribute, characters: spans that wait to be sent must not fill the memory. */
const longestValue = 2048
/** How long the last spans may take where those before did not arrive, milliseconds. */
const forlornMs = 200

/**
 * Traces requests as the `OTEL_` variables say: where spans go, which are kept, what contexts look like.
 * @param env what the SDK has in `process.env`
 * @returns undefined where the SDK cannot be set up; why is in the log
 */
export async function traceByEnvironment(env: Env, program: Program): Promise<Tracing | undefined> {
  try {
    const lines = new Lines()
    diag.setLogger(lines, { logLevel: logLevel(env), suppressOverrideMessage: true })
    const exporter = await exporterOf(env)
    // What it drops while nothing arrives is no news.
    lines.quiet = () => exporter?.failing === true
    const ids = new TraceIds()
    const sdk = describing(env, program, () => {
      const made = new NodeSDK(configuration(env, exporter, ids))
      made.start()
      return made
    })
    const tracer = trace.getTracer('evenkeel', program.version)
    // One that has nowhere to send spans makes none; why is in the log by now. This one never ends, so it goes nowhere.
    if (!tracer.startSpan('').isRecording()) throw new Error('no exporter')
    return new Spans({
      tracer,
      ids,
      sampler: samplerOf(env, (text) => errorLog.log('warn', `traces: ${text}`)),
      propagation: propagationOf(env['OTEL_PROPAGATORS']),
      methods: new Methods(env['OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS']),
      stop: async (withinMs) => {
        const patience = exporter?.failing ? Math.min(forlornMs, withinMs) : withinMs
        await Promise.race([sdk.shutdown(), wait(patience)]).catch((error: unknown) => diag.error(`${error}`))
      },
    })
  } catch (error) {
    errorLog.log('error', `traces: ${error instanceof Error ? error.message : error}; there are none`)
    return undefined
  }
}

function configuration(
  env: Env,
  exporter: SpanExporter | undefined,
  idGenerator: TraceIds,
): Partial<NodeSDKConfiguration> {
  const limited = env['OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT'] || env['OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT']
  const named =
    env['OTEL_SERVICE_NAME'] || /(?:^|,)\s*service\.name\s*=/.test(env['OTEL_RESOURCE_ATTRIBUTES'] ?? '')
  return {
    // Numbers are at /metrics, lines in the log: by themselves these two would send to the same place as traces.
    metricReaders: [],
    logRecordProcessors: [],
    // Which traces are kept is decided before there are spans; see trace-sampler.ts.
    sampler: keeping,
    idGenerator,
    ...(exporter && { traceExporter: exporter }),
    ...(!limited && { spanLimits: { attributeValueLengthLimit: longestValue } }),
    ...(!named && { serviceName: 'evenkeel' }),
  }
}

/**
 * The exporter, where it is OTLP's and nothing else is asked for.
 * @returns undefined for others: the SDK makes them
 */
async function exporterOf(env: Env): Promise<WatchedExporter | undefined> {
  if (!['', 'otlp'].includes((env['OTEL_TRACES_EXPORTER'] ?? '').trim())) return undefined
  const protocol =
    env['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL']?.trim() || env['OTEL_EXPORTER_OTLP_PROTOCOL']?.trim()
  return new WatchedExporter(await otlp(protocol ?? ''), (level, text) => errorLog.log(level, text))
}

async function otlp(protocol: string): Promise<SpanExporter> {
  if (protocol === 'grpc') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-grpc')
    return new OTLPTraceExporter()
  }
  if (protocol === 'http/json') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http')
    return new OTLPTraceExporter()
  }
  if (protocol !== '' && protocol !== 'http/protobuf') {
    errorLog.log('warn', `traces: unknown protocol "${protocol}", http/protobuf is used`)
  }
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto')
  return new OTLPTraceExporter()
}

/** Detectors of what runs: without the process's, which tells the whole command line to whoever gets spans. */
const detectors = 'host,os,env'

/**
 * Has the SDK find who this program is among the attributes of the environment, before those that are set: they win.
 * All threads are one instance, while by itself each SDK would be another. Its own lines it would write by itself.
 */
function describing<T>(env: Env, { version, startedAt }: Program, make: () => T): T {
  const digest = createHash('sha256').update(`${hostname()} ${process.pid} ${startedAt}`).digest('hex')
  const id = digest.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-8$4-$5')
  const { OTEL_RESOURCE_ATTRIBUTES: attributes, OTEL_NODE_RESOURCE_DETECTORS: asked } = env
  const ours = `service.version=${version},service.instance.id=${id}`
  const undo = [
    setVariable('OTEL_RESOURCE_ATTRIBUTES', attributes ? `${ours},${attributes}` : ours),
    setVariable('OTEL_NODE_RESOURCE_DETECTORS', asked || detectors),
    setVariable('OTEL_LOG_LEVEL', undefined),
  ]
  try {
    return make()
  } finally {
    for (const back of undo) back()
  }
}

/** @param value undefined: as if it were not set. @returns sets it back */
function setVariable(name: string, value: string | undefined): () => void {
  const before = process.env[name]
  const set = (to: string | undefined) => {
    if (to === undefined) delete process.env[name]
    else process.env[name] = to
  }
  set(value)
  return () => set(before)
}

/** What of the SDK's own lines is logged. */
function logLevel(env: Env): DiagLogLevel {
  switch (env['OTEL_LOG_LEVEL']?.trim().toLowerCase()) {
    case 'none':
      return DiagLogLevel.NONE
    case 'error':
      return DiagLogLevel.ERROR
    case 'info':
      return DiagLogLevel.INFO
    case 'debug':
      return DiagLogLevel.DEBUG
    case 'verbose':
    case 'all':
      return DiagLogLevel.ALL
    default:
      return DiagLogLevel.WARN
  }
}

/** A line that differs from an earlier one by its numbers alone is written once in so many milliseconds. */
const repeatMs = 60_000
/** How many different lines are remembered for that. */
const mostLines = 100

/** The SDK's own lines, in the error log. */
class Lines implements DiagLogger {
  /** Whether nothing is to be said now. */
  quiet = () => false
  readonly #last = new Map<string, number>()

  error = (text: string) => this.#log('error', text)
  warn = (text: string) => this.#log('warn', text)
  info = (text: string) => this.#log('info', text)
  debug = (text: string) => this.#log('debug', text)
  verbose = (text: string) => this.#log('debug', text)

  #log(level: Level, text: string): void {
    if (!errorLog.admits(level) || this.quiet()) return
    const now = performance.now()
    const kind = text.replace(/\d+/g, '0')
    if (now - (this.#last.get(kind) ?? Number.NEGATIVE_INFINITY) < repeatMs) return
    if (this.#last.size >= mostLines) this.#last.clear()
    this.#last.set(kind, now)
    errorLog.log(level, `traces: ${messageOf(text)}`)
  }
}

/** The SDK writes errors as JSON, with their stacks. */
function messageOf(text: string): string {
  if (!text.startsWith('{')) return text
  try {
    const { message } = JSON.parse(text)
    return typeof message === 'string' ? message : text
  } catch {
    return text
  }
}
