import Type from 'typebox'
import type { ProbeKind } from './probe.ts'

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

export const agent = {
  name: 'agent',
  summary: "Reads a line of orders from an agent beside the peer: HAProxy's agent-check.",
  args,
  http: false,
  leastInterval: 10,
  async check() {
    throw new Error('not built yet')
  },
} as const satisfies ProbeKind<typeof args>
