import type { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import type { CallCertificate, CallTls } from '../../feedback/call-tls.ts'
import { intermediates } from './chain.ts'
import type { ClientHello } from './client-hello.ts'
import type { Engine } from './engine.ts'
import { cipherName, groupName } from './names.ts'
import { isUnknownAuthority, verifyErrorText, verifyWords } from './verify-errors.ts'

/** A client's connection that speaks TLS, as it is after its handshake. */
export class ClientTls implements CallTls {
  readonly protocol: string
  readonly cipher: string
  readonly reused: boolean
  readonly alpn: string
  readonly certificate: CallCertificate | undefined
  /** What it was shown, and asked. */
  readonly engine: Engine
  /** Node's code of what is wrong with the certificate; undefined where it has shown none, and for a good one. */
  readonly fault: string | undefined
  readonly #hello: ClientHello

  constructor(secure: TLSSocket, hello: ClientHello, engine: Engine) {
    this.protocol = secure.getProtocol() ?? ''
    this.cipher = secure.getCipher()?.name ?? ''
    this.reused = secure.isSessionReused()
    this.alpn = secure.alpnProtocol || ''
    this.engine = engine
    this.#hello = hello
    const shown = engine.verify === false ? undefined : secure.getPeerX509Certificate()
    this.certificate = shown && new ClientCertificate(shown)
    this.fault = shown && faultOf(secure, engine.depth)
  }

  get serverName(): string {
    return this.#hello.serverName
  }

  get ciphers(): string {
    return this.#hello.ciphers.map(cipherName).join(':')
  }

  get curves(): string {
    return this.#hello.groups.map(groupName).join(':')
  }

  get verify(): string {
    if (this.certificate === undefined) return 'NONE'
    return this.fault === undefined ? 'SUCCESS' : `FAILED:${verifyWords(this.fault)}`
  }

  /** What the error log says of a certificate that does not pass. */
  get complaint(): string {
    return `client SSL ${verifyErrorText(this.fault ?? '')}`
  }
}

function faultOf(secure: TLSSocket, depth: number): string | undefined {
  // Node's type has an error there; it is the code of one.
  const code = secure.authorizationError as unknown as string | null
  if (code) return code
  // What is neither authorised nor refused was not looked at.
  if (!secure.authorized) return 'CERT_UNTRUSTED'
  return intermediates(secure.getPeerCertificate(true)) > depth ? 'CERT_CHAIN_TOO_LONG' : undefined
}

/**
 * What a server that asks clients for certificates has against one, as nginx's status.
 * @param verify what the server says
 * @returns 495: a certificate that does not pass; 496: none, and it must; undefined: nothing
 */
export function certificateRefusal(tls: ClientTls, verify: Engine['verify']): 495 | 496 | undefined {
  if (verify === false) return undefined
  if (tls.fault !== undefined && !(verify === 'optional_no_ca' && isUnknownAuthority(tls.fault))) return 495
  return verify === true && tls.certificate === undefined ? 496 : undefined
}

/** A certificate in nginx's forms, made when they are asked for. */
export class ClientCertificate implements CallCertificate {
  readonly #certificate: X509Certificate

  constructor(certificate: X509Certificate) {
    this.#certificate = certificate
  }

  get subject(): string {
    return distinguishedName(this.#certificate.subject)
  }
  get issuer(): string {
    return distinguishedName(this.#certificate.issuer)
  }
  get subjectLegacy(): string {
    return oneLine(this.#certificate.subject)
  }
  get issuerLegacy(): string {
    return oneLine(this.#certificate.issuer)
  }
  get serial(): string {
    return this.#certificate.serialNumber
  }
  get fingerprint(): string {
    return this.#certificate.fingerprint.replaceAll(':', '').toLowerCase()
  }
  get pem(): string {
    return this.#certificate.toString()
  }
  get validFrom(): string {
    return this.#certificate.validFrom
  }
  get validTo(): string {
    return this.#certificate.validTo
  }
}

/** Node's lines, the outermost first, as RFC 2253 has them: from the innermost out, and in ASCII. */
function distinguishedName(lines: string | undefined): string {
  const text = parts(lines)
    .map((part) => part.reverse().join('+'))
    .reverse()
    .join(',')
  return inAscii(text, (bytes) => bytes.toUpperCase().replace(/../g, '\\$&'))
}

/** The same as OpenSSL wrote it before: `/C=CH/CN=name`, nothing escaped but what is not in ASCII. */
function oneLine(lines: string | undefined): string {
  const text = parts(lines).map((part) => `/${part.join('+').replace(/\\(.)/g, '$1')}`)
  return inAscii(text.join(''), (bytes) => bytes.toUpperCase().replace(/../g, '\\x$&'))
}

/** Each part of a name, which may be several values in one; a plus sign inside of a value is escaped. */
function parts(lines: string | undefined): string[][] {
  return (lines ?? '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(' + '))
}

function inAscii(text: string, write: (hexadecimal: string) => string): string {
  return text.replace(/[^\x00-\x7f]+/g, (strange) => write(Buffer.from(strange, 'utf8').toString('hex')))
}
