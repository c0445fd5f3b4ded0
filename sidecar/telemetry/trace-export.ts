import type { NodeSDKConfiguration } from '@opentelemetry/sdk-node'

export type SpanExporter = NonNullable<NodeSDKConfiguration['traceExporter']>
type Spans = Parameters<SpanExporter['export']>[0]
type Result = Parameters<Parameters<SpanExporter['export']>[1]>[0]

/** `ExportResultCode.SUCCESS`, whose package is not among this program's. */
const success: Result['code'] = 0

/** Passes spans on to an exporter, and says when it fails and when it works again: once each. */
export class WatchedExporter implements SpanExporter {
  readonly #exporter: SpanExporter
  readonly #say: (level: 'warn' | 'notice', text: string) => void
  #lost = 0
  #failing = false

  constructor(exporter: SpanExporter, say: (level: 'warn' | 'notice', text: string) => void) {
    this.#exporter = exporter
    this.#say = say
  }

  /** Whether the last spans did not arrive. */
  get failing(): boolean {
    return this.#failing
  }

  export(spans: Spans, done: (result: Result) => void): void {
    this.#exporter.export(spans, (result) => {
      if (result.code === success) this.#arrived()
      else this.#missed(spans.length, result.error)
      // Whoever asked would log every failure anew.
      done({ code: success })
    })
  }

  forceFlush(): Promise<void> {
    return this.#exporter.forceFlush?.() ?? Promise.resolve()
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown()
  }

  #arrived(): void {
    if (!this.#failing) return
    this.#failing = false
    this.#say('notice', `traces: spans arrive again, ${this.#lost} or more were lost`)
    this.#lost = 0
  }

  #missed(spans: number, error: Error | undefined): void {
    this.#lost += spans
    if (this.#failing) return
    this.#failing = true
    this.#say('warn', `traces: ${reasonOf(error)}; spans are dropped until they can be sent`)
  }
}

/** An error that stands for several, as of a name with two addresses, says nothing itself. */
function reasonOf(error: Error | undefined): string {
  const all = error instanceof AggregateError ? error.errors : [error]
  const texts = all.flatMap((one) => (one instanceof Error && one.message !== '' ? one.message : []))
  return texts.length > 0 ? [...new Set(texts)].join(', ') : 'sending failed'
}
