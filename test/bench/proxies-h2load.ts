import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { monotonic } from '../../feedback/clock.ts'
import { pathOf } from '../../scripts/ensure.ts'
import { cpuMicros, residentBytes } from './proxies-process.ts'
import { callMessage, type Front } from './proxies-scenarios.ts'
import type { Turn, TurnOptions } from './proxies-turn.ts'

/** From its first answer until all connections are open, milliseconds; what it does before is not counted. */
const leadMs = 100
/** How long its first answer may take, milliseconds. */
const patienceMs = 15_000

export interface Target {
  readonly port: number
  readonly front: Front
  readonly connections: number
}

/**
 * What h2load is told, but for how long and where to write what it saw.
 * @param body file of what a call sends
 */
export function h2loadWords(
  { port, front, connections }: Target,
  rate: number | undefined,
  body: string,
): string[] {
  const { tls, http2, streams, calls = false } = front
  return [
    ...['-c', `${connections}`, '-m', `${streams}`],
    ...(http2 ? [] : ['--h1']),
    // One cipher for all: which one a proxy prefers is not what is compared.
    ...(tls ? ['--tls13-ciphers=TLS_AES_128_GCM_SHA256'] : []),
    ...(rate === undefined ? [] : ['--rps', `${rate / connections}`]),
    ...(calls ? ['-d', body, '-H', 'content-type: application/grpc', '-H', 'te: trailers'] : []),
    `${tls ? 'https' : 'http'}://127.0.0.1:${port}/${calls ? 'bench.Talk/say' : 'small'}`,
  ]
}

/**
 * One turn with h2load, on the cores of this process. It opens its connections anew each turn, before the counting.
 *
 * @throws for an answer that is not 2xx, and where there is none
 */
export async function h2loadTurn(target: Target, { ms, rate, pids }: TurnOptions): Promise<Turn> {
  const folder = mkdtempSync(join(tmpdir(), 'evenkeel-h2load-'))
  const log = join(folder, 'log')
  const body = join(folder, 'body')
  if (target.front.calls) writeFileSync(body, callMessage)
  // It is ended before that.
  const longer = ['-D', `${Math.ceil(ms / 1000) + 30}`, '--log-file', log]
  const child = spawn(pathOf('h2load'), [...longer, ...h2loadWords(target, rate, body)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  try {
    await once(child, 'spawn')
    const load = child.pid === undefined ? [] : [child.pid]
    // Its times are of the wall clock.
    const sample = () => ({
      wallMicros: Date.now() * 1000,
      at: monotonic(),
      cpu: cpuMicros(pids),
      load: cpuMicros(load),
      own: process.cpuUsage(),
    })
    const until = monotonic() + patienceMs
    while ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) === 0) {
      if (monotonic() > until || child.exitCode !== null) throw new Error('h2load has no answer')
      await sleep(10)
    }
    await sleep(leadMs)
    const first = sample()
    await sleep(ms)
    if (child.exitCode !== null) throw new Error(`h2load ended with ${child.exitCode}`)
    const last = sample()
    const used = process.cpuUsage(first.own)
    const times = timesOf(readFileSync(log, 'utf8'), first.wallMicros, last.wallMicros)
    return {
      requests: times.length,
      ms: last.at - first.at,
      cpuMicros: last.cpu - first.cpu,
      loadMicros: last.load - first.load + used.user + used.system,
      p50: times[Math.floor(times.length * 0.5)] ?? 0,
      p99: times[Math.floor(times.length * 0.99)] ?? 0,
      residentBytes: residentBytes(pids),
    }
  } finally {
    if (child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    }
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * How long the requests took that ended within a time, milliseconds, sorted.
 *
 * @param log lines of start (microseconds since 1970), status, and microseconds until the end of the answer
 * @throws for any that is not 2xx, and where there are none
 */
export function timesOf(log: string, fromMicros: number, untilMicros: number): Float64Array {
  const times: number[] = []
  // The last line may not be whole.
  for (const line of log.slice(0, log.lastIndexOf('\n') + 1).split('\n')) {
    if (line === '') continue
    const [start = Number.NaN, status = Number.NaN, micros = Number.NaN] = line.split('\t').map(Number)
    if (!(status >= 200 && status < 300)) throw new Error(`an answer with status ${status}`)
    const end = start + micros
    if (end >= fromMicros && end < untilMicros) times.push(micros / 1000)
  }
  if (times.length === 0) throw new Error('no answer came')
  return Float64Array.from(times).sort()
}
