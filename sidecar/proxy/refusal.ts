import { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { ClientAddress } from '../net/client-address.ts'
import { statusPhrase } from './builtin-pages.ts'
import type { Client } from './client.ts'
import type { Unserved } from './client-side.ts'
import type { Caller } from './host.ts'

/**
 * Answers what is no request that could be served, and closes.
 * @returns its record
 */
export function refuse(client: Client, what: Unserved): Call {
  const call = unservedCall(client, what)
  call.bytesSent = client.connection.refuse(plainResponse(what.status, what.method))
  call.endedAt = monotonic()
  return call
}

/** The record of what is no request that could be served, before it is answered. */
export function unservedCall({ connection, address, tls }: Caller, what: Unserved): Call {
  const call = new Call()
  call.startedAt = monotonic()
  call.method = what.method
  call.target = what.target
  call.remoteAddr = call.realipRemoteAddr = address.remoteAddr
  call.connection = connection.serial
  call.tls = tls
  if (tls !== undefined) call.scheme = 'https'
  call.status = what.status
  return call
}

/** The record of a connection that was to begin with a PROXY header, and did not. It gets no answer. */
export function ungreeted({ remoteAddr, remotePort }: ClientAddress, serial: number): Call {
  const call = new Call()
  call.startedAt = monotonic()
  call.method = ''
  call.target = ''
  call.remoteAddr = call.realipRemoteAddr = remoteAddr
  call.remotePort = call.realipRemotePort = remotePort
  call.connection = serial
  call.status = 400
  call.endedAt = call.startedAt
  return call
}

/**
 * A response that needs no request, and ends its connection.
 * @param method of what it answers, as far as that could be read
 */
export function plainResponse(status: number, method: string): string {
  const phrase = statusPhrase(status)!
  const body = `${status} ${phrase}\n`
  return (
    `HTTP/1.1 ${status} ${phrase}\r\nServer: evenkeel\r\nContent-Type: text/plain\r\n` +
    `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${method === 'HEAD' ? '' : body}`
  )
}
