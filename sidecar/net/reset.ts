import type { Socket } from 'node:net'

/**
 * Closes a connection so that the other side can tell that it was broken off: by a reset, where there is such a thing.
 * Unix sockets know none, and Node refuses to try.
 */
export function reset(socket: Socket): void {
  if (socket.connecting || socket.remoteAddress === undefined) socket.destroy()
  else socket.resetAndDestroy()
}
