import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import { statusPhrase } from './builtin-pages.ts'
import type { ClientConnection, Exchange } from './exchange.ts'
import { clientAddress } from './request-call.ts'

/** How long a refused client that does not close has until it is closed on, milliseconds. */
const patienceMs = 1000

/**
 * Answers what is no request that could be served, and closes.
 * @param connection undefined where it was not accepted
 * @param request undefined where not even its head could be read
 * @returns its record
 */
export function refuse(
  socket: Socket,
  connection: ClientConnection | undefined,
  status: number,
  request: IncomingMessage | undefined,
): Call {
  const call = new Call()
  call.startedAt = monotonic()
  call.method = request?.method ?? ''
  call.target = request?.url ?? ''
  call.remoteAddr = call.realipRemoteAddr = clientAddress(socket)
  call.connection = connection?.serial ?? 0
  call.status = status
  const text = plainResponse(status)
  call.bytesSent = text.length
  call.endedAt = monotonic()
  socket.end(text, () => socket.destroy())
  setTimeout(() => socket.destroy(), patienceMs).unref()
  return call
}

/** What follows from bytes of a client that could not be read. */
export type Unreadable =
  /** It has been seen to. */
  | 'settled'
  /** To be refused with this status, after the request in progress where there is one. */
  | { readonly status: number; readonly after: boolean }

/**
 * Judges bytes of a client that could not be read.
 * @param current the request in progress on the connection
 */
export function unreadable(
  error: NodeJS.ErrnoException,
  socket: Socket,
  current: Exchange | undefined,
): Unreadable {
  if (error.code === 'ECONNRESET' || error.code === 'EPIPE' || !socket.writable) {
    socket.destroy()
    return 'settled'
  }
  const status = statusOf(error)
  const answering = current !== undefined && !current.response.writableFinished
  // The request in progress is whole; what cannot be read came after it.
  if (answering && current.request.complete) return { status, after: true }
  // The client has ended its side, and with it a body that was not whole: it has gone, and waits for nothing.
  if (answering && error.code === 'HPE_INVALID_EOF_STATE') {
    socket.destroy()
    return 'settled'
  }
  if (answering) {
    // The body of a request in progress cannot be read: it can be answered only if nothing has been said yet.
    if (current.response.headersSent) {
      socket.destroy()
      return 'settled'
    }
    current.leave()
    current.call.status = status
    socket.end(plainResponse(status), () => socket.destroy())
    return 'settled'
  }
  // Nothing came at all: a connection that was opened and left alone is not a request.
  if (status === 408 && socket.bytesRead === 0) {
    socket.destroy()
    return 'settled'
  }
  return { status, after: false }
}

/** The status for an error of node's parser. */
function statusOf({ code }: NodeJS.ErrnoException): number {
  if (code === 'HPE_HEADER_OVERFLOW') return 431
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return 413
  return 400
}

function plainResponse(status: number): string {
  const phrase = statusPhrase(status) ?? 'Bad Request'
  const body = `${status} ${phrase}\n`
  return (
    `HTTP/1.1 ${status} ${phrase}\r\nServer: evenkeel\r\nContent-Type: text/plain\r\n` +
    `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
  )
}
