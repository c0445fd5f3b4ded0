import type { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { RequestBody } from './body.ts'
import { statusPhrase } from './builtin-pages.ts'
import type { Carrier, IncomingRequest, OutgoingResponse } from './client-side.ts'
import type { Settings } from './route.ts'

/** A request and its response in progress, and whether the client is still there. */
export class Exchange {
  readonly call: Call
  readonly request: IncomingRequest
  readonly response: OutgoingResponse
  readonly connection: Carrier
  /** Those of the location in charge now. */
  settings: Settings
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
  readonly #done: (exchange: Exchange) => void

  /**
   * @param settings what holds until a location is known
   * @param done called once, when the response has ended and the request's work too
   */
  constructor(
    call: Call,
    request: IncomingRequest,
    response: OutgoingResponse,
    connection: Carrier,
    settings: Settings,
    done: (exchange: Exchange) => void,
  ) {
    this.call = call
    this.request = request
    this.response = response
    this.connection = connection
    this.settings = settings
    this.#done = done
  }

  /** Whether the client asks to switch protocols. */
  get upgrade(): boolean {
    return this.request.head.upgrade
  }

  /** The response is over. */
  over(): void {
    if (!this.response.finished) this.leave()
    this.#end(this.response.bytes)
  }

  /** The client is gone, or as good as that. */
  leave(): void {
    if (this.gone || this.#finished) return
    this.gone = true
    const { call } = this
    if (this.response.headersSent) call.left = !this.#cut
    // A request that gets no answer (`return 444`) has not left by itself.
    else if (call.status !== 444) call.status = 499
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
    if (this.#finished) this.#done(this)
  }

  /**
   * A tunnel that had taken the socket over has ended: the response does not tell.
   * @param bytes written to the client
   */
  tunnelEnded(bytes: number): void {
    this.#end(this.response.bytes + bytes)
  }

  /**
   * Makes the head of the response, with the framing that the client's protocol wants. It goes out with the first of
   * the body, or by `response.flush`.
   * @param headers names and values in turn
   * @param alone whether it is known that nothing follows it
   */
  sendHead(status: number, reasonPhrase: string | undefined, headers: string[], alone = false): void {
    const { call, response, request } = this
    const unread = this.body ? !this.body.ended : !request.complete && request.head.expectsContinue
    // What the client still sends is not waited for, so the connection cannot carry another request.
    if (unread) this.close = true
    if (this.close) response.last = true
    call.status = status
    call.sentHeaders = headers
    response.writeHead(status, reasonPhrase || (statusPhrase(status) ?? ''), headers, alone)
  }

  /** Cuts the connection so that the client can tell that the response is not whole. */
  cut(): void {
    this.#cut = true
    // What came before the fault is the client's, also where both came at once.
    if (this.response.headersSent) this.response.release()
    this.connection.breakOff()
  }

  #end(bytesSent: number): void {
    if (this.#finished) return
    this.#finished = true
    const { call } = this
    call.endedAt = monotonic()
    call.completed = !this.gone
    call.bytesSent = bytesSent
    if (this.#handled) this.#done(this)
  }
}
