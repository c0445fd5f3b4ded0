import { listenTexts } from '../listen-range.ts'
import type { HttpBlock, Listen, ServerBlock } from '../model.ts'
import { fail, type Place } from '../place.ts'
import type { Reading } from '../reading.ts'
import { checkTlsAddress } from './tls-servers.ts'

/** Flags of `listen` that say what is spoken on an address; they hold for all its lines. */
const spoken = ['proxy_protocol', 'ssl', 'http2'] as const

/** What is spoken, a bit for each of `spoken`. */
type Protocols = number

interface Socket {
  hasDefault: boolean
  hasOptions: boolean
  /** What the lines so far say together. */
  protocols: Protocols
  /** What counts as said so far, once a second line has stood there. */
  settled: Protocols | undefined
  changed: boolean
  /** The default one first. */
  readonly servers: ServerBlock[]
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
      for (const text of listenTexts(listen.address)) {
        const address = text.replace(/^\*/, '0.0.0.0')
        if (place && own.has(address)) fail(place, `a duplicate listen ${address}`)
        own.add(address)
      }
      if (place && 'http2' in listen) {
        reading.warn(
          place,
          'the "listen ... http2" directive is deprecated, use the "http2" directive instead',
        )
      }
      for (const text of listenTexts(listen.address)) {
        const address = text.replace(/^\*/, '0.0.0.0')
        const before = sockets.get(address)
        const socket = before ?? newSocket()
        sockets.set(address, socket)
        const hadOptions = socket.hasOptions
        if (place && 'default_server' in listen) {
          if (socket.hasDefault) fail(place, `a duplicate default server for ${address}`)
          socket.hasDefault = true
          socket.servers.unshift(server)
        } else socket.servers.push(server)
        if (place && 'backlog' in listen) {
          if (socket.hasOptions) fail(place, `duplicate listen options for ${address}`)
          socket.hasOptions = true
        }
        const differs = agreed(socket, listen, before === undefined, hadOptions)
        if (place && differs) reading.warn(place, `protocol options redefined for ${address}`)
        claimNames(server, address, socket, reading)
      }
    }
  }
  const ssl = 1 << spoken.indexOf('ssl')
  for (const { protocols, servers } of sockets.values()) {
    if (protocols & ssl) checkTlsAddress(http, servers, reading)
  }
}

function newSocket(): Socket {
  return {
    hasDefault: false,
    hasOptions: false,
    protocols: 0,
    settled: undefined,
    changed: false,
    servers: [],
    names: new Set(),
  }
}

/**
 * Takes in what a further line says of an address. nginx keeps quiet where one line has all words and others have
 * none of them, and so does this.
 * @param hadOptions whether a line before has set options of the socket
 * @returns whether lines of the address disagree
 */
function agreed(socket: Socket, listen: Listen, first: boolean, hadOptions: boolean): boolean {
  const said: Protocols = spoken.reduce((bits, word, i) => (word in listen ? bits | (1 << i) : bits), 0)
  const before = socket.protocols
  const both = before | said
  socket.protocols = both
  if (first) return false
  const setsOptions = 'backlog' in listen
  const settled = socket.settled
  const unlike = settled !== undefined && said !== settled
  let differs: boolean
  if (both !== before) {
    differs = (hadOptions && !setsOptions) || socket.changed || both !== said
    socket.settled = before
    socket.changed = true
  } else if (both !== said) {
    differs = setsOptions || unlike
    socket.settled = said
    socket.changed = true
  } else {
    differs = (setsOptions && socket.changed) || unlike
    socket.settled = said
  }
  return differs
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
