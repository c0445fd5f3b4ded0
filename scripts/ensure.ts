// The programs that tests start beside the one under test: what they are, and how they come onto the machine.

import { spawn } from 'node:child_process'
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** Programs by name, with the Debian packages that bring them. */
const packages = {
  'redis-server': ['redis-server'],
  openssl: ['openssl'],
  curl: ['curl'],
  prometheus: ['prometheus'],
  promtool: ['prometheus'],
  // Without a font of its own a page has empty boxes for letters.
  chromium: ['chromium', 'fonts-dejavu-core'],
  nginx: ['nginx-light'],
  haproxy: ['haproxy'],
  caddy: ['caddy'],
  faketime: ['faketime'],
  nghttp: ['nghttp2-client'],
  h2load: ['nghttp2-client'],
} as const

export type Program = keyof typeof packages

/** How long apt-get may take to read its lists, and to fetch and unpack a browser, milliseconds. */
const updateMs = 180_000
const installMs = 600_000
/** Held while one process installs; it is stale once older than an installation may take. */
const lock = join(tmpdir(), 'evenkeel-install')
const staleMs = updateMs + installMs + 30_000
/** What Debian asks before it starts a service that it has just unpacked. */
const policy = '/usr/sbin/policy-rc.d'

/** Where a program of the PATH is; undefined where it is not. */
function find(program: string): string | undefined {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, program))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}

/** The path of a program that `ensure` has seen to. @throws where it is not on the PATH */
export function pathOf(program: Program): string {
  const path = find(program)
  if (path === undefined) throw new Error(`${program} is not on the PATH`)
  return path
}

/**
 * Sees to it that programs are there which a test starts. On Debian, as root, what is missing is installed, and
 * starts no service; several processes may ask at once.
 *
 * @param say tells that an installation begins, and how it goes on
 * @throws where they are missing and cannot be installed
 */
export async function ensure(
  programs: readonly Program[],
  say: (text: string) => void = () => {},
): Promise<void> {
  const missing = () => programs.filter((program) => find(program) === undefined)
  const missed = missing()
  if (missed.length === 0) return
  const names = listed([...new Set(missed.flatMap((program) => packages[program]))])
  const byHand = `tests need ${listed(missed)} on the PATH: install ${names} (Debian's names)`
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version') || find('apt-get') === undefined) {
    throw new Error(byHand)
  }
  await locked(async () => {
    const wanted = [...new Set(missing().flatMap((program) => packages[program]))]
    if (wanted.length === 0) return
    say(`installing ${listed(wanted)} for the tests`)
    try {
      await withoutServices(async () => {
        await aptGet(['update'], updateMs, say)
        await aptGet(['install', '-y', '--no-install-recommends', ...wanted], installMs, say)
      })
    } catch (error) {
      throw new Error(`${byHand} (${error instanceof Error ? error.message : error})`)
    }
  })
  if (missing().length > 0) throw new Error(byHand)
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}

/** Runs apt-get, and tells every ten seconds what it is at. */
function aptGet(args: readonly string[], timeout: number, say: (text: string) => void): Promise<void> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const child = spawn('apt-get', ['-q', ...args], { env, timeout, stdio: ['ignore', 'pipe', 'pipe'] })
  const begun = performance.now()
  let last = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      last = text.trim().split('\n').at(-1) || last
    })
  }
  const teller = setInterval(() => {
    say(`  ${Math.round((performance.now() - begun) / 1000)} s: ${last.slice(0, 100)}`)
  }, 10_000)
  return new Promise<void>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      if (code === 0) resolve()
      else reject(new Error(`apt-get ${args[0]}: ${signal ?? code}: ${last}`))
    })
  }).finally(() => clearInterval(teller))
}

/** Without this a Redis or Prometheus of the machine's own would take its usual port, and stay. */
async function withoutServices(work: () => Promise<void>): Promise<void> {
  const own = !existsSync(policy)
  if (own) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    await work()
  } finally {
    if (own) rmSync(policy, { force: true })
  }
}

/** Only one process at a time; a folder is made by one alone. */
async function locked(work: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      mkdirSync(lock)
      break
    } catch {
      await sleep(200)
      const made = statSync(lock, { throwIfNoEntry: false })?.mtimeMs
      if (made !== undefined && Date.now() - made > staleMs) rmSync(lock, { recursive: true, force: true })
    }
  }
  try {
    await work()
  } finally {
    rmSync(lock, { recursive: true, force: true })
  }
}

/**
 * What test files need: the programs that they, or the test modules that they name, ask for in the form
 * `ensure(['redis-server'])`.
 */
export function neededBy(files: readonly string[]): Program[] {
  const seen = new Set<string>()
  const needed = new Set<Program>()
  const read = (path: string) => {
    if (seen.has(path)) return
    seen.add(path)
    const text = readFileSync(path, 'utf8')
    for (const [, list = ''] of text.matchAll(/\bensure\(\[([^\]]*)\]/g)) {
      for (const [, name = ''] of list.matchAll(/['"]([^'"]+)['"]/g)) {
        if (!isProgram(name)) throw new Error(`${path} needs a program that nobody knows: ${name}`)
        needed.add(name)
      }
    }
    // Imports, and the modules that a test names in a program text of its own.
    for (const [, name = ''] of text.matchAll(/['"](\.\.?\/[^'"\s]+\.ts)['"]/g)) {
      const module = resolve(dirname(path), name)
      if (module.includes('/test/') && existsSync(module)) read(module)
    }
  }
  for (const file of files) read(resolve(file))
  return [...needed].sort()
}

function isProgram(name: string): name is Program {
  return Object.hasOwn(packages, name)
}
