import { isIP, type Socket } from 'node:net'
import {
  checkServerIdentity,
  connect,
  createSecureContext,
  type DetailedPeerCertificate,
  type SecureContext,
  type TLSSocket,
} from 'node:tls'
import { intermediates } from './chain.ts'
import { known, withReset } from './engine.ts'
import { Sessions } from './sessions.ts'
import { reasonOf, TlsFileError } from './store.ts'
import { suites } from './suites.ts'
import { isVerifyError, verifyErrorText } from './verify-errors.ts'
import type { Wire } from './wire.ts'

/** How TLS is spoken with peers. */
export interface PeerEngineOptions {
  readonly versions: readonly ('TLSv1.2' | 'TLSv1.3')[]
  /** OpenSSL's list, for TLS 1.2. */
  readonly ciphers: string
  readonly reuse: boolean
  /** Whether the peer's certificate has to be good, and the name's. */
  readonly verify: boolean
  /** Most authorities between the peer's certificate and a trusted one. */
  readonly depth: number
  /** Trusted authorities, PEM. */
  readonly trusted: readonly string[]
  readonly crl: string | undefined
  /** What is shown to the peer. */
  readonly certificate: { readonly cert: string; readonly key: string; readonly certPath: string } | undefined
  /** Whether the name is sent. */
  readonly sendsName: boolean
  /** Protocols inside, the one liked best first; none: it is not spoken of. */
  readonly alpn: readonly string[]
}

/** A handshake with a peer that has failed. Its code begins as those of OpenSSL's own errors do. */
export class PeerTlsError extends Error {
  readonly code = 'ERR_TLS_PEER'
}

/** A name that a connection is for: what of TLS its kept connections and sessions may not be mixed up by. */
export interface PeerName {
  /** Verified, and sent where names are. */
  readonly name: string
  /** Stands for the peer, the name, and everything that is asked of TLS. */
  readonly lane: string
}

/** Speaks TLS with peers, for all who ask the same of it. */
export class PeerEngine {
  readonly #options: PeerEngineOptions
  readonly #context: SecureContext
  readonly #id: string

  constructor(options: PeerEngineOptions, id: string) {
    this.#options = options
    this.#id = id
    this.#context = makeContext(options)
  }

  /** @param peer its address @param name of the peer, as it calls itself */
  lane(peer: string, name: string): PeerName {
    return { name, lane: `${peer} ${this.#id} ${name}` }
  }

  /** One that asks the same, with other protocols inside. */
  speaking(alpn: readonly string[]): PeerEngine {
    return peerEngineOf({ ...this.#options, alpn })
  }

  /**
   * Makes a handshake.
   * @param socket connected
   * @param done called once; with an error the connection is gone
   * @param wire looks at what passes; undefined: nobody does
   */
  begin(
    socket: Socket,
    { name, lane }: PeerName,
    done: (end: TLSSocket | PeerTlsError) => void,
    wire?: Wire,
  ): TLSSocket {
    const { verify, sendsName, alpn, reuse } = this.#options
    const session = reuse ? sessions.get(lane) : undefined
    // As towards clients: an end in the middle of a handshake is the end of it.
    socket.allowHalfOpen = false
    const secure = withReset(
      connect({
        socket: wire ?? socket,
        secureContext: this.#context,
        // What a session is taken up again for.
        host: name,
        ...(sendsName && name !== '' && isIP(name) === 0 && { servername: name }),
        ...(session && { session }),
        ...(alpn.length > 0 && { ALPNProtocols: [...alpn] }),
        rejectUnauthorized: verify,
        // Node hands it over with those who have signed it.
        checkServerIdentity: (_, certificate) =>
          verify ? this.#misfit(name, certificate as DetailedPeerCertificate) : undefined,
      }),
      socket,
    )
    const failed = (error: NodeJS.ErrnoException) => {
      secure.removeListener('secureConnect', secured)
      // A second error of a connection that is given up must not find nobody to hear it.
      secure.on('error', () => {})
      secure.destroy()
      sessions.delete(lane)
      done(new PeerTlsError(failureWords(error)))
    }
    const secured = () => {
      secure.removeListener('error', failed)
      secure.allowHalfOpen = true
      if (wire) wire.allowHalfOpen = socket.allowHalfOpen = true
      done(secure)
    }
    secure.once('error', failed)
    secure.once('secureConnect', secured)
    if (reuse) secure.on('session', (fresh) => sessions.set(lane, fresh))
    return secure
  }

  /** What is wrong with a certificate that a trusted authority has signed. */
  #misfit(name: string, certificate: DetailedPeerCertificate): Error | undefined {
    if (intermediates(certificate) > this.#options.depth) {
      return new PeerTlsError(`upstream SSL ${verifyErrorText('CERT_CHAIN_TOO_LONG')}`)
    }
    if (checkServerIdentity(name, certificate) === undefined) return undefined
    return new PeerTlsError(`upstream SSL certificate does not match "${name}"`)
  }
}

/** Sessions of this thread, to be taken up again. */
const sessions = new Sessions()

function makeContext(options: PeerEngineOptions): SecureContext {
  const { versions, ciphers, certificate, crl } = options
  const modern = versions.includes('TLSv1.3')
  try {
    return createSecureContext({
      minVersion: versions.includes('TLSv1.2') ? 'TLSv1.2' : 'TLSv1.3',
      maxVersion: modern ? 'TLSv1.3' : 'TLSv1.2',
      ciphers: modern ? `${suites}:${ciphers}` : ciphers,
      // Without any, Node would take the system's.
      ca: [...options.trusted],
      ...(crl !== undefined && { crl }),
      ...(certificate && { cert: certificate.cert, key: certificate.key }),
    })
  } catch (error) {
    const reason = reasonOf(error)
    if (/no cipher match/i.test(reason)) {
      throw new TlsFileError(`SSL_CTX_set_cipher_list("${ciphers}") failed (SSL: ${reason})`)
    }
    const what = certificate ? `certificate "${certificate.certPath}"` : 'certificates'
    throw new TlsFileError(`cannot use ${what}: ${reason}`)
  }
}

function failureWords(error: NodeJS.ErrnoException): string {
  const { code = '' } = error
  if (error instanceof PeerTlsError) return error.message
  if (isVerifyError(code)) return `upstream SSL ${verifyErrorText(code)}`
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'peer closed connection in SSL handshake'
  return `SSL_do_handshake() failed (SSL: ${reasonOf(error)})`
}

/** The engine of these options; the same one as long as anybody has it. @throws TlsFileError */
export const peerEngineOf = known((options: PeerEngineOptions, id: string) => new PeerEngine(options, id))
