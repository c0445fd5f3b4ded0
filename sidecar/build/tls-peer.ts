import { resolve } from 'node:path'
import type { TlsPeer, TlsPeerPrefix, TlsPeerSettings } from '../config/tls-model.ts'
import { type PeerEngine, peerEngineOf } from '../tls/peer-engine.ts'
import { TlsFileError } from '../tls/store.ts'
import { PartError } from './place.ts'
import type { TlsSource } from './tls-server.ts'

/** The keys of a `TlsPeer` at the innermost level that has each. */
export class PeerLevels<P extends TlsPeerPrefix> {
  readonly #prefix: P
  readonly #levels: readonly TlsPeerSettings<P>[]

  /** @param levels from the outermost to the innermost */
  constructor(prefix: P, levels: readonly TlsPeerSettings<P>[]) {
    this.#prefix = prefix
    this.#levels = levels
  }

  /** Name of a directive. */
  name<K extends keyof TlsPeer>(key: K): `${P}${K}` {
    return `${this.#prefix}${key}`
  }

  owner(key: keyof TlsPeer): TlsPeerSettings<P> | undefined {
    const name: keyof TlsPeerSettings<P> = this.name(key)
    return this.#levels.findLast((level) => level[name] !== undefined)
  }

  find<K extends keyof TlsPeer>(key: K): TlsPeer[K] | undefined {
    const found: unknown = this.owner(key)?.[this.name(key) as keyof TlsPeerSettings<P>]
    // The type of the name put together is that of the key: TypeScript does not follow it through the template.
    return found as TlsPeer[K] | undefined
  }
}

/**
 * How TLS is spoken with peers at some levels of the configuration.
 * @param alpn protocols inside, the one liked best first; none: it is not spoken of
 * @throws PartError for files that are not what they should be
 */
export function buildPeerEngine<P extends TlsPeerPrefix>(
  levels: PeerLevels<P>,
  alpn: readonly string[],
  { prefix, tls }: TlsSource,
): PeerEngine {
  const at = <T>(key: keyof TlsPeer, read: () => T): T => {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof TlsFileError)) throw error
      throw new PartError(error.message, levels.owner(key) ?? {}, levels.name(key))
    }
  }
  /** An empty path is none. */
  const pathOf = (
    key: 'trusted_certificate' | 'crl' | 'certificate' | 'certificate_key' | 'password_file',
  ) => {
    const text = levels.find(key)
    return text === undefined || text === '' ? undefined : resolve(prefix, text)
  }
  const pem = (key: 'trusted_certificate' | 'crl') => {
    const path = pathOf(key)
    if (path === undefined) return undefined
    return at(key, () => tls.pem(path, 'SSL_CTX_load_verify_locations() failed for'))
  }
  const [certPath, keyPath] = [pathOf('certificate'), pathOf('certificate_key')]
  const passwords = pathOf('password_file')
  const verify = levels.find('verify') ?? false
  const options = {
    versions: levels.find('protocols') ?? (['TLSv1.2', 'TLSv1.3'] as const),
    ciphers: levels.find('ciphers') ?? 'DEFAULT',
    reuse: levels.find('session_reuse') ?? true,
    verify,
    depth: levels.find('verify_depth') ?? 1,
    trusted: [pem('trusted_certificate') ?? []].flat(),
    crl: pem('crl'),
    certificate:
      certPath === undefined || keyPath === undefined
        ? undefined
        : {
            cert: at('certificate', () => tls.certificate(certPath)),
            key: at('certificate_key', () => tls.key(keyPath, passwords, certPath)),
            certPath,
          },
    sendsName: levels.find('server_name') ?? false,
    alpn,
  }
  return at(certPath === undefined ? 'ciphers' : 'certificate', () => peerEngineOf(options))
}
