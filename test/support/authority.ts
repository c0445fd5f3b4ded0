import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensure } from '../../scripts/ensure.ts'

await ensure(['openssl'])

/** A certificate with its key, and who has signed it. */
export interface Issued {
  readonly name: string
  readonly certFile: string
  readonly keyFile: string
  /** PEM, the certificate alone. */
  readonly cert: string
  readonly key: string
  readonly by: Issued | undefined
}

export interface IssueOptions {
  /** Default: an authority of its own name, which signs itself. */
  readonly by?: Issued
  /** Names of hosts; default: the certificate's own. Addresses as well. */
  readonly hosts?: readonly string[]
  readonly kind?: 'ec' | 'rsa'
  /** How long it is good, days; what is less than none has expired. */
  readonly days?: number
  /** Whether it may sign others. */
  readonly authority?: boolean
  /** Other than `/CN=NAME`. */
  readonly subject?: string
  /** Of the key. */
  readonly passPhrase?: string
}

/** Makes certificates in a folder of its own, which is removed with it. */
export class Issuer implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'evenkeel-tls-'))

  /** An authority that signs itself. */
  root(name = 'root'): Issued {
    return this.issue(name, { authority: true })
  }

  issue(name: string, options: IssueOptions = {}): Issued {
    const { by, hosts = [name], kind = 'ec', days = 2, authority = false, passPhrase } = options
    const [certFile, keyFile, csr, extensions] = ['crt', 'key', 'csr', 'ext'].map((end) =>
      join(this.folder, `${name}.${end}`),
    ) as [string, string, string, string]
    const key =
      kind === 'rsa' ? ['-newkey', 'rsa:2048'] : ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
    const secret = passPhrase === undefined ? ['-nodes'] : ['-passout', `pass:${passPhrase}`]
    const subject = options.subject ?? `/CN=${name}`
    openssl('req', '-new', '-utf8', ...key, ...secret, '-keyout', keyFile, '-out', csr, '-subj', subject)
    const names = hosts.map((host) => `${/^[\d.]+$|:/.test(host) ? 'IP' : 'DNS'}:${host}`).join(',')
    writeFileSync(
      extensions,
      `basicConstraints=critical,CA:${authority ? 'true' : 'false'}\n` +
        (authority ? 'keyUsage=keyCertSign,cRLSign\n' : `subjectAltName=${names}\n`),
    )
    const secretIn = passPhrase === undefined ? [] : ['-passin', `pass:${passPhrase}`]
    const signer = by ? ['-CA', by.certFile, '-CAkey', by.keyFile] : ['-signkey', keyFile, ...secretIn]
    openssl(
      'x509',
      '-req',
      '-in',
      csr,
      ...signer,
      '-days',
      `${days}`,
      '-out',
      certFile,
      '-extfile',
      extensions,
    )
    const [cert, keyText] = [readFileSync(certFile, 'utf8'), readFileSync(keyFile, 'utf8')]
    return { name, certFile, keyFile, cert, key: keyText, by }
  }

  /** The certificate with those who have signed it, but for the last one. @returns its file */
  chain(issued: Issued): string {
    let text = ''
    for (let at: Issued | undefined = issued; at !== undefined && (at === issued || at.by); at = at.by)
      text += at.cert
    return this.write(`${issued.name}-chain.crt`, text)
  }

  /** A list of what an authority takes back. @returns its file */
  revoked(by: Issued, ...revoked: readonly Issued[]): string {
    const config = this.write(
      `${by.name}.cnf`,
      `[ca]\ndefault_ca=d\n[d]\ndatabase=${this.write(`${by.name}.db`, '')}\ndefault_md=sha256\ndefault_crl_days=2\n`,
    )
    const signer = ['-config', config, '-cert', by.certFile, '-keyfile', by.keyFile]
    for (const { certFile } of revoked) openssl('ca', ...signer, '-revoke', certFile)
    const file = join(this.folder, `${by.name}.crl`)
    openssl('ca', ...signer, '-gencrl', '-out', file)
    return file
  }

  /** @returns the file */
  write(name: string, text: string | Buffer): string {
    const file = join(this.folder, name)
    writeFileSync(file, text)
    return file
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

function openssl(...args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' })
}
