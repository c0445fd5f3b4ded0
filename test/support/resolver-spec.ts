import type { ResolverSpec } from '../../sidecar/membership.ts'

/** A resolver of one server, asked for IPv4 addresses alone. */
export const resolverSpec: ResolverSpec = {
  servers: [{ host: '127.0.0.1', port: 53 }],
  validMs: undefined,
  ipv4: true,
  ipv6: false,
  timeoutMs: 30_000,
  statusZone: undefined,
}
