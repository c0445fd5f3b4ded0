import type { SessionSettings } from './settings.ts'

/**
 * How far a UDP session is: what was sent, what came back, what is owed, and when its time is over. Moments are monotonic
 * milliseconds.
 */
export class UdpCourse {
  readonly #rules: Pick<SessionSettings, 'timeout' | 'requests' | 'responses'>
  #requests = 0
  #responses = 0
  /** When something passed last, either way. */
  #lastAt: number
  /** When the last answer came; 0: there was none. */
  answeredAt = 0
  /** Since when the peer owes an answer; undefined: it owes none that is known of. */
  #owedAt: number | undefined

  constructor(rules: Pick<SessionSettings, 'timeout' | 'requests' | 'responses'>, now: number) {
    this.#rules = rules
    this.#lastAt = now
  }

  /** The client has sent a datagram. */
  asked(now: number): void {
    const { responses } = this.#rules
    this.#lastAt = now
    this.#requests += 1
    if (responses !== undefined && responses > 0) this.#owedAt ??= now
  }

  /** One of its datagrams goes nowhere: nobody owes an answer to it. */
  dropped(): void {
    this.#requests -= 1
    if (this.#responses >= this.#expected) this.#owedAt = undefined
  }

  /** The peer has sent a datagram. */
  answered(now: number): void {
    this.#lastAt = now
    this.answeredAt = now
    this.#responses += 1
    if (this.#owedAt !== undefined) this.#owedAt = this.#responses >= this.#expected ? undefined : now
  }

  /** Answers that are to come to what was sent, where it is known how many. */
  get #expected(): number {
    return (this.#rules.responses ?? 0) * this.#requests
  }

  /** Whether the client's next datagram is another session's. */
  get full(): boolean {
    const { requests } = this.#rules
    return requests > 0 && this.#requests >= requests
  }

  /** Whether the peer owes an answer. */
  get owing(): boolean {
    return this.#owedAt !== undefined
  }

  /** Whether all has passed that was to pass, as nginx has it. */
  get complete(): boolean {
    const { requests, responses } = this.#rules
    if (responses === undefined || (requests > 0 && this.#requests < requests)) return false
    return this.#responses >= this.#expected
  }

  /**
   * When it is over unless something passes before. Where an answer is owed it is that answer which is waited for,
   * however much the client goes on to send.
   */
  get due(): number {
    return (this.#owedAt ?? this.#lastAt) + this.#rules.timeout
  }

  /** So many milliseconds in which nobody could do anything count for nothing. */
  forgive(ms: number): void {
    this.#lastAt += ms
    if (this.#owedAt !== undefined) this.#owedAt += ms
  }

  /** Whether no answer is owed and nothing has passed for so long, milliseconds. */
  quiet(now: number, ms: number): boolean {
    return this.#owedAt === undefined && now - this.#lastAt >= ms
  }

  /** For people: what came of what was to come. */
  toString(): string {
    return `${this.#responses} of ${this.#expected} answers came in time`
  }
}
