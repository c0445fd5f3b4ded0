import { unlinkSync } from 'node:fs'
import { connect, createServer, type ListenOptions, type Server } from 'node:net'

/** Where to listen. */
export type ListenAddress =
  /** `host` undefined: every address, IPv6 too where there is any. */
  | { readonly kind: 'tcp'; readonly host: string | undefined; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }

/** An address and how to listen on it. */
export interface Bind {
  /** Canonical text: `*:80`, `127.0.0.1:80`, `[::1]:80`, `unix:/path`. Listeners are compared by it. */
  readonly key: string
  readonly address: ListenAddress
  /** Length of the accept queue. */
  readonly backlog: number
}

/** A failure to listen, with the address: `bind() to 127.0.0.1:80 failed (98: Address already in use)`. */
export class ListenError extends Error {}

/**
 * Listens.
 * @param shared whether other threads listen on the same address: the system then spreads connections over them
 * @throws ListenError
 */
export async function bind(server: Server, { key, address, backlog }: Bind, shared: boolean): Promise<void> {
  if (address.kind === 'unix') await removeStaleSocket(address.path)
  const options: ListenOptions =
    address.kind === 'unix'
      ? { path: address.path, backlog }
      : address.host === undefined
        ? { port: address.port, backlog }
        : { host: address.host, port: address.port, backlog, ipv6Only: true }
  if (shared && address.kind === 'tcp') options.reusePort = true
  await new Promise<void>((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => reject(listenError(key, error))
    server.once('error', failed)
    server.listen(options, () => {
      server.off('error', failed)
      resolve()
    })
  })
}

/**
 * Listens for a moment and by itself, which shows what a listener that shares its address would not: that somebody
 * else has it.
 * @returns the address, with the port that was taken where port 0 was asked for
 * @throws ListenError
 */
export async function tryBind(spec: Bind): Promise<ListenAddress> {
  const { address } = spec
  const server = createServer()
  await bind(server, spec, false)
  const taken = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address.kind === 'unix') return address
  return { ...address, port: typeof taken === 'object' && taken !== null ? taken.port : address.port }
}

/** Whether several threads can listen on one address here. */
export async function canShare(): Promise<boolean> {
  const server = createServer()
  try {
    await bind(
      server,
      { key: '127.0.0.1:0', address: { kind: 'tcp', host: '127.0.0.1', port: 0 }, backlog: 1 },
      true,
    )
    return true
  } catch {
    return false
  } finally {
    server.close()
  }
}

const errorTexts: Readonly<Record<string, string>> = {
  EADDRINUSE: '98: Address already in use',
  EACCES: '13: Permission denied',
  EADDRNOTAVAIL: '99: Cannot assign requested address',
  ENOENT: '2: No such file or directory',
}

/** An error of listening, in nginx's words. */
export function listenError(key: string, error: NodeJS.ErrnoException): ListenError {
  return new ListenError(
    `bind() to ${key.replace(/^\*/, '0.0.0.0')} failed (${errorTexts[error.code ?? ''] ?? error.message})`,
  )
}

/** A socket file that nobody listens on any more is left over from a process that was killed. */
async function removeStaleSocket(path: string): Promise<void> {
  const stale = await new Promise<boolean>((resolve) => {
    const socket = connect(path)
    socket.on('connect', () => {
      socket.destroy()
      resolve(false)
    })
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })
  if (stale) unlinkSync(path)
}
