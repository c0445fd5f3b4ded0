import { fail } from '../place.ts'
import type { Reading } from '../reading.ts'
import type { TlsServerSettings } from '../tls-model.ts'

/** A block with what of TLS may stand in it, and its servers. */
export interface TlsServers<S extends TlsServerSettings = TlsServerSettings> extends TlsServerSettings {
  readonly servers?: readonly S[]
}

/**
 * Rules of what servers show to clients, whether or not anything speaks TLS with them.
 * @throws ConfigError
 */
export function checkTlsServers(block: TlsServers, reading: Reading): void {
  for (const server of block.servers ?? []) {
    const owner = (key: keyof TlsServerSettings) => (server[key] === undefined ? block : server)
    const find = <K extends keyof TlsServerSettings>(key: K) => owner(key)[key]
    const refuse = (key: keyof TlsServerSettings, text: string): never =>
      fail(reading.at(owner(key), key) ?? { file: '', line: 0, syntax: 'yaml' }, text)
    const certificates = find('ssl_certificate')
    if (certificates === undefined && !find('ssl_reject_handshake')) continue
    const keys = find('ssl_certificate_key') ?? []
    if (certificates !== undefined && keys.length < certificates.length) {
      const text = `no "ssl_certificate_key" is defined for certificate "${certificates.at(-1)}"`
      refuse('ssl_certificate', text)
    }
    const verify = find('ssl_verify_client') ?? false
    // An empty path is none.
    const authorities = find('ssl_client_certificate') || find('ssl_trusted_certificate')
    if (verify !== false && verify !== 'optional_no_ca' && !authorities) {
      refuse('ssl_verify_client', 'no ssl_client_certificate for ssl_verify_client')
    }
  }
}

/**
 * Rules of an address where TLS is spoken: there has to be something to show.
 * @param servers those of the address, the default one first
 * @throws ConfigError
 */
export function checkTlsAddress<S extends TlsServerSettings>(
  block: TlsServers<S>,
  servers: readonly S[],
  reading: Reading,
): void {
  const shows = (server: S) => (server.ssl_certificate ?? block.ssl_certificate) !== undefined
  const rejects = (server: S) => server.ssl_reject_handshake ?? block.ssl_reject_handshake ?? false
  const [first] = servers
  // Servers that have nothing of their own show what the default one has.
  if (first === undefined || shows(first)) return
  const bare = rejects(first) ? servers.find((server) => !shows(server) && !rejects(server)) : first
  if (bare === undefined) return
  const place = reading.at(bare) ?? { file: '', line: 0, syntax: 'yaml' }
  fail(place, 'no "ssl_certificate" is defined for the "listen ... ssl" directive')
}
