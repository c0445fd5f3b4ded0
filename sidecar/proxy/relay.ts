import { afterReading } from '../net/late.ts'
import type { ResponseSink, Try } from './attempt.ts'
import type { Exchange } from './exchange.ts'
import { responseTrailers, wantsTrailers } from './headers.ts'
import type { TryFailure } from './try-failure.ts'

/** How the passing on of a response ended, on the peer's side of it. */
export type RelayEnd =
  | { readonly kind: 'complete'; readonly trailers: string[] | undefined }
  | { readonly kind: 'cut'; readonly failure: TryFailure }
  /** The client went away first. */
  | { readonly kind: 'gone' }

/**
 * Passes the body of an answer on, whose head has been made, to its last byte. With buffering it reads ahead of a
 * slow client, so that the peer is free early; then both wait for the client.
 * @param readAhead bytes; 0 passes each part at once and waits for the client after each
 */
export function relay(exchange: Exchange, trial: Try, readAhead: number): Promise<RelayEnd> {
  if (exchange.gone && !exchange.settings.ignoreClientAbort) {
    trial.abandon()
    return Promise.resolve({ kind: 'gone' })
  }
  return new Promise((resolve) => new Relay(exchange, trial, readAhead, resolve).begin())
}

// An object and not a handful of functions: a function of its own in a field of each response makes V8 take all of the
// request for alive until its next full collection.
class Relay implements ResponseSink {
  readonly #exchange: Exchange
  readonly #trial: Try
  readonly #readAhead: number
  readonly #resolve: (end: RelayEnd) => void
  readonly #timer: StallTimer
  #over = false
  #stay: () => void = nothing

  constructor(exchange: Exchange, trial: Try, readAhead: number, resolve: (end: RelayEnd) => void) {
    this.#exchange = exchange
    this.#trial = trial
    this.#readAhead = readAhead
    this.#resolve = resolve
    this.#timer = new StallTimer(exchange, exchange.settings.sendTimeout)
  }

  begin(): void {
    const { response } = this.#exchange
    this.#stay = this.#exchange.onLeave(() => this.#left())
    response.writer = this
    // What has come already goes out in one piece, the head with it.
    response.hold()
    this.#trial.pipe(this)
    // The head goes out at once when the body lets itself be waited for.
    response.release()
  }

  // What the peer's side tells.

  data(chunk: Buffer): boolean {
    const { gone, call, response } = this.#exchange
    if (gone) return true
    call.bodyBytesSent += chunk.length
    if (response.write(chunk)) return true
    if (response.backlog < this.#readAhead) return true
    this.#timer.start()
    return false
  }

  end(trailers: string[] | undefined): void {
    const { gone, call, response, settings } = this.#exchange
    if (!gone) {
      const passed = trailers && wantsTrailers(call) ? responseTrailers(trailers, settings) : undefined
      if (passed !== undefined) call.sentTrailers = passed
      response.end(passed)
      // The peer is done; the client may still be reading, and must go on doing so.
      if (!response.closed) this.#timer.start()
    }
    this.#finish({ kind: 'complete', trailers })
  }

  cut(failure: TryFailure): void {
    this.#timer.stop()
    if (!this.#exchange.gone) this.#exchange.cut()
    this.#finish({ kind: 'cut', failure })
  }

  // What the client's side tells.

  drained(): void {
    this.#timer.stop()
    this.#trial.resume()
  }

  #left(): void {
    this.#timer.stop()
    if (this.#exchange.settings.ignoreClientAbort) {
      // What waited for the client has nobody to wait for any more.
      this.#trial.resume()
      return
    }
    this.#trial.abandon()
    this.#finish({ kind: 'gone' })
  }

  #finish(end: RelayEnd): void {
    if (this.#over) return
    this.#over = true
    this.#stay()
    this.#resolve(end)
  }
}

const nothing = () => {}

/** Gives up on a client that takes nothing for too long (`send_timeout`). */
class StallTimer {
  #exchange: Exchange
  #timeout: number
  #timer: NodeJS.Timeout | undefined = undefined
  #unsettle: (() => void) | undefined = undefined
  #left = 0
  #begun = false

  constructor(exchange: Exchange, timeout: number) {
    this.#exchange = exchange
    this.#timeout = timeout
  }

  start(): void {
    if (this.#timer) return
    if (!this.#begun) {
      this.#begun = true
      this.#exchange.response.whenClosed(() => this.stop())
    }
    this.#left = this.#exchange.response.backlog
    this.#timer = setTimeout(() => {
      this.#unsettle = afterReading(() => this.#tick())
    }, this.#timeout)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#unsettle?.()
    this.#unsettle = undefined
  }

  #tick(): void {
    this.#timer = undefined
    const { response, connection } = this.#exchange
    if (response.closed) return
    if (response.backlog < this.#left) this.start()
    else connection.cut()
  }
}
