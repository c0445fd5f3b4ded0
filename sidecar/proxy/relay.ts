import type { Try, TryFailure } from './attempt.ts'
import type { Exchange } from './exchange.ts'
import { responseTrailers, wantsTrailers } from './headers.ts'
import { afterReading } from './late.ts'

/** How the passing on of a response ended, on the peer's side of it. */
export type RelayEnd =
  | { readonly kind: 'complete'; readonly trailers: string[] | undefined }
  | { readonly kind: 'cut'; readonly failure: TryFailure }
  /** The client went away first. */
  | { readonly kind: 'gone' }

/**
 * Passes the body of an answer on, whose head has been sent, to its last byte. With buffering it reads ahead of a
 * slow client, so that the peer is free early; then both wait for the client.
 * @param readAhead bytes; 0 passes each part at once and waits for the client after each
 */
export function relay(exchange: Exchange, trial: Try, readAhead: number): Promise<RelayEnd> {
  return new Promise((resolve) => {
    const { response, call, settings } = exchange
    if (exchange.gone && !settings.ignoreClientAbort) {
      trial.abandon()
      resolve({ kind: 'gone' })
      return
    }
    let over = false
    const timer = new StallTimer(exchange, settings.sendTimeout)
    const finish = (end: RelayEnd) => {
      if (over) return
      over = true
      stay()
      resolve(end)
    }
    const stay = exchange.onLeave(() => {
      timer.stop()
      if (settings.ignoreClientAbort) {
        // What waited for the client has nobody to wait for any more.
        trial.resume()
        return
      }
      trial.abandon()
      finish({ kind: 'gone' })
    })
    response.onDrain = () => {
      timer.stop()
      trial.resume()
    }
    // What has come already goes out in one piece, the head with it.
    response.hold()
    trial.pipe({
      data(chunk) {
        if (exchange.gone) return true
        call.bodyBytesSent += chunk.length
        if (response.write(chunk)) return true
        if (response.backlog < readAhead) return true
        timer.start()
        return false
      },
      end(trailers) {
        if (!exchange.gone) {
          const passed = trailers && wantsTrailers(call) ? responseTrailers(trailers, settings) : undefined
          response.end(passed)
          // The peer is done; the client may still be reading, and must go on doing so.
          if (!response.closed) timer.start()
        }
        finish({ kind: 'complete', trailers })
      },
      cut(failure) {
        timer.stop()
        if (!exchange.gone) exchange.cut()
        finish({ kind: 'cut', failure })
      },
    })
    // The head goes out at once when the body lets itself be waited for.
    response.release()
  })
}

/** Gives up on a client that takes nothing for too long (`send_timeout`). */
class StallTimer {
  #exchange: Exchange
  #timeout: number
  #timer: NodeJS.Timeout | undefined = undefined
  #unsettle: (() => void) | undefined = undefined
  #left = 0

  constructor(exchange: Exchange, timeout: number) {
    this.#exchange = exchange
    this.#timeout = timeout
    exchange.response.whenClosed(() => this.stop())
  }

  start(): void {
    if (this.#timer) return
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
