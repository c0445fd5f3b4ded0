import { monotonic } from '../../feedback/clock.ts'
import { Client, type Owner } from './proxies-client.ts'
import { cpuMicros, residentBytes } from './proxies-process.ts'
import type { Ask } from './proxies-scenarios.ts'

export interface TurnOptions {
  readonly ms: number
  /** Requests a second; undefined: each connection sends the next request when it has its answer. */
  readonly rate: number | undefined
  /** The processes of the proxy. */
  readonly pids: readonly number[]
}

/** What one turn found. */
export interface Turn {
  readonly requests: number
  readonly ms: number
  /** Of the proxy, user and system, microseconds. */
  readonly cpuMicros: number
  /** Of this process, load and peer, microseconds. */
  readonly loadMicros: number
  /** From when a request was sent, or was due, milliseconds. */
  readonly p50: number
  readonly p99: number
  readonly residentBytes: number
}

/** How long an answer may take, milliseconds. */
const patienceMs = 60_000

/** Connections to one proxy, which last over its turns. */
export class Connections {
  readonly #clients: Client[] = []
  /** What happened between turns. */
  #failure: Error | undefined
  readonly #idle: Owner = {
    done: () => {},
    failed: (error) => {
      this.#failure ??= error
    },
  }

  /** Opens so many, not all at once. @throws when the proxy does not take them */
  async open(port: number, ask: Ask, count: number): Promise<void> {
    while (this.#clients.length < count) {
      const batch = Math.min(100, count - this.#clients.length)
      await new Promise<void>((resolve, reject) => {
        let opened = 0
        const owner: Owner = { done() {}, failed: reject }
        for (let i = 0; i < batch; i++) {
          const client = new Client(port, ask, owner, () => {
            client.owner = this.#idle
            opened += 1
            if (opened === batch) resolve()
          })
          this.#clients.push(client)
        }
      })
    }
  }

  /** @throws for an answer that is not as it should be, and where none comes */
  async measure({ ms, rate, pids }: TurnOptions): Promise<Turn> {
    if (this.#failure) throw this.#failure
    const own = process.cpuUsage()
    const cpu = cpuMicros(pids)
    const begun = monotonic()
    const times = rate === undefined ? await this.#closedLoop(ms) : await this.#fixedRate(ms, rate)
    const ended = monotonic()
    const used = process.cpuUsage(own)
    const sorted = Float64Array.from(times).sort()
    return {
      requests: times.length,
      ms: ended - begun,
      cpuMicros: cpuMicros(pids) - cpu,
      loadMicros: used.user + used.system,
      p50: sorted[Math.floor(sorted.length * 0.5)] ?? 0,
      p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
      residentBytes: residentBytes(pids),
    }
  }

  close(): void {
    for (const client of this.#clients) client.close()
  }

  #closedLoop(ms: number): Promise<number[]> {
    const until = monotonic() + ms
    return this.#turn((times, finish) => {
      let running = this.#clients.length
      return {
        begin: () => {
          for (const client of this.#clients) client.send(monotonic())
        },
        done: (client) => {
          const now = monotonic()
          times.push(now - client.since)
          if (now < until) return client.send(now)
          running -= 1
          if (running === 0) finish()
        },
      }
    })
  }

  /** Requests are due at equal distances, and wait when all connections are taken. */
  #fixedRate(ms: number, rate: number): Promise<number[]> {
    const start = monotonic()
    const all = Math.max(1, Math.floor((ms * rate) / 1000))
    const idle = [...this.#clients]
    return this.#turn((times, finish) => {
      let sent = 0
      const dueAt = () => start + (sent * 1000) / rate
      // The one that was idle longest is next, so that all are used.
      const tick = () => {
        while (sent < all && dueAt() <= monotonic()) {
          const client = idle.shift()
          if (!client) return
          client.send(dueAt())
          sent += 1
        }
      }
      // Not by a timer, whose milliseconds are longer than most answers take.
      const step = () => {
        tick()
        if (sent < all) setImmediate(step)
      }
      return {
        begin: step,
        done: (client) => {
          times.push(monotonic() - client.since)
          idle.push(client)
          if (times.length === all) finish()
        },
      }
    })
  }

  /** Gives the connections an owner until that says that it has finished. */
  #turn(
    make: (times: number[], finish: () => void) => { begin(): void; done(client: Client): void },
  ): Promise<number[]> {
    return new Promise<number[]>((resolve, reject) => {
      const times: number[] = []
      let seen = 0
      // Longer than that without any answer, and there will be none.
      const watch = setInterval(() => {
        if (times.length === seen) end(new Error(`no answer in ${patienceMs / 1000} s`))
        seen = times.length
      }, patienceMs)
      const end = (error?: Error) => {
        clearInterval(watch)
        for (const client of this.#clients) client.owner = this.#idle
        if (error) reject(error)
        else resolve(times)
      }
      const { begin, done } = make(times, () => end())
      const owner: Owner = { done, failed: end }
      for (const client of this.#clients) client.owner = owner
      begin()
    })
  }
}
