import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { monotonic } from '../../feedback/clock.ts'
import type { Certificate } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { children } from '../support/sidecar.ts'
import { ready } from './forward.ts'
import { type Driver, onCore } from './proxies-driver.ts'
import { cost, type Found } from './proxies-figures.ts'
import { family } from './proxies-process.ts'
import type { Scenario } from './proxies-scenarios.ts'
import type { Subject } from './proxies-subjects.ts'
import type { Turn } from './proxies-turn.ts'

/** How long a subject is kept busy at first to see what its start costs, milliseconds. */
const firstMs = 1000

export interface Start {
  readonly subject: Subject
  readonly scenario: Scenario
  readonly driver: Driver
  /** Of all subjects, where clients speak TLS. */
  readonly certificate: Certificate | undefined
  /** A folder that is gone afterwards. */
  readonly folder: string
  /** The core to keep it on; undefined: whichever is free. */
  readonly core: number | undefined
}

/** A subject at work, with connections to it, and what was found of it. */
export class Running implements AsyncDisposable {
  readonly subject: Subject
  readonly #scenario: Scenario
  readonly #driver: Driver
  readonly #child: ChildProcess
  readonly #port: number
  readonly #closed: Turn[] = []
  readonly #paced: Turn[] = []
  #pids: readonly number[] = []
  #first: Turn | undefined
  #warm = false
  #scraper: NodeJS.Timeout | undefined
  /** Why its metrics could not be read. */
  #failure: unknown

  private constructor({ subject, scenario, driver }: Start, child: ChildProcess, port: number) {
    this.subject = subject
    this.#scenario = scenario
    this.#driver = driver
    this.#child = child
    this.#port = port
  }

  /** @throws with what it said where it does not come up */
  static async start(options: Start): Promise<Running> {
    const { subject, scenario, driver } = options
    const folder = mkdtempSync(join(options.folder, `${subject.name}-`))
    const [port, admin] = [await freePort(), await freePort()]
    const keep = Math.max(64, scenario.connections)
    const place = {
      port,
      peer: driver.peerPort,
      admin,
      folder,
      keep,
      front: scenario.front,
      certificate: options.certificate,
    }
    const command = [...onCore(options.core), ...subject.command(place)]
    const output = join(folder, 'output')
    const file = openSync(output, 'w')
    const child = spawn(command[0] ?? '', command.slice(1), {
      stdio: ['ignore', file, file],
      env: { ...process.env, EVENKEEL_NODE: process.execPath, HOME: folder },
    })
    closeSync(file)
    children.add(child)
    const running = new Running(options, child, port)
    const ended = once(child, 'exit').then(() => Promise.reject(new Error('it ended')))
    try {
      await Promise.race([ready(port), ended])
      await driver.open(port, scenario)
      running.#pids = child.pid === undefined ? [] : family(child.pid)
    } catch (error) {
      await running[Symbol.asyncDispose]()
      throw new Error(`${subject.name} did not start: ${error}\n${readFileSync(output, 'utf8')}`)
    }
    if (subject.scraped) running.#scrapeFrom(admin)
    return running
  }

  /**
   * Its first second is a figure of its own; then it is kept busy until it is as fast as it gets.
   *
   * @param ms so long on a core, by the clock at most three times as long
   * @returns what a request cost in the first second, and at the end, microseconds
   */
  async warm(ms: number): Promise<readonly [first: number, after: number]> {
    this.#first = await this.#turn(Math.min(firstMs, ms))
    let after = this.#first
    let left = ms * 1000
    // On a busy machine a second of work takes longer, and only work makes it faster.
    for (const until = monotonic() + 3 * ms; left > 0 && monotonic() < until; left -= after.cpuMicros) {
      after = await this.#turn(Math.min(500, ms))
    }
    this.#warm = left <= 0 || !this.subject.warms
    return [cost(this.#first), cost(after)]
  }

  /** Every connection sends as soon as it has its answer. @returns what a request cost, microseconds */
  async closedLoop(ms: number): Promise<number> {
    const turn = await this.#turn(ms)
    this.#closed.push(turn)
    return cost(turn)
  }

  async fixedRate(ms: number, rate: number): Promise<void> {
    this.#paced.push(await this.#turn(ms, rate))
  }

  found(): Found {
    const { name, title, variant = false } = this.subject
    return {
      name,
      title,
      variant,
      warm: this.#warm,
      first: this.#first,
      closed: this.#closed,
      paced: this.#paced,
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#scraper)
    children.delete(this.#child)
    await this.#driver.close(this.#port)
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await gone
  }

  #scrapeFrom(admin: number): void {
    this.#scraper = setInterval(() => {
      scrape(admin).catch((error: unknown) => {
        this.#failure ??= error
      })
    }, 1000)
  }

  async #turn(ms: number, rate?: number): Promise<Turn> {
    try {
      if (this.#failure !== undefined) throw this.#failure
      return await this.#driver.measure(this.#port, { ms, rate, pids: this.#pids })
    } catch (error) {
      throw new Error(`${this.subject.name}, ${this.#scenario.title}: ${error}`)
    }
  }
}

async function scrape(admin: number): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${admin}/metrics`)
  await response.arrayBuffer()
  if (!response.ok) throw new Error(`/metrics says ${response.status}`)
}
