import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { residentBytes } from '../support/invariants.ts'
import type { Sidecar } from '../support/sidecar.ts'
import type { ThreadMemory } from './heap-watch.ts'

/** What the process has in use. */
export interface Usage {
  readonly resident: number
  readonly descriptors: number
  /** Of all threads together; undefined before the first collection. */
  readonly heap: number | undefined
  readonly external: number
  readonly handles: number
  /** The worst of the threads, milliseconds. */
  readonly delayMs: number
}

/** @param folder where the threads write down what they use */
export async function usage(sidecar: Sidecar, folder: string): Promise<Usage> {
  const threads = memories(folder)
  const sum = (of: (one: ThreadMemory) => number) => threads.reduce((all, one) => all + of(one), 0)
  return {
    resident: await residentBytes(sidecar.pid),
    descriptors: descriptors(sidecar.pid).length,
    heap: threads.length === 0 ? undefined : sum(({ heap }) => heap),
    external: sum(({ external }) => external),
    handles: sum(({ handles }) => handles),
    delayMs: Math.max(0, ...threads.map(({ delayMs }) => delayMs)),
  }
}

/** Open descriptors of a process. */
function descriptors(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`)
}

/**
 * What the descriptors of the program are, one text each: files by their paths, sockets with their state. Those of its
 * admin server are left out: as many as the harness asks at once, and keeps.
 */
export function opened({ pid, ports }: Sidecar): string[] {
  const admin = `:${ports['ADMIN']!.toString(16).toUpperCase().padStart(4, '0')} `
  const sockets = new Map<string, string>()
  for (const table of ['tcp', 'tcp6', 'udp', 'udp6', 'unix']) {
    for (const line of readFileSync(`/proc/${pid}/net/${table}`, 'latin1').split('\n')) {
      const words = line.trim().split(/\s+/)
      if (table === 'unix') sockets.set(words[6] ?? '', 'unix')
      else sockets.set(words[9] ?? '', `${table} ${words[1]} ${words[2]} state ${words[3]}`)
    }
  }
  const all = descriptors(pid).map((fd) => {
    let name = ''
    try {
      name = readlinkSync(`/proc/${pid}/fd/${fd}`)
    } catch {
      // It is closed already.
    }
    const inode = /^socket:\[(\d+)\]$/.exec(name)?.[1]
    return inode === undefined ? name.replace(/:\[\d+\]$/, '') : `socket ${sockets.get(inode) ?? ''}`.trim()
  })
  return all.filter((text) => !text.includes(admin))
}

function memories(folder: string): ThreadMemory[] {
  const found: ThreadMemory[] = []
  for (const file of readdirSync(folder)) {
    if (!/^memory-\d+\.json$/.test(file)) continue
    try {
      // Written by `heap-watch.ts`.
      found.push(JSON.parse(readFileSync(join(folder, file), 'utf8')) as ThreadMemory)
    } catch {
      // It is being written.
    }
  }
  return found
}

/** Values of a page of metrics by series, in Prometheus' text format. */
export async function metrics(sidecar: Sidecar): Promise<Map<string, number>> {
  const text = await (await fetch(`${sidecar.admin}/metrics`)).text()
  const values = new Map<string, number>()
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const at = line.lastIndexOf(' ')
    values.set(line.slice(0, at), Number(line.slice(at + 1)))
  }
  return values
}

/** Series of what is in progress, or kept for later, that are not 0: none of them once all is quiet. */
export function busy(values: ReadonlyMap<string, number>): string[] {
  const found: string[] = []
  for (const [series, value] of values) {
    const of =
      /^evenkeel_(?:peer_in_flight|peer_waiting_age_seconds|upstream_retries_waiting|upstream_queue_waiting|upstream_idle_connections|connections_(?:active|idle))(?:\{|$)/
    if (of.test(series) && value !== 0) found.push(`${series} ${value}`)
  }
  return found
}

export function inFlight(values: ReadonlyMap<string, number>): number {
  let sum = 0
  for (const [series, value] of values) if (series.startsWith('evenkeel_peer_in_flight{')) sum += value
  return sum
}

/** Watches that counters never go back, as long as their peer stays. */
export class Counters {
  #last = new Map<string, number>()
  /** Comparisons made. */
  compared = 0

  /** @returns counters that went back since the last time */
  next(values: ReadonlyMap<string, number>): string[] {
    const back: string[] = []
    const seen = new Map<string, number>()
    for (const [series, value] of values) {
      if (!/^evenkeel_\w+_(?:total|count|bucket|sum)(?:\{|$)/.test(series)) continue
      seen.set(series, value)
      const before = this.#last.get(series)
      if (before === undefined) continue
      this.compared += 1
      // Sums of floating-point seconds are added in another order at times.
      if (value < before - 1e-6) back.push(`${series} ${before} → ${value}`)
    }
    this.#last = seen
    return back
  }
}
