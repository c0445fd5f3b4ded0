import type { Socket } from 'node:net'
import { monotonic } from '../feedback/clock.ts'
import { sendBytes, sendFault } from './agent-send.ts'
import { answer, brokenMishap, messageOf, mishap } from './answer.ts'
import { connectInterval, dialSecure } from './dial.ts'
import { Heard } from './heard.ts'
import type { Answer, ProbeKind } from './probe.ts'
import { sizeOf } from './size.ts'
import { streamArgs } from './stream-args.ts'

/**
 * Connects, says what is to be said and hears what comes back. Without `send` the connection is enough, unless there is
 * a test: then the peer is one that speaks first. An answer that has no form of its own has no end, so the first byte is
 * enough, or with a test whatever makes it hold.
 */
export const streamTcp = {
  name: 'tcp',
  summary: 'Connects; with `send` or a test waits for an answer.',
  args: streamArgs,
  http: false,
  leastInterval: connectInterval,
  misfit(_address, { send }) {
    return send === undefined ? undefined : sendFault(send)
  },
  async caveat({ send }) {
    const lost = await sendBytes(send ?? 'data:').then(() => undefined, messageOf)
    return lost === undefined ? undefined : `peers cannot be asked: ${lost}`
  },
  async check({ address }, { send, max_response = '256k' }, { signal, holds, question }) {
    const startedAt = monotonic()
    let first: Buffer | undefined
    try {
      if (send !== undefined) first = await sendBytes(send, signal)
    } catch (error) {
      return answer(startedAt, { ...mishap('error', 'closed', messageOf(error), true), passed: false })
    }
    const { secure, connectTimeout } = question ?? { connectTimeout: Number.POSITIVE_INFINITY }
    const socket = await dialSecure(address, signal, connectTimeout, secure)
    if ('failure' in socket) return answer(startedAt, { ...socket, passed: false })
    const connectMs = monotonic() - startedAt
    const most = sizeOf(max_response)
    const waits = most > 0 && (first !== undefined || holds !== undefined)
    const heard = new Heard(startedAt, connectMs, most, holds)
    try {
      if (waits) return await converse(socket, signal, first, heard)
      return await tell(socket, signal, first, heard)
    } finally {
      socket.destroySoon()
    }
  },
} as const satisfies ProbeKind<typeof streamArgs>

/** Sends, and hears until it is enough, the peer ends or the time is over. */
function converse(
  socket: Socket,
  signal: AbortSignal,
  first: Buffer | undefined,
  heard: Heard,
): Promise<Answer> {
  return new Promise((resolve) => {
    const aborted = () => end(heard.any ? {} : mishap('timeout', 'timeout_read', 'no answer in time'))
    const end = (seen: Partial<Answer>) => {
      signal.removeEventListener('abort', aborted)
      resolve(heard.answer('failure' in seen ? { ...seen, passed: false } : seen))
      // What else comes is of no interest, and must not be waited for.
      socket.destroy()
    }
    const gone = (error?: Error) => end(heard.any && error === undefined ? {} : brokenMishap(error))
    signal.addEventListener('abort', aborted, { once: true })
    if (signal.aborted) return aborted()
    socket.on('data', (piece: Buffer) => {
      if (heard.take(piece)) end({})
    })
    socket.once('end', () => gone())
    socket.once('error', gone)
    socket.once('close', () => gone())
    if (first !== undefined && first.length > 0) socket.write(first)
  })
}

/** Sends, where there is something to be sent, and waits for nothing but the system's taking it. */
function tell(socket: Socket, signal: AbortSignal, first: Buffer | undefined, heard: Heard): Promise<Answer> {
  if (first === undefined || first.length === 0) return Promise.resolve(heard.answer())
  return new Promise((resolve) => {
    const aborted = () => end(mishap('timeout', 'timeout_send', 'it could not be sent in time'))
    const end = (seen: Partial<Answer>) => {
      signal.removeEventListener('abort', aborted)
      resolve(heard.answer('failure' in seen ? { ...seen, passed: false } : seen))
    }
    signal.addEventListener('abort', aborted, { once: true })
    if (signal.aborted) return aborted()
    socket.write(first, (error) => end(error ? brokenMishap(error) : {}))
  })
}
