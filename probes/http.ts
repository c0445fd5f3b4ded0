import Type from 'typebox'
import type { ProbeKind } from './probe.ts'

const args = Type.Object(
  {
    max_body: Type.Optional(
      Type.String({ format: 'size', description: 'how much of the body is read; 256k unless given' }),
    ),
  },
  { additionalProperties: false },
)

export const http = {
  name: 'http',
  summary: "Sends the location's request on a fresh connection and judges the answer.",
  args,
  http: true,
  leastInterval: 10,
  async check() {
    throw new Error('not built yet')
  },
} as const satisfies ProbeKind<typeof args>
