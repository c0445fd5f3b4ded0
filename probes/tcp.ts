import Type from 'typebox'
import type { ProbeKind } from './probe.ts'

const args = Type.Object({}, { additionalProperties: false })

export const tcp = {
  name: 'tcp',
  summary: 'Connects and closes: passed when the connection is there.',
  args,
  http: false,
  leastInterval: 10,
  async check() {
    throw new Error('not built yet')
  },
} as const satisfies ProbeKind<typeof args>
