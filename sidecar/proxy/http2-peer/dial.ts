import { connect, type Socket } from 'node:net'
import type { Address } from '../../../feedback/peer.ts'
import type { ConnectionTls } from '../http1/connection.ts'
import { breach } from './reset.ts'
import { PeerSession, type SessionHolder } from './session.ts'

/** Who waits for a session. */
export interface Waiter {
  /** Called once, unless it has left first. */
  done(result: PeerSession | NodeJS.ErrnoException): void
}

/** Where to, and how. */
export interface DialTarget {
  readonly address: Address
  /** The peer's address in text. */
  readonly key: string
  /** Speaks TLS; undefined: nobody does. */
  readonly tls: ConnectionTls | undefined
  readonly lane: string
}

/**
 * A session in the making, and who waits for it. It is there once the peer has said how many streams it takes: a stream
 * that is begun before that may be one too many, and a peer that never says it does not speak HTTP/2.
 */
export class Dial {
  readonly waiters = new Set<Waiter>()
  readonly #done: (dial: Dial, result: PeerSession | NodeJS.ErrnoException) => void
  #socket: Socket
  #session: PeerSession | undefined = undefined
  #over = false

  /**
   * @param keeper of the session
   * @param done called once, unless it is given up first; with a session that is to be kept
   */
  constructor(
    target: DialTarget,
    keeper: SessionHolder,
    done: (dial: Dial, result: PeerSession | NodeJS.ErrnoException) => void,
  ) {
    this.#done = done
    const { address, tls } = target
    const socket =
      address.kind === 'unix'
        ? connect({ path: address.path })
        : connect({ host: address.host, port: address.port, noDelay: true })
    this.#socket = socket
    const failed = (error: NodeJS.ErrnoException) => {
      // A second error of a socket that is given up must not find nobody to hear it.
      socket.on('error', () => {})
      socket.destroy()
      this.#end(error)
    }
    socket.once('error', failed)
    socket.once('connect', () => {
      socket.removeListener('error', failed)
      if (tls === undefined) {
        this.#begin(socket, target, 'http', keeper)
        return
      }
      // The layer above hears of it.
      socket.on('error', () => {})
      this.#socket = tls.engine.begin(socket, tls.name, (end) => {
        if (end instanceof Error) this.#end(end)
        else if (end.alpnProtocol === 'h2') this.#begin(end, target, 'https', keeper)
        else {
          end.on('error', () => {})
          end.destroy()
          const error = new Error('peer does not choose HTTP/2')
          this.#end(Object.assign(error, { code: 'ERR_TLS_ALPN' }))
        }
      })
    })
  }

  /** Nobody waits any more. */
  cancel(): void {
    if (this.#over) return
    this.#over = true
    if (this.#session !== undefined) {
      this.#session.destroy()
      return
    }
    this.#socket.on('error', () => {})
    this.#socket.destroy()
  }

  #begin(socket: Socket, { key, lane }: DialTarget, scheme: string, keeper: SessionHolder): void {
    if (this.#over) {
      socket.destroy()
      return
    }
    this.#session = new PeerSession(socket, key, lane, scheme, {
      ready: (session) => {
        if (!session.barren) {
          this.#end(session)
          return
        }
        session.destroy()
        this.#end(lostError('peer takes no streams'))
      },
      freed: (session) => keeper.freed(session),
      closed: (session) => {
        // Before it was there at all, whoever waits hears why.
        this.#end(
          breach(session.failed) ??
            session.failed ??
            lostError('peer closed the connection before its SETTINGS'),
        )
        keeper.closed(session)
      },
    })
  }

  #end(result: PeerSession | NodeJS.ErrnoException): void {
    if (this.#over) return
    this.#over = true
    this.#done(this, result)
  }
}

/** There is no session, or none any more. */
export function lostError(text: string): NodeJS.ErrnoException {
  return Object.assign(new Error(text), { code: 'ECONNRESET' })
}
