import type { Http2Session, Http2Stream } from 'node:http2'
import type { Socket } from 'node:net'

/*
 * Node ends the process when a session is collected as garbage before a stream of it that still has a part of a header
 * block: trailers that were begun and not ended, or that nghttp2 refused. A peer can have that at will: it takes nothing
 * of what is sent to it, begins trailers, and resets the connection. What was being written holds the stream, the session
 * holds that, and nothing else holds the session, so that the session is the first to go.
 *
 * Two things keep that order from coming about. A session that ends by the close of its socket alone, and not by an error
 * before that, is told first that what it was writing is over: then it holds its streams no more. And a session is held
 * until its streams have been collected.
 */

/** Holds, for each stream that there is, what must be collected after it. */
const after = new FinalizationRegistry<object>(() => {})

/** Where Node keeps what is collected; undefined while no session was seen that has it. */
let handleKey: symbol | undefined

/** The lifetime of a session of HTTP/2, of either side. To be made before the session is, and told of each of its streams. */
export class Http2Lifetime {
  readonly #before: readonly unknown[]
  readonly #socket: Socket

  /** @param socket what the session is to run on */
  constructor(socket: Socket) {
    this.#socket = socket
    this.#before = socket.listeners('error')
  }

  /** The session has been made: errors of its socket no longer end it, their `close` does. */
  begun(): void {
    const socket = this.#socket
    for (const listener of socket.listeners('error')) {
      // What an emitter lists is what was given to it.
      if (!this.#before.includes(listener)) socket.off('error', listener as () => void)
    }
    socket.on('error', ignored)
  }

  /** A stream of it has been made. */
  stream(stream: Http2Stream, session: Http2Session): void {
    const handle = handleOf(session)
    if (handle !== undefined) after.register(stream, handle)
    // Streams that are asked for before the connection stands wait for it as well.
    else if (!session.destroyed) session.once('connect', () => this.stream(stream, session))
  }
}

function ignored(): void {}

function handleOf(session: Http2Session): object | undefined {
  handleKey ??= Object.getOwnPropertySymbols(session).find(({ description }) => description === 'kHandle')
  if (handleKey === undefined) return undefined
  const handle: unknown = Reflect.get(session, handleKey)
  return typeof handle === 'object' && handle !== null ? handle : undefined
}
