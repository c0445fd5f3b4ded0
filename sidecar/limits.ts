import { readFileSync } from 'node:fs'

/** Descriptors that are not for connections: log files, listeners, the admin server, what Node itself has open. */
const reserve = 64
/** The same of each thread that serves, where there are several: its event loop has eight, its listeners and logs some. */
const threadReserve = 12

/**
 * Most connections of clients at once. A request needs a descriptor for its client and one for its peer; where they run
 * out, connecting to peers fails, and that must not look like a failure of the peers.
 * @param threads how many serve
 */
export function mostConnections(threads: number): number {
  const kept = reserve + (threads > 1 ? threads * threadReserve : 0)
  return Math.max(16, Math.floor((descriptors() - kept) / 2))
}

/** How many descriptors the process may have; unlimited where the system does not tell. */
function descriptors(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    const [, soft = ''] = /^Max open files\s+(\d+)/m.exec(limits) ?? []
    return soft === '' ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
