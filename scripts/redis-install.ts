import { execFile } from 'node:child_process'
import { accessSync, constants, existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The programs that tests start, and the Debian packages that bring them. */
const needed = { 'redis-server': 'redis-server', openssl: 'openssl' }

/** Held while one process installs; it is stale once older than an installation may take, milliseconds. */
const lock = join(tmpdir(), 'evenkeel-redis-install')
const staleAfter = 180_000

function present(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

function missing(): string[] {
  return Object.entries(needed)
    .filter(([program]) => !present(program))
    .map(([, name]) => name)
}

/**
 * Sees to it that the programs are there which tests with Redis start. On Debian, as root, what is missing is
 * installed; several processes may ask at once.
 *
 * @param say tells that an installation begins
 * @throws where they are missing and cannot be installed
 */
export async function ensureRedis(say: (text: string) => void = () => {}): Promise<void> {
  if (missing().length === 0) return
  const byHand = `tests with Redis need ${missing().join(' and ')} on the PATH: install the packages of that name`
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version') || !present('apt-get')) {
    throw new Error(byHand)
  }
  await locked(async () => {
    const names = missing()
    if (names.length === 0) return
    say(`installing ${names.join(' and ')} for the tests with Redis`)
    // At run level 1 the package starts no service of its own.
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
    try {
      await run('apt-get', ['update', '-qq'], { env, timeout: 60_000 })
      await run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...names], {
        env,
        timeout: 110_000,
      })
    } catch (error) {
      const why = error instanceof Error ? (error.message.trim().split('\n').at(-1) ?? '') : String(error)
      throw new Error(`${byHand} (apt-get: ${why})`)
    }
  })
  if (missing().length > 0) throw new Error(byHand)
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
      if (made !== undefined && Date.now() - made > staleAfter) rmSync(lock, { recursive: true, force: true })
    }
  }
  try {
    await work()
  } finally {
    rmSync(lock, { recursive: true, force: true })
  }
}
