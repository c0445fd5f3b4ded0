import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type Certificates, certificates } from './certificates.ts'
import { guard } from './guard.ts'

export interface RedisServerOptions {
  /** Undefined: a free one. */
  readonly port?: number
  /** Further settings, in the words of redis.conf; an array is the same word on several lines (`user`). */
  readonly config?: Readonly<Record<string, string | readonly string[]>>
  /** A sentinel instead of a server. */
  readonly sentinel?: boolean
  /** A second port that speaks TLS, and asks for the client's certificate where `tls-auth-clients` is `yes`. */
  readonly tlsPort?: number
}

/** A Redis server of its own on loopback, that keeps nothing, and ends with this process, however that ends. */
export class RedisServer {
  readonly port: number
  readonly url: string
  /** Holds its configuration and log, and is removed with it. */
  readonly folder: string
  /** Undefined: it does not speak TLS. */
  readonly tls: (Certificates & { readonly url: string }) | undefined
  readonly #sentinel: boolean
  readonly #file: string
  readonly #text: string
  readonly #password: string | undefined
  #child: ChildProcess | undefined
  #guard: ChildProcess | undefined
  #paused = false

  constructor(port: number, options: RedisServerOptions) {
    this.port = port
    this.url = `redis://127.0.0.1:${port}`
    this.#sentinel = options.sentinel === true
    this.folder = mkdtempSync(join(tmpdir(), 'evenkeel-redis-'))
    const config = options.config ?? {}
    const kept = this.#sentinel ? {} : { save: '""', appendonly: 'no' }
    const own = { bind: '127.0.0.1', 'protected-mode': 'no', dir: this.folder, logfile: 'log', ...kept }
    const { tlsPort } = options
    if (tlsPort !== undefined) {
      this.tls = { ...certificates(this.folder), url: `rediss://127.0.0.1:${tlsPort}` }
    }
    const secure = this.tls && {
      'tls-port': String(tlsPort),
      'tls-ca-cert-file': this.tls.ca.certFile,
      'tls-cert-file': this.tls.server.certFile,
      'tls-key-file': this.tls.server.keyFile,
      'tls-auth-clients': 'no',
    }
    const lines = Object.entries({ ...own, ...secure, ...config, port: String(port) }).flatMap(
      ([word, values]) => [values].flat().map((value) => `${word} ${value}\n`),
    )
    this.#text = lines.join('')
    this.#file = join(this.folder, 'redis.conf')
    const password = config['requirepass']
    this.#password = typeof password === 'string' ? password : undefined
  }

  /** Of the process; undefined while there is none. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** @returns false where the port turns out to be taken */
  async start(): Promise<boolean> {
    // A sentinel writes what it has learnt into its file: it begins anew.
    writeFileSync(this.#file, this.#text)
    const child = spawn('redis-server', [this.#file, ...(this.#sentinel ? ['--sentinel'] : [])], {
      stdio: 'ignore',
    })
    this.#child = child
    this.#paused = false
    let failure: Error | undefined
    child.once('error', (error) => {
      failure = error
    })
    child.once('exit', () => {
      this.#guard?.kill('SIGKILL')
      this.#guard = undefined
      if (this.#child === child) this.#child = undefined
    })
    if (child.pid !== undefined) this.#guard = guard(child.pid, this.folder)
    // A server that a test forgot does not hold up the end of its file.
    child.unref()
    const until = performance.now() + 10_000
    while (failure === undefined && this.#child === child) {
      if (await this.#answers()) return true
      if (performance.now() > until) break
      await sleep(10)
    }
    const log = this.log()
    await this.kill()
    if (log.includes('Address already in use')) return false
    throw new Error(`redis-server on port ${this.port} does not start: ${failure?.message ?? log}`)
  }

  log(): string {
    try {
      return readFileSync(join(this.folder, 'log'), 'utf8')
    } catch {
      return ''
    }
  }

  /** A stopped or loading one does not answer. */
  async #answers(): Promise<boolean> {
    try {
      // A user that may not ping has been told so by a server that runs.
      return (await this.command('PING')) === 'PONG'
    } catch (error) {
      return error instanceof Error && /^(NOAUTH|NOPERM|WRONGPASS)/.test(error.message)
    }
  }

  /** Runs one command over a connection of its own. Rejects with what the server says, and after 3 seconds of silence. */
  async command(...args: readonly (string | number | Buffer)[]): Promise<unknown> {
    const client = new Redis({
      port: this.port,
      host: '127.0.0.1',
      lazyConnect: true,
      enableReadyCheck: false,
      disableClientInfo: true,
      connectTimeout: 3000,
      commandTimeout: 3000,
      disconnectTimeout: 50,
      protocol: 2,
      retryStrategy: null,
      ...(this.#password === undefined ? {} : { password: this.#password }),
    })
    let failure: unknown
    client.on('error', (error) => {
      failure = error
    })
    try {
      await client.connect()
      return await client.call(String(args[0]), ...args.slice(1))
    } catch (error) {
      throw failure ?? error
    } finally {
      client.disconnect()
    }
  }

  /** Ends it in good order, and by force where that takes long; its folder goes too. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM')
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** Ends it at once; `restart` begins it again. */
  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    child.ref()
    const ended = once(child, 'exit')
    // One that is paused takes no other signal.
    child.kill(this.#paused ? 'SIGKILL' : signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), 1000)
    await ended
    clearTimeout(timer)
  }

  /** Its connections stay open, and new ones are accepted by the kernel, but nothing is answered. */
  pause(): void {
    this.#paused = true
    this.#child?.kill('SIGSTOP')
  }

  resume(): void {
    this.#paused = false
    this.#child?.kill('SIGCONT')
  }

  /** Ends it at once, and begins it again on the same port, without what it held. */
  async restart(): Promise<void> {
    await this.kill()
    if (!(await this.start())) throw new Error(`port ${this.port} was taken while redis-server was away`)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}
