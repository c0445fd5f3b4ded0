import type { Socket } from 'node:net'

/**
 * Closes a connection so that the other side can tell that it was broken off: by a reset, where there is such a thing.
 * Unix sockets know none, and Node refuses to try.
 */
export function reset(socket: Socket): void {
  if (socket.connecting || socket.remoteAddress === undefined || ending(socket)) socket.destroy()
  else socket.resetAndDestroy()
}

/**
 * Whether its FIN is on the way, and all that was to come before has gone. libuv resets nothing in that moment; Node takes
 * the socket for closed all the same, and it would stay open for ever, and keep its thread from ending.
 */
function ending({ writableEnded, writableFinished, writableLength }: Socket): boolean {
  return writableEnded && !writableFinished && writableLength === 0
}
