import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { RequestBody } from './body.ts'
import { statusPhrase } from './builtin-pages.ts'
import type { Settings } from './route.ts'

/** What is kept of a client's connection between its requests. */
export interface ClientConnection {
  readonly socket: Socket
  readonly serial: number
  requests: number
  /** `socket.bytesWritten` when the last response had ended: what comes after belongs to the next one. */
  written: number
  /** Exchanges in progress on it: 0 or 1, since those of a client that pipelines are served in turn. */
  active: number
  /** The one in progress. Not kept in a map by socket: each time a map has moved, what it held then outlives its time. */
  current: Exchange | undefined
  /** Requests that have come and wait for their turn. */
  readonly waiting: (() => void)[]
}

/** The socket of a request that asks to switch protocols, with what the client has sent of the new one. */
export interface Upgrade {
  readonly socket: Socket
  readonly head: Buffer
}

/** A request and its response in progress, and whether the client is still there. */
export class Exchange {
  readonly call: Call
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly connection: ClientConnection
  /** Those of the location in charge now. */
  settings: Settings
  /** Undefined when the request does not ask to switch protocols. */
  readonly upgrade: Upgrade | undefined
  /** The client waits for a 100 before it sends the body. */
  readonly expectsContinue: boolean
  /** Its 100 has been sent, or is due. */
  invited = false
  /** Undefined when the request has no body. */
  body: RequestBody | undefined = undefined
  /** The response is the connection's last: the proxy drains, or what follows on it could not be trusted. */
  close = false
  /** The client went away before the response was complete. */
  gone = false
  #leaving = new Set<() => void>()
  #finished = false
  #handled = false
  /** Whether it is this side that breaks the response off. */
  #cut = false
  /** Whether the response announced its length. */
  #counted = false
  #done: (exchange: Exchange) => void

  /** @param done called once, when the response has ended and the request's work too */
  constructor(
    parts: {
      call: Call
      request: IncomingMessage
      response: ServerResponse
      connection: ClientConnection
      settings: Settings
      upgrade: Upgrade | undefined
      expectsContinue: boolean
    },
    done: (exchange: Exchange) => void,
  ) {
    this.call = parts.call
    this.request = parts.request
    this.response = parts.response
    this.connection = parts.connection
    this.settings = parts.settings
    this.upgrade = parts.upgrade
    this.expectsContinue = parts.expectsContinue
    this.#done = done
    this.response.on('close', () => {
      if (!this.response.writableFinished) this.leave()
      this.#end()
    })
    // Errors of a client's connection end in `close`; nobody else needs to hear of them.
    this.response.on('error', () => {})
  }

  /** The client is gone, or as good as that. */
  leave(): void {
    if (this.gone || this.#finished) return
    this.gone = true
    const { call } = this
    if (this.response.headersSent) call.left = !this.#cut
    else call.status = 499
    const leaving = [...this.#leaving]
    this.#leaving.clear()
    for (const listener of leaving) listener()
  }

  /**
   * Calls when the client goes away; at once if it has.
   * @returns takes the listener back
   */
  onLeave(listener: () => void): () => void {
    if (this.gone) {
      listener()
      return () => {}
    }
    this.#leaving.add(listener)
    return () => this.#leaving.delete(listener)
  }

  /** The work on the request is over: no attempt runs and nothing more will be written. */
  handled(): void {
    this.#handled = true
    if (this.#finished) this.#report()
  }

  /** A tunnel has taken the socket over: the response object no longer tells when it ends, `tunnelEnded` does. */
  tunnelEnded(): void {
    this.#end()
  }

  /**
   * Sends the head. Date is added, and the framing that the client's protocol wants.
   * @param headers names and values in turn
   */
  sendHead(status: number, reasonPhrase: string | undefined, headers: string[]): void {
    const { call, response } = this
    const unread = this.body ? !this.body.ended : !this.request.complete && this.expectsContinue
    if (unread && !this.upgrade) {
      // What the client still sends is not waited for, so the connection cannot carry another request.
      this.close = true
      lingerOnClose(this.connection.socket, () => this.body?.drain())
    }
    if (this.close) response.shouldKeepAlive = false
    call.status = status
    call.sentHeaders = headers
    this.#counted = headers.some((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-length')
    const phrase = reasonPhrase || statusPhrase(status)
    if (phrase !== undefined) response.writeHead(status, phrase, headers)
    else response.writeHead(status, headers)
  }

  /** Cuts the connection so that the client can tell that the response is not whole. */
  cut(): void {
    const { socket } = this.connection
    this.#cut = true
    // A body that ends with the connection looks whole after an orderly close: only a reset tells.
    if (this.response.headersSent && !this.response.chunkedEncoding && !this.#counted) {
      socket.resetAndDestroy()
    } else {
      socket.destroy()
    }
  }

  #end(): void {
    if (this.#finished) return
    this.#finished = true
    const { call, connection } = this
    call.endedAt = monotonic()
    call.completed = !this.gone
    call.bytesSent = connection.socket.bytesWritten - connection.written
    connection.written = connection.socket.bytesWritten
    if (this.#handled) this.#report()
  }

  #report(): void {
    const done = this.#done
    this.#done = () => {}
    done(this)
  }
}

/** How long a client may go on sending after its answer, milliseconds. */
const lingering = 5000

/**
 * Makes the end of the response half-close the socket instead of closing it: closing with unread bytes of the
 * request in the kernel would reset the connection, and the client could lose the answer.
 * @param drop reads and drops what the client still sends
 */
function lingerOnClose(socket: Socket, drop: () => void): void {
  socket.destroySoon = () => {
    socket.end()
    drop()
    const timer = setTimeout(() => socket.destroy(), lingering)
    socket.once('close', () => clearTimeout(timer))
  }
}
