import { monotonic } from '../feedback/clock.ts'
import { Type } from '../feedback/schema-type.ts'
import { answer } from './answer.ts'
import { connectInterval, dial } from './dial.ts'
import type { ProbeKind } from './probe.ts'

const args = Type.Object({}, { additionalProperties: false })

export const tcp = {
  name: 'tcp',
  summary: 'Connects and closes: passed when the connection is there.',
  args,
  http: false,
  leastInterval: connectInterval,
  async check({ address }, _args, { signal }) {
    const startedAt = monotonic()
    const socket = await dial(address, signal)
    if ('failure' in socket) return answer(startedAt, { ...socket, passed: false })
    const connectMs = monotonic() - startedAt
    socket.destroy()
    return answer(startedAt, { passed: true, connectMs, responseMs: connectMs })
  },
} as const satisfies ProbeKind<typeof args>
