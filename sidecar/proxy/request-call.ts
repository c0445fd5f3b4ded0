import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { ClientConnection } from './exchange.ts'
import type { ListenSpec } from './listener.ts'

/** What is known of a request when its head has been read. */
export function makeCall(request: IncomingMessage, connection: ClientConnection, spec: ListenSpec): Call {
  const { socket } = connection
  const call = new Call()
  call.startedAt = monotonic()
  call.method = request.method ?? 'GET'
  call.target = request.url ?? '/'
  call.httpVersion = request.httpVersion
  call.rawHeaders = cleanHeaders(request.rawHeaders, spec)
  call.remoteAddr = call.realipRemoteAddr = clientAddress(socket)
  call.remotePort = call.realipRemotePort = socket.remotePort === undefined ? '' : String(socket.remotePort)
  call.serverAddr =
    spec.address.kind === 'unix' ? `unix:${spec.address.path}` : plainAddress(socket.localAddress ?? '')
  call.serverPort = socket.localPort === undefined ? '' : String(socket.localPort)
  call.connection = connection.serial
  call.connectionRequests = connection.requests
  // The head is not kept as bytes: its length is that of its lines.
  let length = call.method.length + call.target.length + 12
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    length += request.rawHeaders[i]!.length + request.rawHeaders[i + 1]!.length + 4
  }
  call.requestLength = length + 2
  return call
}

const plainName = /^[A-Za-z0-9-]+$/
const nameWithUnderscore = /^[A-Za-z0-9_-]+$/

/** Drops fields with names that peers could take for others (`X_Real_IP` for `X-Real-IP`), as nginx does. */
function cleanHeaders(raw: readonly string[], spec: ListenSpec): readonly string[] {
  const { dropUnderscores, dropInvalid } = spec
  const kept = (name: string) => {
    if (plainName.test(name)) return true
    return nameWithUnderscore.test(name) ? !dropUnderscores : !dropInvalid
  }
  for (let i = 0; i < raw.length; i += 2) {
    if (!kept(raw[i]!)) return raw.filter((_, j) => kept(raw[j - (j % 2)]!))
  }
  return raw
}

/** Address of a client's socket: `unix:` for one without an IP address. */
export function clientAddress(socket: Socket): string {
  return socket.remoteAddress === undefined ? 'unix:' : plainAddress(socket.remoteAddress)
}

/** An IPv4 client of an IPv6 socket has its IPv4 address. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}
