import { createSocket, type Socket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { monotonic } from '../feedback/clock.ts'
import type { Address } from '../feedback/peer.ts'
import { sendBytes, sendFault } from './agent-send.ts'
import { answer, connectMishap, type Mishap, messageOf, mishap } from './answer.ts'
import { connectInterval } from './dial.ts'
import { Heard } from './heard.ts'
import type { Answer, ProbeKind } from './probe.ts'
import { sizeOf } from './size.ts'
import { streamArgs } from './stream-args.ts'

/** How long the word that nobody is there may take to come back, where no answer is waited for; milliseconds. */
const unreachableMs = 100

/**
 * Sends a datagram, an empty one without `send`, and waits for one; with a test for as many as make it hold. Where no
 * answer is waited for, all that can be known is that nobody said that the port is closed.
 */
export const udp = {
  name: 'udp',
  summary:
    'Sends a datagram and waits for one; with `max_response=0` only for the word that nobody is there.',
  args: streamArgs,
  http: false,
  leastInterval: connectInterval,
  misfit(address, { send }) {
    if (address.kind === 'unix') return 'type=udp needs an IP peer'
    return send === undefined ? undefined : sendFault(send)
  },
  async caveat({ send }) {
    const lost = await sendBytes(send ?? 'data:').then(() => undefined, messageOf)
    return lost === undefined ? undefined : `peers cannot be asked: ${lost}`
  },
  async check({ address }, { send = 'data:', max_response = '256k' }, { signal, holds }) {
    const startedAt = monotonic()
    let datagram: Buffer
    try {
      datagram = await sendBytes(send, signal)
    } catch (error) {
      return answer(startedAt, { ...mishap('error', 'closed', messageOf(error), true), passed: false })
    }
    const most = sizeOf(max_response)
    const socket = await open(address)
    if ('failure' in socket) return answer(startedAt, { ...socket, passed: false })
    const heard = new Heard(startedAt, undefined, most, holds)
    try {
      return await exchange(socket, signal, datagram, heard, most === 0 ? unreachableMs : undefined)
    } finally {
      socket.close()
    }
  },
} as const satisfies ProbeKind<typeof streamArgs>

/** A socket for one peer only, so that the system says who is not there. */
async function open(address: Address): Promise<Socket | Mishap> {
  if (address.kind === 'unix') return mishap('error', 'unreachable', 'no UDP peer', true)
  let { host } = address
  try {
    if (isIP(host) === 0) host = (await lookup(host)).address
  } catch (error) {
    return connectMishap(error instanceof Error ? error : new Error(messageOf(error)))
  }
  const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4')
  return new Promise((resolve) => {
    const failed = (error: Error) => {
      socket.close()
      resolve(connectMishap(error))
    }
    socket.once('error', failed)
    socket.connect(address.port, host, (error?: Error) => {
      socket.off('error', failed)
      // Where there is no way to the peer: that is told here, and not as an `error`.
      if (error) failed(error)
      else resolve(socket)
    })
  })
}

/** @param silenceMs passes when nothing was heard for so long; undefined: an answer is needed */
function exchange(
  socket: Socket,
  signal: AbortSignal,
  datagram: Buffer,
  heard: Heard,
  silenceMs: number | undefined,
): Promise<Answer> {
  return new Promise((resolve) => {
    // Timers run before sockets are read: the word that nobody is there may have been lying there.
    const quiet = () => setImmediate(() => end({}))
    const silence = silenceMs === undefined ? undefined : setTimeout(quiet, silenceMs)
    const aborted = () => {
      if (silenceMs !== undefined) quiet()
      else end(heard.any ? {} : mishap('timeout', 'timeout_read', 'no answer in time'))
    }
    const end = (seen: Partial<Answer>) => {
      clearTimeout(silence)
      signal.removeEventListener('abort', aborted)
      resolve(heard.answer('failure' in seen ? { ...seen, passed: false } : seen))
    }
    const failed = (error: Error) => end(connectMishap(error))
    signal.addEventListener('abort', aborted, { once: true })
    if (signal.aborted) return aborted()
    // Kept for the socket's life: an error may come after the end.
    socket.on('error', failed)
    socket.on('message', (piece: Buffer) => {
      if (silenceMs === undefined && heard.take(piece)) end({})
    })
    socket.send(datagram, (error) => {
      if (error) failed(error)
    })
  })
}
