import assert from 'node:assert/strict'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

/** A program to look at. */
export interface Looked {
  readonly pid: number
  /** Address of its admin server. */
  readonly admin: string
  /** Its configuration file. */
  readonly file: string
  readonly stderr: string
  readonly running: boolean
}

/** What a program may do that others may not. */
export interface Allowed {
  /** Lines of the error log that a test brings about. */
  readonly alarms?: RegExp | undefined
  /** 99 % of the event loop's delays may be as long as this, milliseconds. Default 1000: the machine has other work. */
  readonly lagMs?: number | undefined
  /** How long what is in progress may take to be counted as over, milliseconds. Default 2000. */
  readonly settleMs?: number | undefined
}

/** How often it is looked at least whether what is in progress has come to its end. */
const leastLooks = 5

/** What the program says of faults that tests ask it for. */
const asked = /asked for by a test/

/** Alarms, errors that nobody expected, and what Node itself warns of. */
const alarming = /\[alert\]|Unhandled|[Uu]ncaught|MaxListeners|ERR_[A-Z]|^\(node:\d+\)/

/**
 * Asserts what must hold of a program after any traffic: nothing is counted as in progress and nothing is negative, no
 * connection is half closed, towards peers there are those alone that are kept idle, and as many as the configuration
 * allows; nothing unexpected is in its error log, and its event loop was not held up.
 */
export async function assertSettled(
  program: Looked,
  { alarms, lagMs = 1000, settleMs = 2000 }: Allowed = {},
): Promise<void> {
  const lines = program.stderr.split('\n')
  assert.deepEqual(
    lines.filter((line) => alarming.test(line) && !asked.test(line) && !alarms?.test(line)),
    [],
    'alarms in the error log',
  )
  const end = performance.now() + settleMs
  for (let looks = 1; program.running; looks++) {
    const text = await page(program)
    if (text === undefined) {
      // One that ends just now cannot be asked; without an admin server that all may ask there is nothing to read.
      assert.ok(!program.running || !(await tellsAll(program)), `${program.admin}/metrics cannot be read`)
      return
    }
    const lag = 1000 * (value(text, 'nodejs_eventloop_lag_p99_seconds') ?? 0)
    assert.ok(lag <= lagMs, `the event loop was held up for ${lag} ms`)
    const busy = [...counted(text), ...(await overfull(program, text)), ...(await sockets(program, text))]
    if (busy.length === 0) return
    if (performance.now() > end && looks >= leastLooks) assert.deepEqual(busy, [], 'not settled')
    await sleep(10)
  }
}

/** The metrics; undefined where they cannot be had. */
async function page({ admin }: Looked): Promise<string | undefined> {
  try {
    const response = await fetch(`${admin}/metrics`)
    const text = await response.text()
    return response.status === 200 ? text : undefined
  } catch {
    return undefined
  }
}

/** Whether its configuration has an admin server at that address which asks for no token. */
async function tellsAll({ admin, file }: Looked): Promise<boolean> {
  const configuration = await readFile(file, 'latin1').catch(() => '')
  return configuration.includes(admin.replace('http://', '')) && !/\badmin_token/.test(configuration)
}

function value(text: string, series: string): number | undefined {
  const found = new RegExp(`^${series} (\\S+)$`, 'm').exec(text)?.[1]
  return found === undefined ? undefined : Number(found)
}

/** What other instances have in progress is not this one's. */
const inProgress =
  /^evenkeel_(?!\w*fleet)(?:\w*(?:in_flight|in_progress|waiting)\w*|connections_active)(?:\{.*\})? (?!0$)/
/** Deviations and the like may go either way; how many there are of something may not. */
const negative = /^evenkeel_\w*(?:_total|_count|in_flight|waiting|connections\w*)(?:\{.*\})? -/

/** Gauges that are not back at zero, and counts below it. */
function counted(text: string): string[] {
  return text.split('\n').filter((line) => inProgress.test(line) || negative.test(line))
}

const idleSeries = /^evenkeel_upstream_idle_connections\{upstream="(.*?)"\} (\d+)$/gm

/** Groups that keep more idle connections than their configuration says. */
async function overfull({ file }: Looked, text: string): Promise<string[]> {
  const kept = [...text.matchAll(idleSeries)].filter(([, , count]) => count !== '0')
  if (kept.length === 0 || !file.endsWith('.conf')) return []
  const configuration = await readFile(file, 'latin1').catch(() => '')
  const threads = value(text, 'evenkeel_threads') ?? 1
  return kept
    .filter(([, name = '', count]) => {
      const block = new RegExp(`\\bupstream ${name.replace(/\W/g, '\\$&')} \\{([^}]*)`).exec(
        configuration,
      )?.[1]
      const most = Number(/\bkeepalive (\d+)/.exec(block ?? '')?.[1] ?? 32)
      return Number(count) > most * threads
    })
    .map(([line]) => `more than the configuration allows: ${line}`)
}

/** Of the kernel's table: the port of the other side, the state (1 is established, 8 half closed), and the inode. */
const connection = /^ *\d+: \S+ \S+:([0-9A-F]{4}) 0([18]) \S+ \S+ \S+ +\d+ +\d+ (\d+)/gm

/**
 * Connections that the other side has closed and the program has not, and those to peers beyond the ones that it keeps
 * idle. What probes hold open cannot be told from the latter, so with probes these are not counted.
 */
async function sockets({ pid }: Looked, text: string): Promise<string[]> {
  const own = await inodes(pid)
  const ports = new Set(Array.from(text.matchAll(/\bpeer="[^"]*:(\d+)"/g), ([, port]) => Number(port)))
  const found: string[] = []
  let toPeers = 0
  let datagrams = 0
  for (const table of ['tcp', 'tcp6', 'udp', 'udp6']) {
    const lines = await readFile(`/proc/${pid}/net/${table}`, 'latin1').catch(() => '')
    for (const [line, port = '', state, inode = ''] of lines.matchAll(connection)) {
      if (!own.has(inode)) continue
      if (state === '8') found.push(`half closed: ${line.trim()}`)
      else if (!ports.has(Number.parseInt(port, 16))) continue
      else if (table.startsWith('tcp')) toPeers += 1
      else datagrams += 1
    }
  }
  const idle = [...text.matchAll(idleSeries)].reduce((sum, [, , count]) => sum + Number(count), 0)
  const probed = /^evenkeel_peer_probes_total\{.*\} [1-9]/m.test(text)
  if (toPeers > idle && !probed) found.push(`${toPeers} connections to peers, ${idle} of them kept idle`)
  if (datagrams > 0 && !probed) found.push(`${datagrams} sockets for datagrams of peers`)
  return found
}

/** Sockets that a process has open. */
async function inodes(pid: number): Promise<Set<string>> {
  const found = new Set<string>()
  const names = await readdir(`/proc/${pid}/fd`).catch(() => [])
  await Promise.all(
    names.map(async (name) => {
      const inode = /^socket:\[(\d+)\]$/.exec(await readlink(`/proc/${pid}/fd/${name}`).catch(() => ''))?.[1]
      if (inode !== undefined) found.add(inode)
    }),
  )
  return found
}
