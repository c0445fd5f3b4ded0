import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisServer } from '../support/redis.ts'
import type { Counted, Sketch } from './fleet-instances.ts'
import { percentile } from './tail-figures.ts'

/** One cell: so many instances with so many peers each. */
export interface Cell {
  readonly instances: number
  readonly peers: number
  /** Part of the peers that have traffic in an interval. */
  readonly part: number
}

/** What one cell costs, a second of the clock. Times in milliseconds. */
export interface Cost {
  readonly cell: Cell
  /** How long it was measured. */
  readonly ms: number
  /** Commands that instances send, and all that Redis counts, those inside scripts included. */
  readonly exchanges: number
  readonly commands: number
  /** CPU seconds of Redis: 1 is a core. */
  readonly cpu: number
  /** Bytes to and from Redis. */
  readonly received: number
  readonly sent: number
  /** Bytes that the group takes in Redis. */
  readonly memory: number
  readonly mean: number
  readonly p99: number
  /** Exchanges that failed or took longer than the fleet's usual time-out, as a part of all. */
  readonly late: number
  /** CPU of one instance for one exchange, milliseconds. */
  readonly own: number
}

export interface Times {
  readonly warm: number
  readonly measured: number
}

export const interval = 200
/** The usual one of the fleet. */
const timeout = 100
let groups = 0

/** Runs one cell on a server that does nothing else. */
export async function measure(server: RedisServer, cell: Cell, times: Times): Promise<Cost> {
  await server.command('FLUSHALL')
  const { child, counted, end } = await start(server, cell)
  try {
    await sleep(times.warm)
    child.send('begin')
    const [before, at] = [await info(server), performance.now()]
    await sleep(times.measured)
    const [after, ms] = [await info(server), performance.now() - at]
    child.send('end')
    const { exchanges, failures, roundTrips, cpu } = await counted
    const memory = await memoryOfKeys(server)
    const rate = (name: string) => ((after(name) - before(name)) * 1000) / ms
    const sorted = Float64Array.from(roundTrips).sort()
    return {
      cell,
      ms,
      exchanges: rate('evalsha'),
      commands: rate('total_commands_processed'),
      cpu: rate('used_cpu_user') + rate('used_cpu_sys'),
      received: rate('total_net_input_bytes'),
      sent: rate('total_net_output_bytes'),
      memory,
      mean: roundTrips.reduce((sum, one) => sum + one, 0) / roundTrips.length,
      p99: sorted.length > 0 ? percentile(sorted, 0.99) : Number.NaN,
      late: (failures + roundTrips.filter((trip) => trip > timeout).length) / (exchanges + failures),
      own: cpu / exchanges,
    }
  } finally {
    await end()
  }
}

/** How long an exchange keeps the thread of an instance busy, milliseconds: ordinarily, and at most. */
export interface Stretches {
  /** At a stretch. */
  readonly sending: readonly [median: number, most: number]
  /** From when the answer comes: at a stretch or in a few. */
  readonly hearing: readonly [median: number, most: number]
}

export async function stretches(server: RedisServer, peers: number, times: Times): Promise<Stretches> {
  await server.command('FLUSHALL')
  const { child, counted, end } = await start(server, { instances: 1, peers, part: 1 })
  try {
    await sleep(times.warm)
    child.send('begin')
    await sleep(times.measured)
    child.send('end')
    const { sending, hearing } = await counted
    const pair = (values: readonly number[]): [number, number] => {
      const sorted = Float64Array.from(values).sort()
      return [percentile(sorted, 0.5), sorted.at(-1)!]
    }
    return { sending: pair(sending), hearing: pair(hearing) }
  } finally {
    await end()
  }
}

async function start(
  server: RedisServer,
  sketch: Omit<Sketch, 'url' | 'group' | 'interval'>,
): Promise<{ child: ChildProcess; counted: Promise<Counted>; end(): Promise<void> }> {
  const all: Sketch = { url: server.url, group: `bench-${groups++}`, interval, ...sketch }
  const child = fork(new URL('./fleet-instances.ts', import.meta.url), [JSON.stringify(all)])
  const exited = once(child, 'exit')
  const failed = exited.then(([status]) => {
    throw new Error(`bench: the instances ended with ${status}`)
  })
  failed.catch(() => {})
  await Promise.race([once(child, 'message'), failed])
  // What comes second is the figures.
  const counted = Promise.race([once(child, 'message').then(([told]) => told as Counted), failed])
  counted.catch(() => {})
  const end = async () => {
    child.kill('SIGKILL')
    await exited
  }
  return { child, counted, end }
}

/** @returns any number of `INFO`, by its name; of a command of `commandstats` how often it was called */
async function info(server: RedisServer): Promise<(name: string) => number> {
  const text = String(await server.command('INFO', 'everything'))
  return (name) => {
    const found = new RegExp(`^(?:${name}:|cmdstat_${name}:calls=)([\\d.]+)`, 'm').exec(text)
    return Number(found?.[1] ?? 0)
  }
}

/** Bytes of all that Redis keeps. */
async function memoryOfKeys(server: RedisServer): Promise<number> {
  const keys = (await server.command('KEYS', '*')) as string[]
  let sum = 0
  for (const key of keys) sum += Number(await server.command('MEMORY', 'USAGE', key, 'SAMPLES', 0))
  return sum
}
