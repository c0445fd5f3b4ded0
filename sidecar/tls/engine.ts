import { constants, createHash } from 'node:crypto'
import type { Socket } from 'node:net'
import { createServer, type Server, type TLSSocket } from 'node:tls'
import { reset } from '../net/reset.ts'
import { reasonOf, TlsFileError } from './store.ts'
import { suites } from './suites.ts'

export type VerifyClient = boolean | 'optional' | 'optional_no_ca'

/** What a server shows to clients, and asks of them: everything that a handshake needs. */
export interface EngineOptions {
  /** Certificates with their issuers, and their keys, PEM; the path is for messages. */
  readonly certificates: readonly { readonly cert: string; readonly key: string; readonly certPath: string }[]
  readonly versions: readonly ('TLSv1.2' | 'TLSv1.3')[]
  /** OpenSSL's list, for TLS 1.2. */
  readonly ciphers: string
  readonly preferOwnCiphers: boolean
  readonly curves: string
  readonly dhparam: string | undefined
  readonly tickets: boolean
  /** 48 bytes. */
  readonly ticketKey: Buffer
  /** Seconds. */
  readonly sessionTimeout: number
  readonly verify: VerifyClient
  /** Authorities of clients' certificates, PEM. */
  readonly authorities: readonly string[]
  readonly crl: string | undefined
  /** Most authorities between a client's certificate and a known one. */
  readonly depth: number
  /** Protocols inside, the one liked best first. */
  readonly alpn: readonly string[]
}

/** Told how a handshake ends; nothing where the connection closes first. */
export interface HandshakeEnd {
  secured(secure: TLSSocket): void
  /** @param why for the error log */
  failed(why: string): void
}

/** Whether it is time is looked at by whoever began the handshake: this only has to be longer. Milliseconds. */
const longest = 2 ** 31 - 1

/** Speaks TLS with clients of servers that show and ask the same. */
export class Engine {
  readonly verify: VerifyClient
  readonly depth: number
  /** Stands for whose certificates pass: the same for all that would let the same ones pass. */
  readonly policy: string
  readonly #server: Server
  /** Whoever waits for the end of a handshake, by the connection below it. */
  readonly #waiting = new WeakMap<Socket, HandshakeEnd>()

  constructor(options: EngineOptions, id: string) {
    this.verify = options.verify
    this.depth = options.depth
    this.policy = hash([options.verify !== false, options.authorities, options.crl ?? '', options.depth])
    this.#server = makeServer(options, id)
    this.#server.on('secureConnection', (secure) => {
      const below = parentOf(secure)
      secure.allowHalfOpen = true
      this.#waiting.get(below)?.secured(withReset(secure, below))
    })
    this.#server.on('tlsClientError', (error, secure) => {
      this.#waiting.get(parentOf(secure))?.failed(handshakeWords(error))
      secure.destroy()
    })
  }

  /** Begins a handshake. @param socket paused, with what has come of it already put back */
  begin(socket: Socket, end: HandshakeEnd): void {
    this.#waiting.set(socket, end)
    // Who ends its side in the middle of a handshake has gone; the layer above takes this over as it is now.
    socket.allowHalfOpen = false
    // A documented way to hand a connection over that was accepted elsewhere.
    this.#server.emit('connection', socket)
  }
}

function makeServer(options: EngineOptions, id: string): Server {
  const { certificates, versions, verify, crl, dhparam } = options
  const asks = verify !== false
  let secureOptions = constants.SSL_OP_NO_RENEGOTIATION
  // Whoever shows a certificate is looked at anew each time: a ticket does not hold the whole chain.
  if (!options.tickets || asks) secureOptions |= constants.SSL_OP_NO_TICKET
  const modern = versions.includes('TLSv1.3')
  try {
    return createServer({
      cert: certificates.map(({ cert }) => cert),
      key: certificates.map(({ key }) => key),
      minVersion: versions.includes('TLSv1.2') ? 'TLSv1.2' : 'TLSv1.3',
      maxVersion: modern ? 'TLSv1.3' : 'TLSv1.2',
      ciphers: modern ? `${suites}:${options.ciphers}` : options.ciphers,
      honorCipherOrder: options.preferOwnCiphers,
      ecdhCurve: options.curves,
      ...(dhparam !== undefined && { dhparam }),
      ...(crl !== undefined && { crl }),
      // Without any, Node would take the system's for authorities of clients.
      ca: [...options.authorities],
      secureOptions,
      ticketKeys: options.ticketKey,
      sessionTimeout: options.sessionTimeout,
      // Sessions begin again only where the same is shown and asked.
      sessionIdContext: id.slice(0, 32),
      requestCert: asks,
      // What comes of it is each request's affair: nginx answers 400.
      rejectUnauthorized: false,
      ALPNProtocols: [...options.alpn],
      handshakeTimeout: longest,
    })
  } catch (error) {
    throw new TlsFileError(mistake(error, options))
  }
}

function mistake(error: unknown, { certificates, ciphers, curves }: EngineOptions): string {
  const reason = reasonOf(error)
  if (/no cipher match/i.test(reason)) return `SSL_CTX_set_cipher_list("${ciphers}") failed (SSL: ${reason})`
  if (/ecdh|curve|group/i.test(reason)) return `SSL_CTX_set1_curves_list("${curves}") failed (SSL: ${reason})`
  const paths = certificates.map(({ certPath }) => `"${certPath}"`).join(', ')
  return `cannot use certificate ${paths}: ${reason}`
}

/** The connection below. Node gives it no other name. */
function parentOf(secure: TLSSocket): Socket {
  return (secure as TLSSocket & { readonly _parent: Socket })._parent
}

/** Resets the connection below, where that is one of TCP: the layer above cannot. */
export function withReset(secure: TLSSocket, below: Socket): TLSSocket {
  secure.resetAndDestroy = () => {
    reset(below)
    return secure
  }
  return secure
}

function handshakeWords(error: NodeJS.ErrnoException): string {
  if (error.code === 'ECONNRESET') return 'peer closed connection in SSL handshake'
  return `SSL_do_handshake() failed (SSL: ${reasonOf(error)})`
}

function hash(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url')
}

/**
 * Makes things once for the same options, as long as anybody has them: a refresh or a reload that changes nothing of
 * TLS does not put together what is there.
 * @param make gets the options, and an id that stands for them
 */
export function known<O extends object, T extends object>(
  make: (options: O, id: string) => T,
): (options: O) => T {
  const made = new Map<string, WeakRef<T>>()
  return (options) => {
    const id = hash(options)
    const old = made.get(id)?.deref()
    if (old) return old
    for (const [key, thing] of made) if (thing.deref() === undefined) made.delete(key)
    const thing = make(options, id)
    made.set(id, new WeakRef(thing))
    return thing
  }
}

/** The engine of these options; the same one as long as anybody has it. @throws TlsFileError */
export const engineOf = known((options: EngineOptions, id: string) => new Engine(options, id))
