import type { Socket } from 'node:net'
import { monotonic } from '../feedback/clock.ts'
import { Type } from '../feedback/schema-type.ts'
import { readAgentLine } from './agent-line.ts'
import { sendBytes, sendFault } from './agent-send.ts'
import { answer, messageOf, shown } from './answer.ts'
import { connectInterval, dial } from './dial.ts'
import type { Answer, ProbeKind } from './probe.ts'

const args = Type.Object(
  {
    send: Type.Optional(
      Type.String({
        description:
          'what is sent first: `data:TEXT` with \\n, \\r, \\t, \\\\ and \\xHH, or the path of a file',
      }),
    ),
  },
  { additionalProperties: false },
)

/**
 * HAProxy's agent-check. An agent is asked for orders and not for its health: a probe of this kind always passes, and
 * what the agent wants of the peer is in `orders` alone. An agent that is not there, is silent or talks nonsense
 * orders nothing, so that what it ordered last stays; `detail` says so. Unlike HAProxy, which ignores a line without
 * its end, this takes the end of the connection for the end of the line.
 */
export const agent = {
  name: 'agent',
  summary: "Reads a line of orders from an agent beside the peer: HAProxy's agent-check.",
  args,
  http: false,
  leastInterval: connectInterval,
  misfit(_address, { send }) {
    return send === undefined ? undefined : sendFault(send)
  },
  async caveat({ send }) {
    const lost = await sendBytes(send ?? 'data:').then(() => undefined, messageOf)
    return lost === undefined ? undefined : `agents cannot be asked: ${lost}`
  },
  async check({ address }, { send }, { signal }) {
    const startedAt = monotonic()
    const nothing = (detail: string, seen: Partial<Answer> = {}) =>
      answer(startedAt, { passed: true, detail, ...seen })
    let first: Buffer | undefined
    try {
      if (send !== undefined) first = await sendBytes(send, signal)
    } catch (error) {
      return nothing(`agent was not asked: ${messageOf(error)}`)
    }
    const socket = await dial(address, signal)
    if ('failure' in socket) return nothing(`no agent: ${socket.detail}`)
    const connectMs = monotonic() - startedAt
    try {
      const came = await readLine(socket, signal, first)
      if ('fault' in came) return nothing(`agent orders nothing: ${came.fault}`, { connectMs })
      const { orders, ignored } = readAgentLine(came.line)
      const odd = ignored.map((word) => `"${shown(word)}"`).join(' ')
      const detail = `agent says "${shown(came.line)}"${odd === '' ? '' : `; ignored ${odd}`}`
      return nothing(detail, { connectMs, orders })
    } finally {
      socket.destroy()
    }
  },
} as const satisfies ProbeKind<typeof args>

/** Longest line that is read, bytes: a line of all words there are has a tenth of it. */
const longestLine = 1024

/** Sends what is to be sent and reads up to the first CR, LF or end of the connection. */
function readLine(
  socket: Socket,
  signal: AbortSignal,
  first: Buffer | undefined,
): Promise<{ line: string } | { fault: string }> {
  return new Promise((resolve) => {
    let text = ''
    const aborted = () => end({ fault: 'no line in time' })
    const end = (came: { line: string } | { fault: string }) => {
      signal.removeEventListener('abort', aborted)
      resolve(came)
    }
    signal.addEventListener('abort', aborted, { once: true })
    if (signal.aborted) return aborted()
    socket.on('data', (piece: Buffer) => {
      text += piece.toString('latin1', 0, longestLine + 1)
      const length = text.search(/[\r\n]/)
      if (length >= 0 && length <= longestLine) end({ line: text.slice(0, length) })
      else if (text.length > longestLine) end({ fault: `line of more than ${longestLine} bytes` })
    })
    socket.on('end', () => end(text === '' ? { fault: 'connection closed' } : { line: text }))
    socket.on('error', (error) => end({ fault: error.message }))
    socket.on('close', () => end({ fault: 'connection closed' }))
    if (first) socket.write(first)
  })
}
