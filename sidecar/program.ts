import { setTimeout as wait } from 'node:timers/promises'
import { monotonic } from '../feedback/clock.ts'
import { prometheusResponse } from './admin/prometheus.ts'
import { apiPath, statusResponse } from './admin/status.ts'
import { Admins } from './admins.ts'
import type { LiveGroup } from './build/groups.ts'
import type { Running } from './build/running.ts'
import type { Loaded } from './config/load.ts'
import { timeMs } from './config/units.ts'
import { ConfigWatch } from './config-watch.ts'
import { drain } from './drain.ts'
import { mostConnections } from './limits.ts'
import { mistakeOf, stackOf } from './mistake.ts'
import { programFacts } from './program-facts.ts'
import { Listeners } from './proxy/listener.ts'
import { Serving } from './proxy/serving.ts'
import { Tunnels } from './proxy/upgrade.ts'
import { makeReady, type Ready } from './ready.ts'
import { type Reloaded, Reloads } from './reloads.ts'
import { accessLogPaths, pathOf, type Source } from './source.ts'
import { logAttempts } from './telemetry/attempt-lines.ts'
import { errorLog } from './telemetry/error-log.ts'
import { logFiles } from './telemetry/log-files.ts'
import { escapeText } from './telemetry/log-format.ts'

/** The program at work: one configuration in force, replaced as a whole by a reload. */
export class Program {
  readonly reloads: Reloads
  readonly #source: Source
  readonly #tunnels = new Tunnels()
  readonly #facts = programFacts(this)
  readonly #admins = new Admins(this.#facts, (text) => errorLog.log('alert', text))
  readonly #watch: ConfigWatch
  readonly #removed = new Set<LiveGroup>()
  #serving: Serving | undefined
  #listeners: Listeners | undefined
  #loaded: Loaded | undefined
  #token: string | undefined
  #running: Running | undefined
  #phase: 'starting' | 'ready' | 'draining' = 'starting'
  #generation = 0
  #loadedAt = 0
  #fullAt = Number.NEGATIVE_INFINITY

  constructor(source: Source) {
    this.#source = source
    this.reloads = new Reloads(() => this.#reload())
    this.#watch = new ConfigWatch(() => void this.reloads.ask())
  }

  get phase(): 'starting' | 'ready' | 'draining' {
    return this.#phase
  }
  get generation(): number {
    return this.#generation
  }
  /** Wall clock milliseconds. */
  get loadedAt(): number {
    return this.#loadedAt
  }
  get loaded(): Loaded | undefined {
    return this.#loaded
  }
  get token(): string | undefined {
    return this.#token
  }
  get running(): Running | undefined {
    return this.#running
  }
  get listeners(): Listeners | undefined {
    return this.#listeners
  }
  /** Groups that the configuration no longer has and that still carry calls. */
  get removed(): Iterable<LiveGroup> {
    for (const group of this.#removed) {
      if (group.balancing.upstream.zone.retired.length === 0) this.#removed.delete(group)
    }
    return this.#removed
  }

  /**
   * Opens everything; afterwards it serves.
   * @throws Error with nginx's words
   */
  async start(ready: Ready): Promise<void> {
    errorLog.configure(ready.errorLogs)
    logAttempts()
    const running = ready.prepared.commit()
    this.#serving = new Serving(running.router, {
      tunnels: this.#tunnels,
      status: (call, path, location) =>
        statusResponse(
          this.#facts,
          apiPath(path, location, call.uri),
          call.args,
          call.method,
          call.serverAddr,
        ),
      prometheus: (template, method) => prometheusResponse(this.#facts, template, method),
      complain: ({ connection, remoteAddr, serverName, method, target, httpVersion }, text) => {
        const request = `${method} ${target} HTTP/${httpVersion}`
        errorLog.log(
          'error',
          `*${connection} ${text}, client: ${remoteAddr}, server: ${serverName}, request: "${escapeText(request)}"`,
        )
      },
      broken: (error) => errorLog.log('alert', stackOf(error)),
    })
    this.#listeners = new Listeners(this.#serving, mostConnections, () => this.#full())
    this.#inForce(ready, running)
    const admin = await this.#admins.prepare(ready.loaded.model, this.#source.prefix)
    admin.commit()
    await this.#listeners.apply(running.listens)
    this.#phase = 'ready'
  }

  /**
   * Ends in order; see drain.ts.
   * @returns whether everything has ended by itself
   */
  async drain(): Promise<boolean> {
    const listeners = this.#listeners
    const { drain_delay = '0s', drain_timeout = '30s' } = this.#running?.model ?? {}
    this.#phase = 'draining'
    this.#watch.watch([])
    if (listeners === undefined) return true
    const serving = this.#serving
    return drain(
      {
        begin: () => listeners.drain(),
        close: () => listeners.stopListening(),
        closeIdle: () => listeners.closeIdle(),
        requests: () => Math.max(0, (serving?.inProgress ?? 0) - this.#tunnels.size),
        tunnels: () => this.#tunnels.size,
        endTunnels: () => this.#tunnels.end(),
        destroy: () => listeners.destroy(),
      },
      { delay: timeMs(drain_delay) ?? 0, timeout: timeMs(drain_timeout) ?? 30_000 },
      (ms) => wait(ms),
      () => monotonic(),
    )
  }

  async #reload(): Promise<Reloaded> {
    if (this.#phase !== 'ready') return { ok: false, error: 'not now: the program starts or ends' }
    this.#watch.noted()
    let ready: Ready
    try {
      ready = await makeReady(this.#source, this.#running)
      const admin = await this.#admins.prepare(ready.loaded.model, this.#source.prefix)
      try {
        await this.#listeners!.apply(ready.prepared.listens)
      } catch (error) {
        admin.rollback()
        throw error
      }
      admin.commit()
    } catch (error) {
      const text = mistakeOf(error)
      errorLog.log('emerg', text)
      errorLog.log('error', `the configuration was not reloaded; generation ${this.#generation} goes on`)
      return { ok: false, error: text }
    }
    const before = this.#running?.groups ?? new Map<string, LiveGroup>()
    errorLog.configure(ready.errorLogs)
    const running = ready.prepared.commit()
    this.#serving!.use(running.router)
    for (const [name, group] of before) if (!running.groups.has(name)) this.#removed.add(group)
    this.#inForce(ready, running)
    const logs = [
      ...ready.errorLogs.map(({ path }) => path),
      ...accessLogPaths(running.model, this.#source.prefix),
    ]
    logFiles.keepOnly(['stdout', 'stderr', ...logs])
    for (const text of ready.loaded.warnings) errorLog.log('warn', text)
    errorLog.log('notice', `configuration reloaded, generation ${this.#generation}`)
    return { ok: true }
  }

  /** A connection was closed as it came. Said once a minute at most, since a flood brings many. */
  #full(): void {
    const now = monotonic()
    if (now - this.#fullAt < 60_000) return
    this.#fullAt = now
    errorLog.log('crit', `${this.#listeners?.counts.open} connections are open, new ones are closed at once`)
  }

  #inForce(ready: Ready, running: Running): void {
    this.#loaded = ready.loaded
    this.#token = ready.token
    this.#running = running
    this.#generation += 1
    this.#loadedAt = Date.now()
    const { model, files } = ready.loaded
    const token = model.admin_token_file
    const watched = files.map(({ path }) => path)
    if (token !== undefined) watched.push(pathOf(token, this.#source.prefix))
    this.#watch.watch(model.config_watch ? watched : [])
  }
}
