import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { ensure } from '../../scripts/ensure.ts'
import { Client } from './client.ts'

await ensure(['curl'])

/** A client that speaks TLS. */
export class SecureClient extends Client {
  readonly secure: TLSSocket

  constructor(secure: TLSSocket) {
    super(secure)
    this.secure = secure
  }
}

/** Opens a connection, whoever answers there. @throws where the handshake fails */
export async function dialTls(port: number, options: ConnectionOptions = {}): Promise<SecureClient> {
  const socket = connectTcp({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true })
  const secure = connect({ socket, rejectUnauthorized: false, ...options })
  await once(secure, 'secureConnect')
  return new SecureClient(secure)
}

/** What curl has to say. */
export interface Curled {
  /** Of the program: 0 is success, 35 a failed handshake, 60 a certificate that does not pass. */
  readonly code: number
  readonly status: number
  readonly body: string
  readonly stderr: string
}

/** Asks by curl, which finds every host at 127.0.0.1. */
export function curl(url: string, ...args: readonly string[]): Promise<Curled> {
  const { hostname, port } = new URL(url)
  const own = [
    '-sS',
    '--max-time',
    '10',
    '--resolve',
    `${hostname}:${port}:127.0.0.1`,
    '-w',
    '\n%{http_code}',
  ]
  return new Promise((resolve) => {
    execFile('curl', [...own, ...args, url], (error, stdout, stderr) => {
      const at = stdout.lastIndexOf('\n')
      const code = error === null ? 0 : Number(error.code)
      resolve({ code, status: Number(stdout.slice(at + 1)), body: stdout.slice(0, at), stderr })
    })
  })
}
