import type { Exchange } from '../exchange.ts'
import { requestTrailers } from '../headers.ts'

/** What follows the body of a request, for a peer that can take it. */
export class RequestTrailers {
  readonly #exchange: Exchange

  constructor(exchange: Exchange) {
    this.#exchange = exchange
  }

  /** Whether there are some, or may come with the rest of the body. */
  get possible(): boolean {
    const { request, settings } = this.#exchange
    if (settings.setBody !== undefined || !settings.passRequestBody || !settings.passRequestHeaders)
      return false
    if (request.complete) return this.fields.length > 0
    return request.head.framing === 'chunked' || request.head.version === '2.0'
  }

  /** Names and values in turn, once the body is complete. */
  get fields(): string[] {
    const { request, call, settings } = this.#exchange
    return request.trailers === undefined ? [] : requestTrailers(call, settings, request.trailers)
  }
}
