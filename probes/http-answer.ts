import { monotonic } from '../feedback/clock.ts'
import { answer, type Mishap, mishap } from './answer.ts'
import type { Answer } from './probe.ts'

/** Fields that speak of a connection of HTTP/1.1, or of a body that a probe does not have: no question has them. */
export const unsent: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'content-length',
  'upgrade',
  'expect',
])

/** What a peer has answered so far to a question over HTTP, whichever version is spoken. */
export class HttpAnswer {
  /** Resolves with the first end that is said. */
  readonly whole: Promise<Answer>
  #settle: (answer: Answer) => void
  #startedAt: number
  #connectMs: number
  #maxBody: number
  #headerMs: number | undefined = undefined
  #status: number | undefined = undefined
  #headers: readonly string[] = []
  #body = ''

  /**
   * @param startedAt monotonic milliseconds
   * @param connectMs how long it took until there was a connection
   * @param maxBody how much of the body is wanted, bytes
   */
  constructor(startedAt: number, connectMs: number, maxBody: number) {
    this.#startedAt = startedAt
    this.#connectMs = connectMs
    this.#maxBody = maxBody
    const { promise, resolve } = Promise.withResolvers<Answer>()
    this.whole = promise
    this.#settle = resolve
  }

  /** Whether the head has come. */
  get begun(): boolean {
    return this.#status !== undefined
  }

  /** The head has come. @returns whether no more is wanted */
  head(status: number, headers: readonly string[]): boolean {
    this.#headerMs = monotonic() - this.#startedAt
    this.#status = status
    this.#headers = headers
    return this.#maxBody === 0
  }

  /** More of the body has come. @returns whether no more is wanted */
  data(piece: Buffer): boolean {
    this.#body += piece.toString('latin1', 0, this.#maxBody - this.#body.length)
    return this.#body.length === this.#maxBody
  }

  /** The time is over. @param what has not come, where there is no head */
  late(what: string): void {
    if (this.begun) this.end(mishap('timeout', 'body_timeout', 'no end of the body in time'))
    else this.end(mishap('timeout', 'timeout_read', `no ${what} in time`))
  }

  /** No more will come. @param how that is called where there is no head */
  lost(how: Mishap): void {
    this.end(this.begun ? mishap('error', 'body_cut', how.detail) : how)
  }

  end(how: Mishap | Partial<Answer>): void {
    const status = this.#status
    this.#settle(
      answer(this.#startedAt, {
        detail: status === undefined ? '' : `status ${status}`,
        ...how,
        status,
        headers: this.#headers,
        body: this.#body,
        connectMs: this.#connectMs,
        headerMs: this.#headerMs,
      }),
    )
  }
}
