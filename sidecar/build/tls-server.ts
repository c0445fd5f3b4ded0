import { resolve } from 'node:path'
import type { TlsServerSettings } from '../config/tls-model.ts'
import { timeMs } from '../config/units.ts'
import { type Engine, type EngineOptions, engineOf } from '../tls/engine.ts'
import { TlsFileError, type TlsStore } from '../tls/store.ts'
import { PartError } from './place.ts'

/** Where files of TLS are, and what was read of them. */
export interface TlsSource {
  /** Folder that relative paths start from, absolute. */
  readonly prefix: string
  readonly tls: TlsStore
}

/**
 * What a server shows to clients that speak TLS.
 * @param levels from the outermost to the innermost
 * @param alpn protocols inside, the one liked best first
 * @returns undefined where it has nothing to show
 * @throws PartError for files that are not what they should be
 */
export function buildEngine(
  levels: readonly TlsServerSettings[],
  alpn: readonly string[],
  { prefix, tls }: TlsSource,
): Engine | undefined {
  const owner = (key: keyof TlsServerSettings) => levels.findLast((level) => level[key] !== undefined)
  const find = <K extends keyof TlsServerSettings>(key: K) => owner(key)?.[key]
  const at = <T>(key: keyof TlsServerSettings, read: () => T): T => {
    try {
      return read()
    } catch (error) {
      if (error instanceof TlsFileError) throw new PartError(error.message, owner(key) ?? {}, key)
      throw error
    }
  }
  /** An empty path is none. */
  const pathOf = (text: string | undefined) =>
    text === undefined || text === '' ? undefined : resolve(prefix, text)
  const pem = (
    key: 'ssl_client_certificate' | 'ssl_trusted_certificate' | 'ssl_crl' | 'ssl_dhparam',
    what: string,
  ) => {
    const path = pathOf(find(key))
    return path === undefined ? [] : [at(key, () => tls.pem(path, what))]
  }
  const paths = find('ssl_certificate')
  if (paths === undefined) return undefined
  const keys = find('ssl_certificate_key') ?? []
  const passwords = pathOf(find('ssl_password_file'))
  const authority = 'SSL_CTX_load_verify_locations() failed for'
  const [ticketFile] = find('ssl_session_ticket_key') ?? []
  const options: EngineOptions = {
    certificates: paths.map((text, i) => {
      const [certPath, keyPath] = [resolve(prefix, text), resolve(prefix, keys[i] ?? '')]
      const cert = at('ssl_certificate', () => tls.certificate(certPath))
      const key = at('ssl_certificate_key', () => tls.key(keyPath, passwords, certPath))
      return { cert, key, certPath }
    }),
    versions: find('ssl_protocols') ?? ['TLSv1.2', 'TLSv1.3'],
    ciphers: find('ssl_ciphers') ?? 'HIGH:!aNULL:!MD5',
    preferOwnCiphers: find('ssl_prefer_server_ciphers') ?? false,
    curves: find('ssl_ecdh_curve') ?? 'auto',
    dhparam: pem('ssl_dhparam', 'cannot load DH parameters')[0],
    tickets: find('ssl_session_tickets') ?? true,
    ticketKey:
      ticketFile === undefined
        ? tls.ticketKey
        : at('ssl_session_ticket_key', () => tls.tickets(resolve(prefix, ticketFile))),
    sessionTimeout: seconds(find('ssl_session_timeout')),
    verify: find('ssl_verify_client') ?? false,
    authorities: [...pem('ssl_client_certificate', authority), ...pem('ssl_trusted_certificate', authority)],
    crl: pem('ssl_crl', authority)[0],
    depth: find('ssl_verify_depth') ?? 1,
    alpn,
  }
  return at('ssl_certificate', () => engineOf(options))
}

function seconds(text: string | undefined): number {
  const ms = text === undefined ? 300_000 : (timeMs(text) ?? 300_000)
  return Math.min(2 ** 31 - 1, Math.max(1, Math.round(ms / 1000)))
}
