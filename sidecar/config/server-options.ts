import { createHash } from 'node:crypto'
import type { ServerOptions } from '../../feedback/peer.ts'
import { timeMs } from './units.ts'
import type { ServerLine } from './upstream-model.ts'

/**
 * What a `server` line says of one of its peers, in numbers, with nginx's defaults.
 * @param name the peer's: its sticky id is made of it where the line gives none
 */
export function serverOptions(line: ServerLine, name: string): ServerOptions {
  return {
    weight: line.weight ?? 1,
    max_conns: line.max_conns ?? 0,
    max_conns_scope: line.max_conns_scope ?? 'instance',
    max_fails: line.max_fails ?? 1,
    fail_timeout: timeMs(line.fail_timeout ?? '10s') ?? 10_000,
    slow_start: timeMs(line.slow_start ?? '0s') ?? 0,
    backup: line.backup === true,
    down: line.down === true,
    drain: line.drain === true,
    track: line.track ?? 'stable',
    sid: line.sid ?? createHash('md5').update(name).digest('hex'),
  }
}
