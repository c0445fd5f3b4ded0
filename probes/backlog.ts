import Type from 'typebox'
import type { ProbeKind } from './probe.ts'

const args = Type.Object(
  {
    limit: Type.Integer({
      minimum: 1,
      description: 'connections waiting to be accepted, from which on the probe does not pass',
    }),
  },
  { additionalProperties: false },
)

export const backlog = {
  name: 'backlog',
  summary: "Reads the accept queue of a TCP peer on this host from the kernel's socket table.",
  args,
  http: false,
  leastInterval: 10,
  async check() {
    throw new Error('not built yet')
  },
} as const satisfies ProbeKind<typeof args>
