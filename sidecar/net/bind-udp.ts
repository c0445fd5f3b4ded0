import { createSocket, type Socket, type SocketOptions } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { type ListenAddress, listenError } from './bind.ts'

/** An address that datagrams are received at. */
export interface UdpBind {
  /** Canonical text, as a TCP listener's: `*:53`, `127.0.0.1:53`, `[::1]:53`. */
  readonly key: string
  readonly address: Extract<ListenAddress, { kind: 'tcp' }>
}

/** What waits to be read, bytes; the system may allow less. Datagrams beyond that are lost. */
const receiveBuffer = 4 * 1024 * 1024

/**
 * A socket for datagrams, on no address yet. Addresses are numbers: Node would ask the resolver for them each time that
 * something is sent, and answer later.
 */
export function udpSocket(family: 4 | 6, more: Partial<SocketOptions> = {}): Socket {
  return createSocket({
    type: family === 6 ? 'udp6' : 'udp4',
    lookup: (host, _options, found) => found(null, host, family),
    ...more,
  })
}

/**
 * Receives datagrams there.
 * @param shared whether other threads do so too: the system then gives all datagrams of one client to the same
 * @throws ListenError
 */
export async function bindUdp({ key, address }: UdpBind, shared: boolean): Promise<Socket> {
  const { host = '::', port } = address
  const family = isIPv6(host) ? 6 : 4
  const socket = udpSocket(family, {
    reusePort: shared,
    // Without a host it is every address, as with TCP.
    ipv6Only: family === 6 && address.host !== undefined,
    recvBufferSize: receiveBuffer,
  })
  await new Promise<void>((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      socket.close()
      reject(listenError(key, error))
    }
    socket.once('error', failed)
    // Another thread is none of Node's own cluster: the address is this socket's.
    socket.bind({ address: host, port, exclusive: true }, () => {
      socket.off('error', failed)
      resolve()
    })
  })
  return socket
}

/**
 * Binds for a moment and by itself, which shows what a socket that shares its address would not: that somebody else has
 * it.
 * @returns the address, with the port that was taken where port 0 was asked for
 * @throws ListenError
 */
export async function tryBindUdp(spec: UdpBind): Promise<UdpBind['address']> {
  const socket = await bindUdp(spec, false)
  const { port } = socket.address()
  const closed = new Promise<void>((resolve) => socket.once('close', resolve))
  socket.close()
  await closed
  return { ...spec.address, port }
}
