// In which order test files run, and which side by side.

/** How long a file takes, seconds, and how much of a processor it uses meanwhile, when it has time. */
type Need = readonly [seconds: number, cores: number]

/** Of the longer ones, about. Tests that wait for other programs and for intervals use little. */
export const needs: Readonly<Record<string, Need>> = {
  'test/bench/fleet.test.ts': [3, 0.2],
  'test/bench/proxies.test.ts': [3, 0.5],
  'test/dashboards/rules.test.ts': [2, 1.2],
  'test/feedback/fleet/garbled.test.ts': [7, 0.3],
  'test/feedback/fleet/ledger.test.ts': [4, 0.1],
  'test/feedback/fleet/link-refusals.test.ts': [7, 0.1],
  'test/feedback/fleet/link-servers.test.ts': [16, 0.1],
  'test/feedback/fleet/link.test.ts': [8, 0.1],
  'test/feedback/fleet/sessions.test.ts': [4, 0.4],
  'test/feedback/sessions/threads.test.ts': [2, 1.4],
  'test/fuzz/fuzz.test.ts': [4, 1.5],
  'test/probes/bullmq.test.ts': [48, 0.1],
  'test/probes/every-kind.test.ts': [2, 0.3],
  'test/probes/turns.test.ts': [8, 0.1],
  'test/sidecar/admin/live.test.ts': [10, 0.1],
  'test/sidecar/balance/any-sequence.test.ts': [2, 1.3],
  'test/sidecar/balance/shadow-threads.test.ts': [3, 1.3],
  'test/sidecar/balance/threads.test.ts': [4, 1.3],
  'test/sidecar/simulate/fleet-store.test.ts': [5, 0.2],
  'test/sidecar/simulate/fleet.test.ts': [5, 1.1],
  'test/sidecar/simulate/run.test.ts': [3, 1],
  'test/sidecar/simulate/targets.test.ts': [11, 1.1],
  'test/sidecar/telemetry/pipe-turns.test.ts': [2, 0.2],
  'test/support/aftermath.test.ts': [8, 0.3],
  'test/soak/bounds.test.ts': [9, 0.8],
  'test/soak/soak.test.ts': [5, 1.5],
  'test/support/prometheus.test.ts': [6, 0.2],
  'test/support/redis.test.ts': [7, 0.1],
  'test/system/attacks/ends.test.ts': [7, 0.6],
  'test/system/bytes-meanwhile.test.ts': [6, 0.2],
  'test/system/canary.test.ts': [3, 1],
  'test/system/cases/aborts.test.ts': [3, 0.9],
  'test/system/cases/backpressure.test.ts': [4, 0.8],
  'test/system/cases/balancing.test.ts': [15, 0.6],
  'test/system/cases/configurations.test.ts': [6, 0.9],
  'test/system/cases/configured-health.test.ts': [6, 0.5],
  'test/system/cases/configured-sessions.test.ts': [3, 0.6],
  'test/system/cases/exclusion.test.ts': [3, 1.1],
  'test/system/cases/feedback-reports.test.ts': [2, 1.2],
  'test/system/cases/feedback.test.ts': [13, 0.7],
  'test/system/cases/laboratories.test.ts': [4, 0.7],
  'test/system/cases/least-time.test.ts': [8, 0.6],
  'test/system/cases/loading.test.ts': [2, 1.4],
  'test/system/cases/overflow.test.ts': [2, 0.6],
  'test/system/cases/probes-local.test.ts': [2, 0.7],
  'test/system/cases/probes-reload.test.ts': [4, 0.8],
  'test/system/cases/probes.test.ts': [10, 0.5],
  'test/system/cases/queue-herd.test.ts': [7, 0.8],
  'test/system/cases/queue-reload.test.ts': [9, 0.6],
  'test/system/cases/queue.test.ts': [8, 0.6],
  'test/system/cases/retries.test.ts': [4, 0.8],
  'test/system/cases/reuse.test.ts': [4, 0.5],
  'test/system/cases/ring.test.ts': [3, 0.8],
  'test/system/cases/shadow.test.ts': [8, 0.6],
  'test/system/cases/slow-clients.test.ts': [1, 0.5],
  'test/system/cases/slow-start.test.ts': [4, 0.6],
  'test/system/cases/split.test.ts': [11, 0.9],
  'test/system/cases/sticky-learn.test.ts': [7, 0.7],
  'test/system/cases/streaming.test.ts': [3, 0.4],
  'test/system/changes-peers.test.ts': [5, 0.8],
  'test/system/changes.test.ts': [7, 1],
  'test/system/churn.test.ts': [8, 1.1],
  'test/system/cli.test.ts': [10, 0.6],
  'test/system/console/attempts.test.ts': [13, 0.6],
  'test/system/console/changes.test.ts': [15, 0.5],
  'test/system/console/fleet.test.ts': [7, 0.5],
  'test/system/console/hostile.test.ts': [4, 0.8],
  'test/system/console/keys.test.ts': [9, 0.6],
  'test/system/console/large.test.ts': [13, 0.6],
  'test/system/console/link.test.ts': [13, 0.4],
  'test/system/console/pictures.test.ts': [23, 0.7],
  'test/system/console/states.test.ts': [21, 0.4],
  'test/system/console/tracks.test.ts': [4, 0.7],
  'test/system/console/ways.test.ts': [9, 0.6],
  'test/system/dashboards.test.ts': [22, 0.9],
  'test/system/discovery-life.test.ts': [11, 0.4],
  'test/system/discovery-load.test.ts': [12, 0.6],
  'test/system/discovery-stream.test.ts': [9, 0.6],
  'test/system/discovery.test.ts': [16, 0.3],
  'test/system/drops.test.ts': [10, 0.8],
  'test/system/faults/answers.test.ts': [5, 0.7],
  'test/system/faults/clients.test.ts': [3, 0.6],
  'test/system/faults/clocks.test.ts': [2, 0.6],
  'test/system/faults/descriptors.test.ts': [2, 0.8],
  'test/system/faults/floods.test.ts': [7, 1.4],
  'test/system/faults/logs.test.ts': [8, 0.8],
  'test/system/faults/phases.test.ts': [3, 0.9],
  'test/system/faults/signals.test.ts': [4, 0.6],
  'test/system/faults/stops.test.ts': [7, 0.6],
  'test/system/fleet/canary.test.ts': [8, 0.3],
  'test/system/fleet/changes.test.ts': [10, 0.5],
  'test/system/fleet/cluster.test.ts': [19, 0.4],
  'test/system/fleet/health.test.ts': [27, 0.6],
  'test/system/fleet/limits.test.ts': [33, 0.3],
  'test/system/fleet/memory.test.ts': [14, 1.2],
  'test/system/fleet/probes.test.ts': [45, 0.3],
  'test/system/fleet/sentinels.test.ts': [19, 0.5],
  'test/system/fleet/sessions.test.ts': [5, 0.4],
  'test/system/fleet/servers.test.ts': [22, 0.5],
  'test/system/fleet/sharing.test.ts': [14, 0.5],
  'test/system/fleet/split.test.ts': [35, 0.5],
  'test/system/fleet/trouble.test.ts': [19, 0.5],
  'test/system/found-names-life.test.ts': [6, 1],
  'test/system/found-names.test.ts': [6, 0.8],
  'test/system/grpc/sessions.test.ts': [5, 1.3],
  'test/system/http2/any-frames.test.ts': [7, 0.8],
  'test/system/http2/ends.test.ts': [5, 0.5],
  'test/system/http2/floods.test.ts': [12, 1],
  'test/system/http2/flow.test.ts': [4, 1],
  'test/system/http2/life.test.ts': [12, 0.4],
  'test/system/http2/refusals.test.ts': [4, 0.7],
  'test/system/http2/tools.test.ts': [4, 1.3],
  'test/system/limits.test.ts': [3, 0.8],
  'test/system/mistakes.test.ts': [2, 0.5],
  'test/system/mixture.test.ts': [10, 0.6],
  'test/system/quickstart.test.ts': [6, 0.6],
  'test/system/reload.test.ts': [10, 0.7],
  'test/system/scrape.test.ts': [13, 0.3],
  'test/system/series.test.ts': [4, 1.1],
  'test/system/signals.test.ts': [9, 0.4],
  'test/system/stream/balancing.test.ts': [3, 0.8],
  'test/system/stream/faults.test.ts': [7, 0.9],
  'test/system/stream/found-names.test.ts': [4, 0.9],
  'test/system/stream/lasting.test.ts': [10, 0.6],
  'test/system/stream/moving.test.ts': [3, 0.2],
  'test/system/stream/names.test.ts': [5, 0.3],
  'test/system/stream/probes.test.ts': [8, 0.5],
  'test/system/stream/proxy-protocol.test.ts': [2, 0.5],
  'test/system/stream/sessions.test.ts': [3, 0.6],
  'test/system/stream/slow-readers.test.ts': [3, 1.3],
  'test/system/stream/tls.test.ts': [4, 0.5],
  'test/system/stream/udp-life.test.ts': [9, 0.6],
  'test/system/stream/udp.test.ts': [6, 0.5],
  'test/system/thread-deaths.test.ts': [10, 0.7],
  'test/system/threads.test.ts': [15, 0.9],
  'test/system/tls/bytes.test.ts': [5, 0.8],
  'test/system/tls/clients.test.ts': [4, 1],
  'test/system/tls/handshakes.test.ts': [4, 0.6],
  'test/system/tls/peers.test.ts': [5, 0.8],
  'test/system/tls/reload.test.ts': [6, 1.2],
  'test/system/tls/tickets.test.ts': [3, 0.8],
  'test/system/traces-collector.test.ts': [19, 0.6],
  'test/system/traces-exemplars.test.ts': [6, 0.4],
  'test/system/traces.test.ts': [9, 0.6],
}
const short: Need = [1, 0.9]
/** Of others that start programs, which wait for these now and then. */
const program: Need = [3, 0.6]

/** Tests that judge programs by paces and times: they come last, where nobody takes much from anybody. */
export const judgesTimes = (file: string) =>
  /system\/fleet\/|feedback\/fleet\/(?:garbled|ledger|link)|probes\/(?:bullmq|turns)|system\/scrape|cases\/(?:balancing|feedback|least-time|slow-start)\./.test(
    file,
  )

/** Tests of programs as they run, and not of what one function decides. */
export const startsPrograms = (file: string) =>
  /^test\/(?:system|probes|feedback\/fleet|support|bench|soak|fuzz)\//.test(file)

/**
 * Processors that may be in use: by all files, which leave room now and then, and as long as one of them judges times.
 */
const cores = 2.2
const calmCores = 1.5

/** Files that wait to be run, the longest first. */
export class TestOrder {
  readonly #waiting: string[]
  readonly #running = new Set<string>()

  constructor(files: readonly string[]) {
    const rank = (file: string) => (judgesTimes(file) ? 0 : 1000) + needOf(file)[0]
    this.#waiting = files.toSorted((a, b) => rank(b) - rank(a))
  }

  /** @returns one that can run beside those that do; undefined: there is none now, or none at all */
  take(): string | undefined {
    const at = this.#waiting.findIndex((file) => this.#fits(file))
    if (at < 0) return undefined
    const [file] = this.#waiting.splice(at, 1)
    this.#running.add(file!)
    return file
  }

  ended(file: string): void {
    this.#running.delete(file)
  }

  #fits(file: string): boolean {
    const others = [...this.#running]
    if (others.length === 0) return true
    const calm = judgesTimes(file)
    // As long as others wait it would only hold them up.
    if (calm && !judgesTimes(this.#waiting[0]!)) return false
    const limit = calm || others.some(judgesTimes) ? calmCores : cores
    const used = others.reduce((sum, one) => sum + needOf(one)[1], 0)
    return used + needOf(file)[1] <= limit + 1e-9
  }
}

function needOf(file: string): Need {
  return needs[file] ?? (startsPrograms(file) ? program : short)
}
