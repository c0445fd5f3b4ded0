import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { ensure, pathOf } from '../../scripts/ensure.ts'
import { freePort } from './free-port.ts'
import { guard } from './guard.ts'

const needs = () => ensure(['prometheus', 'promtool'])

/** What Prometheus is to read, and how. */
export interface ScrapeTarget {
  /** The label `job`; targets of one job have one path. */
  readonly job: string
  /** Host and port: `127.0.0.1:9900`. */
  readonly address: string
  /** Default `/metrics`. */
  readonly path?: string
  /** Further labels on all that is read there. */
  readonly labels?: Readonly<Record<string, string>>
}

export interface PrometheusOptions {
  readonly targets: readonly ScrapeTarget[]
  /** Files of recording rules and alerts. */
  readonly rules?: readonly string[]
  /** Between two readings of a target, milliseconds. Default 500. */
  readonly scrapeMs?: number
  /** Between two evaluations of a group of rules that says nothing of it, milliseconds. Default 500. */
  readonly evaluationMs?: number
}

/** One series of the answer to a query: its labels, and the value at the time asked for. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** One that was given with a sample of the series. */
export interface PrometheusExemplar {
  readonly series: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
  /** Seconds since 1970. */
  readonly at: number
}

export interface RuleState {
  readonly type: 'recording' | 'alerting'
  readonly name: string
  readonly query: string
  readonly health: 'ok' | 'err' | 'unknown'
  readonly lastError?: string
  /** Of an alert: `inactive`, `pending`, `firing`. */
  readonly state?: string
}

export interface TargetState {
  readonly labels: Readonly<Record<string, string>>
  readonly health: 'up' | 'down' | 'unknown'
  readonly lastError: string
  readonly lastScrape: string
  /** Seconds. */
  readonly lastScrapeDuration: number
}

/** A real Prometheus on loopback that keeps nothing, and ends with this process, however that ends. */
export class Prometheus implements AsyncDisposable {
  readonly url: string
  readonly #child: ChildProcess
  readonly #guard: ChildProcess
  readonly #folder: string

  constructor(url: string, folder: string) {
    this.url = url
    this.#folder = folder
    this.#child = spawn(
      pathOf('prometheus'),
      [
        `--config.file=${join(folder, 'prometheus.json')}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=${new URL(url).host}`,
        '--enable-feature=exemplar-storage',
        '--log.level=warn',
      ],
      { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, GOMAXPROCS: '1' } },
    )
    this.#guard = guard(this.#child.pid!, folder)
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.log += text
      })
      // What `spawn` types as a stream is a socket, which can be left out of what keeps the process alive.
      const pipe = stream as unknown as { unref?(): void }
      pipe.unref?.()
    }
    this.#child.unref()
  }

  /** What it has written. */
  log = ''

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Waits until it answers queries. */
  async ready(withinMs = 20_000): Promise<void> {
    const end = performance.now() + withinMs
    while (this.running && performance.now() < end) {
      const answer = await fetch(`${this.url}/-/ready`).catch(() => undefined)
      await answer?.arrayBuffer()
      if (answer?.ok) return
      await sleep(30)
    }
    throw new Error(`prometheus ${this.running ? 'is not ready in time' : 'ended'}:\n${this.log}`)
  }

  /** The series that an expression gives now, or at a time in seconds since 1970. @throws with what is wrong in it */
  async query(expression: string, at?: number): Promise<Sample[]> {
    const form = new URLSearchParams({ query: expression, ...(at === undefined ? {} : { time: String(at) }) })
    // The shapes are those that Prometheus documents.
    const data = (await this.#ask('query', form)) as
      | { resultType: 'scalar' | 'string'; result: [number, string] }
      | { resultType: 'vector'; result: { metric: Record<string, string>; value: [number, string] }[] }
      | { resultType: 'matrix'; result: { metric: Record<string, string>; values: [number, string][] }[] }
    if (data.resultType === 'vector') {
      return data.result.map(({ metric, value }) => ({ labels: metric, value: number(value[1]) }))
    }
    if (data.resultType === 'matrix') {
      return data.result.map(({ metric, values }) => ({ labels: metric, value: number(values.at(-1)![1]) }))
    }
    return [{ labels: {}, value: number(data.result[1]) }]
  }

  /** Asks until an expression gives a series that is as wanted, by default until it gives any; then all of them. */
  async gives(
    expression: string,
    wanted: (samples: readonly Sample[]) => boolean = (samples) => samples.length > 0,
    withinMs = 15_000,
  ): Promise<Sample[]> {
    const end = performance.now() + withinMs
    for (;;) {
      const samples = await this.query(expression)
      if (wanted(samples)) return samples
      if (performance.now() > end) {
        throw new Error(`${expression} gives ${JSON.stringify(samples)}; prometheus:\n${this.log}`)
      }
      await sleep(50)
    }
  }

  /** All rules of all groups. */
  async rules(): Promise<RuleState[]> {
    const data = (await this.#ask('rules')) as { groups: { rules: RuleState[] }[] }
    return data.groups.flatMap((group) => group.rules)
  }

  async targets(): Promise<TargetState[]> {
    const data = (await this.#ask('targets')) as { activeTargets: TargetState[] }
    return data.activeTargets
  }

  /** Those of the series that a selector names, of the last ten minutes. */
  async exemplars(selector: string): Promise<PrometheusExemplar[]> {
    const now = Date.now() / 1000
    const form = new URLSearchParams({ query: selector, start: String(now - 600), end: String(now + 60) })
    const data = (await this.#ask('query_exemplars', form)) as {
      seriesLabels: Record<string, string>
      exemplars: { labels: Record<string, string>; value: string; timestamp: number }[]
    }[]
    return data.flatMap(({ seriesLabels, exemplars }) =>
      exemplars.map(({ labels, value, timestamp }) => ({
        series: seriesLabels,
        labels,
        value: number(value),
        at: timestamp,
      })),
    )
  }

  async #ask(path: string, form?: URLSearchParams): Promise<unknown> {
    const response = await fetch(
      `${this.url}/api/v1/${path}`,
      form === undefined ? {} : { method: 'POST', body: form },
    )
    const answer = (await response.json()) as { status: string; error?: string; data: unknown }
    if (answer.status !== 'success') throw new Error(`${form?.get('query') ?? path}: ${answer.error}`)
    return answer.data
  }

  async stop(): Promise<void> {
    if (this.running) {
      this.#child.ref()
      const ended = once(this.#child, 'exit')
      // It keeps nothing: there is nothing to wait for.
      this.#child.kill('SIGKILL')
      await ended
    }
    this.#guard.kill('SIGKILL')
    rmSync(this.#folder, { recursive: true, force: true })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}

function number(text: string): number {
  return Number(text.replace('Inf', 'Infinity'))
}

/** Starts one on a free port, and waits until it answers; its targets are read from then on. */
export async function prometheus(options: PrometheusOptions): Promise<Prometheus> {
  await needs()
  const interval = (ms = 500) => `${ms}ms`
  for (let tries = 0; ; tries++) {
    const folder = mkdtempSync(join(tmpdir(), 'evenkeel-prometheus-'))
    const rules = (options.rules ?? []).map((path, index) => {
      const file = join(folder, `rules-${index}.yaml`)
      writeFileSync(file, readFileSync(path))
      return file
    })
    // JSON is YAML too.
    const config = {
      global: {
        scrape_interval: interval(options.scrapeMs),
        scrape_timeout: interval(options.scrapeMs),
        evaluation_interval: interval(options.evaluationMs),
      },
      storage: { exemplars: { max_exemplars: 10_000 } },
      rule_files: rules,
      scrape_configs: [...Map.groupBy(options.targets, ({ job }) => job)].map(([job, targets]) => ({
        job_name: job,
        metrics_path: targets[0]?.path ?? '/metrics',
        static_configs: targets.map(({ address, labels = {} }) => ({ targets: [address], labels })),
      })),
    }
    writeFileSync(join(folder, 'prometheus.json'), JSON.stringify(config))
    const server = new Prometheus(`http://127.0.0.1:${await freePort()}`, folder)
    try {
      await server.ready()
      return server
    } catch (error) {
      await server.stop()
      if (tries === 5 || !server.log.includes('address already in use')) throw error
    }
  }
}

/** What promtool says: `promtool('check', 'rules', file)`. @throws with all of it where it finds faults */
export async function promtool(...args: readonly string[]): Promise<string> {
  await needs()
  try {
    const { stdout, stderr } = await promisify(execFile)(pathOf('promtool'), args)
    return stdout + stderr
  } catch (error) {
    // What `execFile` adds to its errors.
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new Error(`promtool ${args.join(' ')}:\n${stdout}${stderr}`)
  }
}
