import { readdirSync, readFileSync } from 'node:fs'

/** Processes below one, and itself: a server may have a master and workers. */
export function family(pid: number): number[] {
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const text = read(`/proc/${name}/stat`)
    // Its name may hold spaces and parentheses; state and parent stand after the last one.
    if (text !== undefined)
      parents.set(Number(name), Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1]))
  }
  const found = [pid]
  for (const one of found) {
    for (const [child, parent] of parents) if (parent === one) found.push(child)
  }
  return found
}

/** Time on a core of all threads of some processes so far, user and system, microseconds. */
export function cpuMicros(pids: readonly number[]): number {
  let ns = 0
  for (const pid of pids) {
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      // A thread may have ended since. The first number is nanoseconds on a core.
      ns += Number(read(`/proc/${pid}/task/${task}/schedstat`)?.split(' ')[0] ?? 0)
    }
  }
  return ns / 1000
}

/** Resident memory of some processes, bytes. What they share is counted for each. */
export function residentBytes(pids: readonly number[]): number {
  let bytes = 0
  for (const pid of pids) {
    bytes += 1024 * Number(/^VmRSS:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1] ?? 0)
  }
  return bytes
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
