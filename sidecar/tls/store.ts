import { createPrivateKey, type KeyObject, randomBytes, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { failureText } from '../telemetry/system-error.ts'

/** What was read for TLS, for other threads: plain data that holds keys. It is shown to nobody. */
export interface SharedTls {
  /** By path, and for keys by path and the file with their pass phrases. */
  readonly texts: ReadonlyMap<string, string>
  /** What tickets of sessions are made with: 48 bytes. */
  readonly ticketKey: Uint8Array
}

/** A file that TLS needs and that is not what it should be. The message is for people. */
export class TlsFileError extends Error {}

/**
 * Certificates and keys of one configuration. Each file is read once, when the configuration is put together for the
 * first time: whoever builds it anew, in other threads too, has the same.
 */
export class TlsStore {
  readonly #texts: Map<string, string>
  readonly #paths = new Set<string>()
  readonly #reads: boolean
  readonly ticketKey: Buffer

  /** @param shared what another thread has read; undefined reads files */
  constructor(shared?: SharedTls) {
    this.#texts = new Map(shared?.texts)
    this.#reads = shared === undefined
    this.ticketKey = Buffer.from(shared?.ticketKey ?? currentTicketKey())
  }

  share(): SharedTls {
    return { texts: this.#texts, ticketKey: this.ticketKey }
  }

  /** Every file that was read, absolute. */
  get paths(): readonly string[] {
    return [...this.#paths]
  }

  /** Certificates in PEM, the first one's issuers after it. @throws TlsFileError */
  certificate(path: string): string {
    return this.#kept(path, () =>
      checkCertificate(this.#read(path, `cannot load certificate "${path}"`), path),
    )
  }

  /**
   * The private key of a certificate in PEM, without a pass phrase.
   * @param passwords the file with pass phrases, one a line
   * @param certificate the certificate's file
   * @throws TlsFileError
   */
  key(path: string, passwords: string | undefined, certificate: string): string {
    return this.#kept(`${path}\0${passwords ?? ''}\0${certificate}`, () => {
      const text = this.#read(path, `cannot load certificate key "${path}"`)
      const phrases = passwords === undefined ? '' : this.#read(passwords, `open() "${passwords}" failed`)
      const key = plainKey(text, phrases.split(/\r?\n/), path)
      if (!new X509Certificate(this.certificate(certificate)).checkPrivateKey(key)) {
        throw new TlsFileError(
          `certificate "${certificate}" and key "${path}" do not belong together: key values mismatch`,
        )
      }
      return key.export({ type: 'pkcs8', format: 'pem' }).toString()
    })
  }

  /** Any other file in PEM. @param what for the message: `cannot load certificate` @throws TlsFileError */
  pem(path: string, what: string): string {
    return this.#kept(path, () => {
      const text = this.#read(path, `${what} "${path}"`)
      if (!text.includes('-----BEGIN ')) throw new TlsFileError(`${what} "${path}": no PEM text in it`)
      return text
    })
  }

  /** A file of `ssl_session_ticket_key`, as the 48 bytes that tickets are made with. @throws TlsFileError */
  tickets(path: string): Buffer {
    const text = this.#kept(`${path}\0tickets`, () => {
      const bytes = this.#readBytes(path, `could not read "${path}"`)
      if (bytes.length !== 48 && bytes.length !== 80) {
        throw new TlsFileError(`"${path}" must be 48 or 80 bytes`)
      }
      // Of the longer form (name, two keys of 32 bytes) as much as fits into the shorter one's places.
      const parts = [bytes.subarray(0, 16), bytes.subarray(16, 32), bytes.subarray(48, 64)]
      return (bytes.length === 48 ? bytes : Buffer.concat(parts)).toString('base64')
    })
    return Buffer.from(text, 'base64')
  }

  #kept(key: string, make: () => string): string {
    const known = this.#texts.get(key)
    if (known !== undefined) return known
    const text = make()
    this.#texts.set(key, text)
    return text
  }

  #read(path: string, what: string): string {
    return this.#readBytes(path, what).toString('latin1')
  }

  #readBytes(path: string, what: string): Buffer {
    // What it lacks here the main thread did not need, or this is another configuration than that one's.
    if (!this.#reads) throw new Error(`"${path}" has not been read`)
    this.#paths.add(path)
    try {
      return readFileSync(path)
    } catch (error) {
      throw new TlsFileError(`${what} (${failureText(error)})`)
    }
  }
}

function checkCertificate(text: string, path: string): string {
  if (!text.includes('-----BEGIN '))
    throw new TlsFileError(`cannot load certificate "${path}": no PEM text in it`)
  try {
    new X509Certificate(text)
  } catch (error) {
    throw new TlsFileError(`cannot load certificate "${path}": ${reasonOf(error)}`)
  }
  return text
}

function plainKey(text: string, phrases: readonly string[], path: string): KeyObject {
  let first: unknown
  for (const passphrase of [undefined, ...phrases]) {
    try {
      return createPrivateKey(passphrase === undefined ? text : { key: text, passphrase })
    } catch (error) {
      first ??= error
    }
  }
  throw new TlsFileError(`cannot load certificate key "${path}": ${reasonOf(first)}`)
}

/** What OpenSSL has against it, without what it says of where in OpenSSL. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // OpenSSL's errors have their reason apart.
  const { reason } = error as Error & { readonly reason?: string }
  return reason ?? error.message
}

/** How long a key makes tickets before a reload brings another one, milliseconds. */
const ticketKeyLife = 12 * 3_600_000

let ticketKey: Buffer | undefined
let madeAt = 0

/** The process's own key: reloads keep it, so that sessions outlive them. */
function currentTicketKey(): Buffer {
  const now = performance.now()
  if (ticketKey === undefined || now - madeAt > ticketKeyLife) {
    ticketKey = randomBytes(48)
    madeAt = now
  }
  return ticketKey
}
