import type { Socket } from 'node:net'
import { after } from 'node:test'
import type { TLSSocket, TlsOptions } from 'node:tls'
import type { Issued } from './authority.ts'
import { type Backend, backend, type Exchange, type Script } from './backend.ts'

/** A peer that speaks TLS, stopped at the end of the test that has begun it, or of its file. */
export async function securePeer(tls: TlsOptions, script: Script): Promise<Backend> {
  const one = await backend(script, { tls })
  after(() => one.stop())
  return one
}

/** What shows a certificate. */
export function shown({ cert, key }: Issued): TlsOptions {
  return { cert, key }
}

/** What such a peer knows of its client. */
export function seen({ socket }: Exchange): TLSSocket {
  // It speaks TLS.
  return socket as TLSSocket
}

/** The connection below TLS. */
export function belowOf({ socket }: Exchange): Socket {
  // Node gives it no other name.
  return (socket as Socket & { readonly _parent: Socket })._parent
}
