import type { DetailedPeerCertificate } from 'node:tls'

/**
 * How many authorities stand between a certificate and the one that is trusted: what `ssl_verify_depth` limits, neither
 * end counting (as OpenSSL has it). Node has no way to set that limit before a handshake.
 * @param certificate of `getPeerCertificate(true)`, with those who have signed it
 */
export function intermediates(certificate: DetailedPeerCertificate): number {
  const seen = new Set<string>()
  let at: DetailedPeerCertificate | undefined = certificate
  while (at?.raw !== undefined && !seen.has(at.fingerprint256)) {
    seen.add(at.fingerprint256)
    at = at.issuerCertificate
  }
  return Math.max(0, seen.size - 2)
}
