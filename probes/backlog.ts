import { monotonic } from '../feedback/clock.ts'
import { Type } from '../feedback/schema-type.ts'
import { answer, type Mishap, messageOf, mishap } from './answer.ts'
import { ipBytes, isOwn } from './ip.ts'
import type { ProbeKind } from './probe.ts'
import { SocketTable } from './socket-table.ts'

const args = Type.Object(
  {
    limit: Type.Integer({
      minimum: 1,
      description: 'connections waiting to be accepted, from which on the probe does not pass',
    }),
  },
  { additionalProperties: false },
)

/**
 * Whether a peer on this host keeps up with accepting its connections. A queue that has reached the limit has to be
 * empty again for the probe to pass: a peer that takes one connection off it has not recovered. What cannot be seen
 * leaves the verdict as it was.
 * @param table the kernel's, unless a test puts another in its place
 */
export function backlogKind(table: SocketTable) {
  return {
    name: 'backlog',
    summary: "Reads the accept queue of a TCP peer on this host from the kernel's socket table.",
    args,
    http: false,
    leastInterval: 10,
    misfit(address) {
      if (address.kind === 'unix') return 'type=backlog needs a TCP peer'
      const bytes = ipBytes(address.host)
      if (bytes && isOwn(bytes)) return undefined
      return `type=backlog needs a peer on this host, which "${address.host}" is not`
    },
    async caveat() {
      const lost = await table.check().then(() => undefined, messageOf)
      return lost === undefined ? undefined : `accept queues cannot be read: ${lost}`
    },
    async check({ address }, { limit }, { signal, failing }) {
      const startedAt = monotonic()
      const unseen = (how: Mishap) => answer(startedAt, { ...how, passed: !failing })
      if (address.kind === 'unix') return unseen(mishap('error', 'unreachable', 'no TCP peer', true))
      let queue: number | undefined
      try {
        queue = await unlessAborted(signal, table.queue(address.host, address.port))
      } catch (error) {
        if (signal.aborted) return unseen(mishap('timeout', 'timeout_read', 'no socket table in time', true))
        return unseen(mishap('error', 'unreachable', `accept queue not seen: ${messageOf(error)}`, true))
      }
      if (queue === undefined) {
        const detail = `nobody listens on port ${address.port} of ${address.host}`
        return answer(startedAt, { ...mishap('error', 'refused', detail), passed: false })
      }
      const passed = failing ? queue === 0 : queue < limit
      return answer(startedAt, { passed, detail: `queue ${queue} of ${limit}` })
    },
  } as const satisfies ProbeKind<typeof args>
}

export const backlog = backlogKind(new SocketTable())

/** @throws whatever `promise` does, and the signal's reason as soon as it is aborted */
function unlessAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = () => reject(signal.reason)
    signal.addEventListener('abort', aborted, { once: true })
    if (signal.aborted) aborted()
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', aborted))
  })
}
