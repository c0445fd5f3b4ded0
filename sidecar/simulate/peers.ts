import type { Wanted } from '../../feedback/carry.ts'
import { formatAddress, serverAddress } from '../config/address.ts'
import { serverOptions } from '../config/server-options.ts'
import type { UpstreamBlock } from '../config/upstream-model.ts'

/** The peers of a group as its sidecars are to have them: one for each `server` line, whatever its host stands for. */
export function wantedOf(block: UpstreamBlock): Wanted[] {
  return (block.servers ?? []).map((line) => {
    const address = serverAddress(line.address)
    const name = formatAddress(address)
    return { server: line.address, name, address, options: serverOptions(line, name) }
  })
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
