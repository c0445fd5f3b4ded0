import type { HttpBlock, ServerBlock } from '../model.ts'
import { fail, type Place, type Reading } from '../reading.ts'

interface Socket {
  hasDefault: boolean
  hasOptions: boolean
  readonly hasProxyProtocol: boolean
  readonly names: Set<string>
}

/**
 * Rules of listeners and server names.
 * @throws ConfigError
 */
export function checkListeners(http: HttpBlock, reading: Reading): void {
  const sockets = new Map<string, Socket>()
  for (const server of http.servers ?? []) {
    const own = new Set<string>()
    for (const listen of server.listen ?? [{ address: '*:80' }]) {
      const place: Place | undefined = reading.at(listen)
      const address = listen.address.replace(/^\*/, '0.0.0.0')
      if (place && own.has(address)) fail(place, `a duplicate listen ${address}`)
      own.add(address)
      const socket = sockets.get(address) ?? {
        hasDefault: false,
        hasOptions: false,
        hasProxyProtocol: 'proxy_protocol' in listen,
        names: new Set(),
      }
      sockets.set(address, socket)
      if (place && 'default_server' in listen) {
        if (socket.hasDefault) fail(place, `a duplicate default server for ${address}`)
        socket.hasDefault = true
      }
      if (place && 'backlog' in listen) {
        if (socket.hasOptions) fail(place, `duplicate listen options for ${address}`)
        socket.hasOptions = true
      }
      if (place && 'proxy_protocol' in listen !== socket.hasProxyProtocol) {
        reading.warn(place, `protocol options redefined for ${address}`)
      }
      claimNames(server, address, socket, reading)
    }
  }
}

/** The first server with a name on an address keeps it. */
function claimNames(server: ServerBlock, address: string, socket: Socket, reading: Reading): void {
  for (const name of new Set(server.server_name ?? [''])) {
    const place = reading.at(server, 'server_name')
    if (place && socket.names.has(name)) {
      reading.warn(place, `conflicting server name "${name}" on ${address}, ignored`)
    }
    socket.names.add(name)
  }
}
