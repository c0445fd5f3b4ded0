import { checkFleet } from './check/fleet.ts'
import { checkLocations } from './check/locations.ts'
import { checkProbes, checkStreamProbes } from './check/probes.ts'
import { checkResolving } from './check/resolving.ts'
import { checkListeners } from './check/servers.ts'
import { checkStream } from './check/stream.ts'
import { checkStreamTlsPeers, checkTlsPeers } from './check/tls-peers.ts'
import { checkTlsAddress, checkTlsServers } from './check/tls-servers.ts'
import { checkUpstreams } from './check/upstreams.ts'
import { checkZoneNames } from './check/zone-names.ts'
import type { Model } from './model.ts'
import type { Reading } from './reading.ts'

/**
 * Rules across lines and blocks, which hold whatever the order of lines is.
 * @throws ConfigError
 */
export function check(model: Model, reading: Reading): void {
  const { http, stream } = model
  if (http !== undefined) {
    checkUpstreams(http, reading)
    checkResolving(http, reading)
    checkTlsServers(http, reading)
    checkListeners(http, reading)
    checkLocations(http, reading)
    checkTlsPeers(http, reading)
  }
  if (stream !== undefined) {
    checkUpstreams(stream, reading)
    checkResolving(stream, reading)
    checkStream(stream, http, reading)
    checkTlsServers(stream, reading)
    checkStreamTlsPeers(stream, reading)
    for (const server of stream.servers ?? []) {
      if (server.listen?.some(({ ssl }) => ssl)) checkTlsAddress(stream, [server], reading)
    }
  }
  checkZoneNames(model, reading)
  checkFleet(model, reading)
  if (http !== undefined) checkProbes(http, model.fleet, reading)
  if (stream !== undefined) checkStreamProbes(stream, model.fleet, reading)
}
