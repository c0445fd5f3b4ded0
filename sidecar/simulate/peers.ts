import type { Wanted } from '../../feedback/carry.ts'
import { formatAddress, serverAddress } from '../config/address.ts'
import type { ServerLine, UpstreamBlock } from '../config/model.ts'
import { timeMs } from '../config/units.ts'

/** The peers of a group as its sidecars are to have them: one for each `server` line, whatever its host stands for. */
export function wantedOf(block: UpstreamBlock): Wanted[] {
  return (block.servers ?? []).map((line) => {
    const address = serverAddress(line.address)
    return { server: line.address, name: formatAddress(address), address, options: options(line) }
  })
}

function options(line: ServerLine): Wanted['options'] {
  return {
    weight: line.weight ?? 1,
    max_conns: line.max_conns ?? 0,
    max_fails: line.max_fails ?? 1,
    fail_timeout: timeMs(line.fail_timeout ?? '10s') ?? 0,
    slow_start: timeMs(line.slow_start ?? '0s') ?? 0,
    backup: line.backup === true,
    down: line.down === true,
    track: line.track ?? 'stable',
    // Nobody asks for a session here.
    sid: '',
  }
}

/**
 * How fast the peers are, by their order: as told, or else as their weights say. Those that get no request while
 * all is well have 0: the load is not reckoned by them.
 * @param told a speed for each server line; a shorter list is gone through again and again
 */
export function speedsOf(wanted: readonly Wanted[], told: readonly number[] | undefined): number[] {
  return wanted.map(({ options: { backup, down, weight } }, i) => {
    if (backup || down) return 0
    return told === undefined ? weight : told[i % told.length]!
  })
}
