import Type from 'typebox'
import type { ProbeKind } from './probe.ts'

const args = Type.Object(
  {
    service: Type.Optional(
      Type.String({ description: 'the service to ask after; without it the server as a whole' }),
    ),
  },
  { additionalProperties: false },
)

export const grpc = {
  name: 'grpc',
  summary: "Asks gRPC's health service over HTTP/2 without TLS: passed when it says SERVING.",
  args,
  http: false,
  leastInterval: 10,
  async check() {
    throw new Error('not built yet')
  },
} as const satisfies ProbeKind<typeof args>
