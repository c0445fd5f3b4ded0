import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach } from 'node:test'
import { type Allowed, assertSettled } from './aftermath.ts'
import { freePort } from './free-port.ts'

/** The launcher, as users start it. */
export const launcher = new URL('../../sidecar/evenkeel', import.meta.url).pathname

/** Programs that run. A test file that is ended before its time must not leave them behind. */
export const children: Set<ChildProcess> = new Set()
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1))

/** Node keeps what it has compiled, by content: tests start the program some hundred times. */
export const compiled = {
  NODE_COMPILE_CACHE: new URL('../../node_modules/.cache/compiled', import.meta.url).pathname,
}

/** Signals that end a program. */
const ending: ReadonlySet<string> = new Set(['SIGTERM', 'SIGQUIT', 'SIGINT', 'SIGKILL'])

/** Programs that tests have started and not stopped yet. */
const started = new Set<Sidecar>()
// Those that outlive a test; the others are looked at as they are stopped.
if (process.env['NODE_TEST_CONTEXT'] !== undefined) {
  afterEach(async () => {
    for (const sidecar of started) if (!sidecar.busy) await sidecar.settled()
  })
}

export interface SidecarOptions extends Allowed {
  /** Name of the configuration file; its ending decides the syntax. Default `evenkeel.conf`. */
  readonly file?: string
  /** Whether its traffic goes on between the tests of a file. Default no. */
  readonly busy?: boolean
  /** Further arguments of the command line. */
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** How many descriptors the process may have; as many as this one where absent. */
  readonly descriptors?: number
  /** How large a file may become that it writes, in blocks of 512 bytes; without limit where absent. */
  readonly fileBlocks?: number
  /** How long the start may take, milliseconds. Default 15000: the test machine may be busy. */
  readonly startMs?: number
}

/** The real program at work on a configuration of its own, in a temporary folder. */
export class Sidecar implements AsyncDisposable {
  readonly process: ChildProcess
  readonly folder: string
  /** The configuration file. */
  readonly file: string
  /** Ports by the word that stands for them in the text: `PORT`, `PORT2`, `ADMIN`, … */
  readonly ports: Readonly<Record<string, number>>
  /** How it ended: exit code, or the signal that killed it. */
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  #stdout = ''
  #stderr = ''
  #ended = false
  #told = false
  /** Whether its traffic goes on between the tests of a file: it is looked at when it is stopped. */
  readonly busy: boolean
  readonly #allowed: Allowed
  readonly #waiting = new Set<() => void>()

  constructor(
    process: ChildProcess,
    folder: string,
    file: string,
    ports: Readonly<Record<string, number>>,
    { busy = false, ...allowed }: Allowed & { readonly busy?: boolean | undefined } = {},
  ) {
    this.process = process
    this.busy = busy
    children.add(process)
    started.add(this)
    this.#allowed = allowed
    this.folder = folder
    this.file = file
    this.ports = ports
    const heard = () => {
      for (const check of [...this.#waiting]) check()
    }
    process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text
      heard()
    })
    process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text
      heard()
    })
    this.exited = new Promise((resolve, reject) => {
      process.once('error', reject)
      // Not `exit`: by now all its output has been read as well.
      process.once('close', (code, signal) => {
        children.delete(process)
        this.#ended = true
        resolve({ code, signal })
        heard()
      })
    })
  }

  get pid(): number {
    return this.process.pid!
  }
  /** The port that `PORT` stands for. */
  get port(): number {
    return this.ports['PORT']!
  }
  /** Address of the traffic port: `http://127.0.0.1:12345`. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }
  /** Address of the admin server. */
  get admin(): string {
    return `http://127.0.0.1:${this.ports['ADMIN']}`
  }
  /** All that was written to standard output: the access log unless the configuration says otherwise. */
  get stdout(): string {
    return this.#stdout
  }
  /** All that was written to standard error: the error log unless the configuration says otherwise. */
  get stderr(): string {
    return this.#stderr
  }
  get running(): boolean {
    return !this.#ended
  }

  /** Waits until what was written (either stream) matches; fails when the process ends or time runs out first. */
  logged(pattern: RegExp, withinMs = 10_000): Promise<RegExpMatchArray> {
    return this.#until(
      () => this.#stderr.match(pattern) ?? this.#stdout.match(pattern) ?? undefined,
      withinMs,
      `a log line that matches ${pattern}`,
    )
  }

  signal(name: NodeJS.Signals): void {
    if (ending.has(name)) this.#told = true
    this.process.kill(name)
  }

  /** Reads JSON from the admin server. The test knows the shape; nothing here checks it. */
  async json<T>(path: string): Promise<T> {
    const response = await fetch(this.admin + path)
    // The caller names the shape that the admin server documents for that path.
    return (await response.json()) as T
  }

  /** Replaces the configuration file; the words for ports stand for the same ports as before. */
  async rewrite(text: string): Promise<void> {
    await writeFile(this.file, withPorts(text, this.ports, this.file))
  }

  /** Asks for a reload and waits for the next generation. */
  async reload(text?: string): Promise<void> {
    if (text !== undefined) await this.rewrite(text)
    const before = await this.generation()
    this.signal('SIGHUP')
    const end = performance.now() + 15_000
    while ((await this.generation()) <= before) {
      if (performance.now() > end) throw new Error(`not reloaded; standard error:\n${this.#stderr}`)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  /** Asks the admin server for a reload, and says what it answers. */
  askReload(headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return fetch(`${this.admin}/reload`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
    })
  }

  /** How many configurations were put into force so far. */
  async generation(): Promise<number> {
    return this.json<number>('/status/angie/generation')
  }

  /** Asserts that it has not ended unasked, and what else must hold after any traffic. */
  async settled(): Promise<void> {
    if (this.#told) return
    assert.ok(this.running, `the program ended by itself:\n${this.#stderr}`)
    await assertSettled(this, this.#allowed)
  }

  /** Stops it at once (no drain), removes its folder, and says how it ended. */
  async stop(): Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }> {
    started.delete(this)
    if (this.running) this.signal('SIGINT')
    const hang = setTimeout(() => this.signal('SIGKILL'), 5000)
    const how = await this.exited
    clearTimeout(hang)
    await rm(this.folder, { recursive: true, force: true })
    return how
  }

  /** Looks whether all is as it must be after a test, and stops it. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.settled()
    } finally {
      await this.stop()
    }
  }

  /** Waits until it listens everywhere: only then is the pid file written. */
  async ready(withinMs: number): Promise<void> {
    const file = join(this.folder, 'evenkeel.pid')
    const end = performance.now() + withinMs
    while (this.running) {
      const pid = await readFile(file, 'utf8').catch(() => '')
      if (pid.trim() === String(this.pid)) return
      if (performance.now() > end) throw new Error(`not ready in time; standard error:\n${this.#stderr}`)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    throw new Error(`ended before it was ready; standard error:\n${this.#stderr}`)
  }

  #until<T>(look: () => T | undefined, withinMs: number, what: string): Promise<T> {
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer)
        this.#waiting.delete(check)
      }
      const give = (reason: string) => {
        done()
        reject(
          new Error(`${reason} ${what}; standard error:\n${this.#stderr}\nstandard output:\n${this.#stdout}`),
        )
      }
      const check = () => {
        const found = look()
        if (found !== undefined) {
          done()
          resolve(found)
        } else if (this.#ended) give('ended without')
      }
      const timer = setTimeout(() => give('no'), withinMs)
      this.#waiting.add(check)
      check()
    })
  }
}

/**
 * Starts the program on a configuration and waits until it is ready. In the text `PORT`, `PORT2`, `PORT3`, … and
 * `ADMIN` stand for free ports. A text in nginx syntax without an `admin` directive gets one on `ADMIN`, on its first line.
 *
 * ```ts
 * await using sidecar = await start(`http { server { listen 127.0.0.1:PORT; location / { return 200 "hi"; } } }`)
 * await fetch(sidecar.url)
 * ```
 */
export async function start(text: string, options: SidecarOptions = {}): Promise<Sidecar> {
  const folder = await mkdtemp(join(tmpdir(), 'evenkeel-'))
  const file = join(folder, options.file ?? 'evenkeel.conf')
  const ports: Record<string, number> = { ADMIN: await freePort() }
  for (const word of new Set(text.match(portWords))) ports[word] ??= await freePort()
  await writeFile(file, withPorts(text, ports, file))
  const command = [launcher, '-c', file, ...(options.args ?? [])]
  if (options.descriptors !== undefined) {
    command.unshift('/bin/sh', '-c', `ulimit -n ${options.descriptors}; exec "$0" "$@"`)
  }
  if (options.fileBlocks !== undefined) {
    command.unshift('/bin/sh', '-c', `ulimit -f ${options.fileBlocks}; exec "$0" "$@"`)
  }
  const child = spawn(command[0]!, command.slice(1), {
    cwd: folder,
    // This Node can run it: that is not to be tried at each start.
    env: { ...compiled, EVENKEEL_NODE: process.execPath, ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const sidecar = new Sidecar(child, folder, file, ports, options)
  try {
    await sidecar.ready(options.startMs ?? 15_000)
  } catch (error) {
    await sidecar.stop()
    throw error
  }
  return sidecar
}

/** How many threads a configuration in nginx syntax gets that says nothing of them: the same tests for many as for one. */
const threads = process.env['TEST_THREADS']

const portWords = /\b(?:PORT\d*|ADMIN)\b/g

function withPorts(text: string, ports: Readonly<Record<string, number>>, file: string): string {
  let named = text
  if (file.endsWith('.conf') && !/^\s*admin\s/m.test(text)) named = `admin 127.0.0.1:ADMIN; ${named}`
  if (file.endsWith('.conf') && threads !== undefined && !/\bworker_processes\b/.test(text)) {
    named = `worker_processes ${threads}; ${named}`
  }
  return named.replace(portWords, (word) => {
    const port = ports[word]
    if (port === undefined) throw new Error(`no port for ${word}`)
    return String(port)
  })
}
