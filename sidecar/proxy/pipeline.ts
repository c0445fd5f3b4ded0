import type { ClientConnection } from './exchange.ts'

/** How many requests may wait on a connection before no more are read from it. */
const mostWaiting = 16

/**
 * Serves the requests of a client that does not wait for answers one after another: none goes to a peer while
 * an answer before it may still close the connection. What comes after such an answer is not served.
 */
export function inTurn({ socket, active, waiting }: ClientConnection, serve: () => void): void {
  if (socket.writableEnded) return
  if (active === 0) {
    serve()
    return
  }
  waiting.push(serve)
  if (waiting.length >= mostWaiting) socket.pause()
}

/** A request has had its turn: the next one begins, where the connection goes on. */
export function turnOver({ socket, waiting }: ClientConnection): void {
  if (socket.destroyed || socket.writableEnded) {
    waiting.length = 0
    return
  }
  const serve = waiting.shift()
  if (serve && waiting.length === mostWaiting - 1) socket.resume()
  serve?.()
}
