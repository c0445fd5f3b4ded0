import { Socket } from 'node:net'
import type { Address } from '../../feedback/peer.ts'
import { reset } from '../net/reset.ts'

/** Who is told of what happens on a socket. */
export interface SocketOwner {
  connected(socket: Socket): void
  data(socket: Socket, chunk: Buffer): void
  /** The other side has sent its FIN. */
  ended(socket: Socket): void
  /** What was written is with the kernel: more may be. */
  drained(socket: Socket): void
  /** The same after the last byte, and a FIN with it. */
  finished(socket: Socket): void
  failed(socket: Socket, error: NodeJS.ErrnoException): void
  closed(socket: Socket): void
}

const owner = Symbol('owner')

/** A socket with its owner. */
interface Owned extends Socket {
  [owner]: SocketOwner
}

// The same functions for all sockets: thousands of idle sessions are to be cheap.
const listeners = {
  connect(this: Owned) {
    this[owner].connected(this)
  },
  data(this: Owned, chunk: Buffer) {
    this[owner].data(this, chunk)
  },
  end(this: Owned) {
    this[owner].ended(this)
  },
  drain(this: Owned) {
    this[owner].drained(this)
  },
  finish(this: Owned) {
    this[owner].finished(this)
  },
  error(this: Owned, error: NodeJS.ErrnoException) {
    this[owner].failed(this, error)
  },
  close(this: Owned) {
    this[owner].closed(this)
  },
}

/** Has somebody told of a socket from now on, in place of who is told so far. It is read from then on as well. */
export function own(socket: Socket, who: SocketOwner): void {
  // The property is what makes it an owned one.
  const owned = socket as Owned
  const known = owned[owner] !== undefined
  owned[owner] = who
  if (known) return
  if (owned.connecting) owned.on('connect', listeners.connect)
  owned.on('end', listeners.end)
  owned.on('drain', listeners.drain)
  owned.on('finish', listeners.finish)
  owned.on('error', listeners.error)
  owned.on('close', listeners.close)
  owned.on('data', listeners.data)
}

/** Has nobody told of a socket any more that is owned: another layer has it. What it sends is not read here. */
export function disown(socket: Socket): void {
  for (const [event, listener] of Object.entries(listeners)) socket.off(event, listener)
  // Not owned any more; there is no other type for that than the one before.
  delete (socket as { [owner]?: SocketOwner })[owner]
}

/** Has somebody else told of a socket that is owned. */
export function handOver(socket: Socket, who: SocketOwner): void {
  ;(socket as Owned)[owner] = who
}

/**
 * Opens a connection to a peer.
 * @param bufferSize how much is held in each direction before no more is taken, bytes
 */
export function dial(address: Address, bufferSize: number, who: SocketOwner): Socket {
  const options = {
    allowHalfOpen: true,
    readableHighWaterMark: bufferSize,
    writableHighWaterMark: bufferSize,
  }
  // The buffer sizes are options of every stream, of sockets too; only their types do not say so.
  const socket = new Socket(options as ConstructorParameters<typeof Socket>[0])
  // The types know `noDelay` of `net.connect` alone, which hands its options to this very method.
  const where = address.kind === 'unix' ? { path: address.path } : { ...tcp(address), noDelay: true }
  socket.connect(where)
  own(socket, who)
  return socket
}

function tcp({ host, port }: Address & { kind: 'tcp' }): { host: string; port: number } {
  return { host, port }
}

/** Bytes that were handed on to the other side, those that are still held here left out. */
export function written(socket: Socket): number {
  return Math.max(0, socket.bytesWritten - socket.writableLength)
}

/**
 * Breaks a connection off so that the other side can tell: by a reset, where there is such a thing.
 * @param flush whether it gets first what is held for it
 */
export function breakOff(socket: Socket, flush: boolean): void {
  if (socket.destroyed) return
  if (flush && socket.writableLength > 0 && !socket.writableEnded) {
    socket.write('', () => breakOff(socket, false))
    return
  }
  reset(socket)
}
