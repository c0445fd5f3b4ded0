import { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { IncomingHead } from './client-side.ts'
import type { Caller } from './host.ts'
import { plainName } from './http1/fields.ts'
import type { ListenSpec } from './listen-spec.ts'

/** What is known of a request when its head has been read. */
export function makeCall(head: IncomingHead, { connection, address, proxied, tls, spec }: Caller): Call {
  const call = new Call()
  call.startedAt = monotonic()
  call.method = head.method
  call.target = head.target
  call.httpVersion = head.version
  call.rawHeaders = head.odd ? cleanHeaders(head.headers, spec) : head.headers
  call.remoteAddr = call.realipRemoteAddr = address.remoteAddr
  call.remotePort = call.realipRemotePort = address.remotePort
  call.serverAddr = address.serverAddr
  call.serverPort = address.serverPort
  call.proxied = proxied
  if (tls !== undefined) {
    call.tls = tls
    call.scheme = 'https'
  }
  call.connection = connection.serial
  call.connectionRequests = connection.requests
  call.requestLength = head.bytes
  return call
}

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
