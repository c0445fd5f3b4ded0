import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { DnsQuery, DnsRecord, DnsRule, DnsRules } from './dns-script.ts'
import { children } from './sidecar.ts'

const program = new URL('./dns-server-process.ts', import.meta.url).pathname

/** A name server at work: a process of its own that answers by a script. */
export class DnsServer implements AsyncDisposable {
  readonly port: number
  /** Every query that came, in order. */
  readonly queries: DnsQuery[]
  readonly #process: ChildProcess
  readonly #waiting: Map<number, () => void>
  #rules: Record<string, DnsRule> = {}
  #serial = 0

  constructor(process: ChildProcess, port: number, queries: DnsQuery[], waiting: Map<number, () => void>) {
    this.#process = process
    this.port = port
    this.queries = queries
    this.#waiting = waiting
  }

  /** `127.0.0.1:PORT`, as a `resolver` line has it. */
  get address(): string {
    return `127.0.0.1:${this.port}`
  }

  /** Answers by these from now on, beside those before. A rule that is undefined is taken away. */
  async set(rules: Readonly<Record<string, DnsRule | undefined>>): Promise<void> {
    const all = Object.entries({ ...this.#rules, ...rules })
    this.#rules = Object.fromEntries(all.flatMap(([key, rule]) => (rule ? [[key, rule] as const] : [])))
    const done = ++this.#serial
    const heard = new Promise<void>((resolve) => this.#waiting.set(done, resolve))
    const told: { rules: DnsRules; done: number } = { rules: this.#rules, done }
    this.#process.stdin?.write(`${JSON.stringify(told)}\n`)
    await heard
  }

  /** Has a name answer with these IPv4 addresses, and with none of IPv6. */
  has(name: string, addresses: readonly string[], ttl = 1): Promise<void> {
    const answers = addresses.map((data): DnsRecord => ({ type: 'A', name, ttl, data }))
    return this.set({ [`* ${name}`]: undefined, [`A ${name}`]: { answers } })
  }

  /** Has a name answer in another way, whatever is asked of it. */
  instead(name: string, rule: DnsRule): Promise<void> {
    return this.set({ [`A ${name}`]: undefined, [`AAAA ${name}`]: undefined, [`* ${name}`]: rule })
  }

  /** How often a name was asked for; of one type, or of all. */
  asked(name: string, type?: string): number {
    return this.queries.filter((query) => {
      return query.name === name && (type === undefined || query.type === type)
    }).length
  }

  /** Ends it, as if it had died. */
  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const gone = new Promise((resolve) => this.#process.once('exit', resolve))
    this.#process.kill('SIGKILL')
    await gone
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}

/** @param port another one is taken where it is 0 */
export async function dnsServer(rules: DnsRules = {}, port = 0): Promise<DnsServer> {
  const child = spawn(process.execPath, [program, '127.0.0.1', `${port}`], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  children.add(child)
  child.once('exit', () => children.delete(child))
  const queries: DnsQuery[] = []
  const waiting = new Map<number, () => void>()
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  child.once('exit', () => reject(new Error('the name server ended')))
  createInterface({ input: child.stdout! }).on('line', (line) => {
    // The process writes nothing else.
    const told = JSON.parse(line) as { port?: number; query?: DnsQuery; done?: number }
    if (told.port !== undefined) resolve(told.port)
    if (told.query !== undefined) queries.push(told.query)
    if (told.done !== undefined) waiting.get(told.done)?.()
  })
  const server = new DnsServer(child, await promise, queries, waiting)
  promise.catch(() => {})
  await server.set(rules)
  return server
}
