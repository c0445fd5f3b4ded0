import { checkFleet } from './check/fleet.ts'
import { checkLocations } from './check/locations.ts'
import { checkProbes } from './check/probes.ts'
import { checkListeners } from './check/servers.ts'
import { checkUpstreams } from './check/upstreams.ts'
import type { Model } from './model.ts'
import type { Reading } from './reading.ts'

/**
 * Rules across lines and blocks, which hold whatever the order of lines is.
 * @throws ConfigError
 */
export function check(model: Model, reading: Reading): void {
  if (model.http === undefined) return
  checkUpstreams(model.http, reading)
  checkListeners(model.http, reading)
  checkLocations(model.http, reading)
  checkFleet(model, reading)
  checkProbes(model.http, model.fleet, reading)
}
