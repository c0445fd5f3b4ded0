// In which order test files run, and which side by side.

/** How long a file takes, seconds, and how much of a processor it uses meanwhile, when it has time. */
type Need = readonly [seconds: number, cores: number]

/** Of the longer ones, about. Tests that wait for other programs and for intervals use little. */
export const needs: Readonly<Record<string, Need>> = {
  'test/bench/fleet.test.ts': [4, 0.2],
  'test/feedback/fleet/garbled.test.ts': [8, 0.2],
  'test/feedback/fleet/ledger.test.ts': [4, 0.2],
  'test/feedback/fleet/link-refusals.test.ts': [6, 0.2],
  'test/feedback/fleet/link-servers.test.ts': [16, 0.1],
  'test/feedback/fleet/link.test.ts': [7, 0.1],
  'test/probes/bullmq.test.ts': [48, 0.1],
  'test/probes/turns.test.ts': [9, 0.1],
  'test/sidecar/balance/threads.test.ts': [6, 1.2],
  'test/sidecar/simulate/fleet-store.test.ts': [6, 0.2],
  'test/sidecar/simulate/fleet.test.ts': [6, 1],
  'test/sidecar/simulate/run.test.ts': [4, 1],
  'test/sidecar/simulate/targets.test.ts': [11, 1],
  'test/support/prometheus.test.ts': [5, 0.2],
  'test/support/redis.test.ts': [6, 0.1],
  'test/system/canary.test.ts': [6, 0.6],
  'test/system/cases/balancing.test.ts': [15, 0.6],
  'test/system/cases/configurations.test.ts': [10, 0.9],
  'test/system/cases/feedback.test.ts': [13, 0.8],
  'test/system/cases/least-time.test.ts': [9, 0.6],
  'test/system/cases/probes.test.ts': [10, 0.7],
  'test/system/churn.test.ts': [8, 1.1],
  'test/system/cli.test.ts': [18, 0.6],
  'test/system/console/states.test.ts': [5, 1],
  'test/system/fleet/canary.test.ts': [7, 0.6],
  'test/system/fleet/changes.test.ts': [8, 0.8],
  'test/system/fleet/cluster.test.ts': [15, 0.5],
  'test/system/fleet/health.test.ts': [26, 0.6],
  'test/system/fleet/limits.test.ts': [32, 0.4],
  'test/system/fleet/memory.test.ts': [17, 1.2],
  'test/system/fleet/probes.test.ts': [40, 0.3],
  'test/system/fleet/sentinels.test.ts': [19, 0.5],
  'test/system/fleet/servers.test.ts': [22, 0.5],
  'test/system/fleet/sharing.test.ts': [15, 0.6],
  'test/system/fleet/split.test.ts': [50, 0.4],
  'test/system/fleet/trouble.test.ts': [20, 0.5],
  'test/system/reload.test.ts': [14, 0.7],
  'test/system/scrape.test.ts': [13, 0.6],
  'test/system/series.test.ts': [5, 1.1],
  'test/system/signals.test.ts': [12, 0.6],
  'test/system/thread-deaths.test.ts': [20, 0.8],
  'test/system/threads.test.ts': [22, 0.9],
  'test/system/traces-collector.test.ts': [20, 0.6],
  'test/system/traces.test.ts': [13, 0.6],
}
const short: Need = [1, 0.9]

/** Tests that judge programs by paces and times: they come last, where nobody takes much from anybody. */
const judgesTimes = (file: string) =>
  /\/fleet\/|probes\/(?:bullmq|turns)|system\/scrape|cases\/(?:balancing|feedback|least-time)\./.test(file)

/** Tests of programs as they run, and not of what one function decides. */
export const startsPrograms = (file: string) => /^test\/(?:system|probes|feedback\/fleet)\//.test(file)

/** Processors that may be in use: by all files, and as long as one of them judges times. */
const cores = 2
const calmCores = 1.4

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
  return needs[file] ?? short
}
