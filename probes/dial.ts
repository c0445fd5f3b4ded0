import { connect, type Socket } from 'node:net'
import { monotonic } from '../feedback/clock.ts'
import type { Address } from '../feedback/peer.ts'
import { connectMishap, type Mishap, mishap } from './answer.ts'

/**
 * Shortest interval of the kinds that connect, milliseconds. A closed connection keeps its source port for a minute:
 * at this pace a probe holds 6,000 of the 28,000 ports that Linux has towards one address, and more would be taken
 * from the requests.
 */
export const connectInterval = 10

/**
 * Opens a connection for one question. Whoever asked closes it; its errors need no listener.
 * @param signal gives up connecting; a connection that is there is left alone
 * @param timeoutMs gives up connecting before the signal does
 */
export function dial(
  address: Address,
  signal: AbortSignal,
  timeoutMs = Number.POSITIVE_INFINITY,
): Promise<Socket | Mishap> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(slow)
    const socket =
      address.kind === 'unix'
        ? connect({ path: address.path })
        : connect({ host: address.host, port: address.port, noDelay: true })
    const timer = timeoutMs < longestTimer ? setTimeout(() => end(slow), timeoutMs) : undefined
    const aborted = () => end(slow)
    const end = (result: Socket | Mishap) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', aborted)
      if (result !== socket) socket.destroy()
      resolve(result)
    }
    signal.addEventListener('abort', aborted, { once: true })
    // Kept for the connection's life: an error that comes when nobody asks any more must find somebody to hear it.
    socket.on('error', (error) => end(connectMishap(error)))
    socket.once('connect', () => end(socket))
  })
}

/** Speaks TLS on a connection that is there. @param done called once; after an error the connection is gone */
export type Secure = (socket: Socket, done: (end: Socket | NodeJS.ErrnoException) => void) => void

/**
 * The same with TLS on it, for which there is no more time than for connecting.
 * @param secure undefined: nobody speaks it
 */
export async function dialSecure(
  address: Address,
  signal: AbortSignal,
  timeoutMs: number,
  secure: Secure | undefined,
): Promise<Socket | Mishap> {
  const startedAt = monotonic()
  const socket = await dial(address, signal, timeoutMs)
  if (secure === undefined || 'failure' in socket) return socket
  return new Promise((resolve) => {
    const left = timeoutMs - (monotonic() - startedAt)
    const timer = left < longestTimer ? setTimeout(() => end(slow), Math.max(0, left)) : undefined
    const aborted = () => end(slow)
    const end = (result: Socket | Mishap) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', aborted)
      if ('failure' in result) socket.destroy()
      resolve(result)
    }
    signal.addEventListener('abort', aborted, { once: true })
    if (signal.aborted) return aborted()
    secure(socket, (secured) => {
      if (secured instanceof Error) return end(connectMishap(secured))
      // As with a plain one: an error that comes when nobody asks any more must find somebody to hear it.
      secured.on('error', () => {})
      end(secured)
    })
  })
}

const slow = mishap('timeout', 'timeout_connect', 'connecting took too long')

/** Node's timers run at once beyond this, milliseconds. */
const longestTimer = 2 ** 31 - 1
