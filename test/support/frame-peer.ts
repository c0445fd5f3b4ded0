// A peer that speaks HTTP/2 frame by frame, so that it can answer what no library would.

import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type TlsOptions, Server as TlsServer } from 'node:tls'
import { type Frame, Frames, frame, preface, settings } from './http2-frames.ts'

/** What a peer does with a frame that has come. */
export type FrameAnswer = (connection: Frames, frame: Frame) => void

/** Takes connections of HTTP/2, and answers by frames. */
export class FramePeer implements AsyncDisposable {
  readonly port: number
  readonly connections: Frames[] = []
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  /** @param opening what is said as a connection begins */
  constructor(server: Server, answer: FrameAnswer, opening: (connection: Frames) => void) {
    this.#server = server
    // A listening TCP server has an address.
    this.port = (server.address() as AddressInfo).port
    const event = server instanceof TlsServer ? 'secureConnection' : 'connection'
    server.on(event, (socket: Socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => this.#sockets.delete(socket))
      let left = preface.length
      const head = (piece: Buffer) => {
        left -= piece.length
        if (left > 0) return
        socket.off('data', head)
        const connection = new Frames(socket, true, (one) => answer(connection, one))
        this.connections.push(connection)
        opening(connection)
        if (left < 0) socket.emit('data', piece.subarray(left))
      }
      socket.on('data', head)
    })
  }

  get address(): string {
    return `127.0.0.1:${this.port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/**
 * Starts a peer.
 * @param opening default: settings that say nothing
 * @param tls speaks TLS; undefined: it does not
 */
export async function framePeer(
  answer: FrameAnswer,
  opening: (connection: Frames) => void = (connection) =>
    connection.send(frame('settings', 0, 0, settings())),
  tls?: TlsOptions,
): Promise<FramePeer> {
  const server = tls === undefined ? createServer({ noDelay: true }) : createTlsServer(tls)
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return new FramePeer(server, answer, opening)
}
