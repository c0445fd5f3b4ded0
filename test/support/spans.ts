import { SamplingDecision, trace } from '@opentelemetry/api'
import { NodeSDK, type NodeSDKConfiguration } from '@opentelemetry/sdk-node'
import { Methods } from '../../sidecar/telemetry/trace-attributes.ts'
import { propagationOf } from '../../sidecar/telemetry/trace-propagation.ts'
import { Spans, TraceIds } from '../../sidecar/telemetry/trace-spans.ts'

type Processor = NonNullable<NodeSDKConfiguration['spanProcessors']>[number]
/** A span that has ended, as the SDK has it. */
export type EndedSpan = Parameters<Processor['onEnd']>[0]

const ended: EndedSpan[] = []
const ids = new TraceIds()
let kept = true

/** Spans that have ended since this was last asked, in the order of their ends. */
export function endedSpans(): EndedSpan[] {
  return ended.splice(0)
}

/** Whether traces that begin from now on are kept. */
export function keepTraces(keep: boolean): void {
  kept = keep
}

new NodeSDK({
  autoDetectResources: false,
  metricReaders: [],
  logRecordProcessors: [],
  idGenerator: ids,
  sampler: {
    shouldSample: () => ({ decision: SamplingDecision.RECORD_AND_SAMPLED }),
    toString: () => 'all',
  },
  spanProcessors: [
    {
      onStart() {},
      onEnd: (span) => void ended.push(span),
      forceFlush: async () => {},
      shutdown: async () => {},
    },
  ],
}).start()

/** Makes spans by the real SDK, which end here. */
export function spansHere(propagators?: string, methods?: string): Spans {
  return new Spans({
    tracer: trace.getTracer('test'),
    ids,
    sampler: () => kept,
    propagation: propagationOf(propagators),
    methods: new Methods(methods),
    stop: async () => {},
  })
}
