import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensure } from '../../scripts/ensure.ts'

await ensure(['openssl'])

/** PEM texts, and the files they are in. */
export interface Certificate {
  readonly cert: string
  readonly key: string
  readonly certFile: string
  readonly keyFile: string
}

export interface Certificates {
  /** Signs the two others, and is trusted by nobody. */
  readonly ca: Certificate
  /** For 127.0.0.1 and localhost. */
  readonly server: Certificate
  readonly client: Certificate
}

/** Makes a certification authority and what it signs, in a folder that is there. */
export function certificates(folder: string): Certificates {
  const make = (name: string, ...further: readonly string[]): Certificate => {
    const certFile = join(folder, `${name}.crt`)
    const keyFile = join(folder, `${name}.key`)
    const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
    const files = ['-keyout', keyFile, '-out', certFile, '-subj', `/CN=evenkeel test ${name}`]
    execFileSync('openssl', ['req', '-x509', ...kind, ...files, ...further], { stdio: 'pipe' })
    return { certFile, keyFile, cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
  }
  const ca = make('ca')
  const signed = ['-CA', ca.certFile, '-CAkey', ca.keyFile, '-addext', 'basicConstraints=critical,CA:false']
  return {
    ca,
    server: make('server', ...signed, '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'),
    client: make('client', ...signed),
  }
}
