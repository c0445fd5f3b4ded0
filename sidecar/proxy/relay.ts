import type { Try, TryFailure } from './attempt.ts'
import type { Exchange } from './exchange.ts'
import { responseTrailers, wantsTrailers } from './headers.ts'

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
    response.on('drain', () => {
      timer.stop()
      trial.resume()
    })
    let passed = false
    trial.pipe({
      data(chunk) {
        if (exchange.gone) return true
        passed = true
        call.bodyBytesSent += chunk.length
        if (response.write(chunk)) return true
        if (response.writableLength < readAhead) return true
        timer.start()
        return false
      },
      end(trailers) {
        if (!exchange.gone) {
          if (trailers && wantsTrailers(call)) response.addTrailers(responseTrailers(trailers, settings))
          response.end()
          // The peer is done; the client may still be reading, and must go on doing so.
          if (!response.writableFinished) timer.start()
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
    if (!passed && !over) response.flushHeaders()
  })
}

/** Gives up on a client that takes nothing for too long (`send_timeout`). */
class StallTimer {
  #exchange: Exchange
  #timeout: number
  #timer: NodeJS.Timeout | undefined = undefined
  #left = 0

  constructor(exchange: Exchange, timeout: number) {
    this.#exchange = exchange
    this.#timeout = timeout
    exchange.response.once('close', () => this.stop())
  }

  start(): void {
    if (this.#timer) return
    this.#left = this.#exchange.response.writableLength
    this.#timer = setTimeout(() => this.#tick(), this.#timeout)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #tick(): void {
    this.#timer = undefined
    const { response, connection } = this.#exchange
    if (response.writableFinished || response.destroyed) return
    if (response.writableLength < this.#left) this.start()
    else connection.socket.destroy()
  }
}
