import { LinkError, refusalOf } from './redis-error.ts'

/** So many may be unanswered at once: far more than there are groups, and little memory. */
const most = 4096

export interface CallLimits {
  /** How long one answer may take, milliseconds. */
  readonly timeout: number
  /** How long nothing at all may be answered while something should be, milliseconds. */
  readonly silence: number
}

interface Call {
  readonly done: Promise<unknown>
  readonly reject: (error: LinkError) => void
}

/** What one connection has been asked and has not answered yet. */
export class Calls {
  readonly #limits: CallLimits
  readonly #now: () => number
  readonly #silent: () => void
  /** Those that somebody still waits for. */
  readonly #waiting = new Set<Call>()
  /** Those that the server still has to answer: given up ones are among them. */
  #unanswered = 0
  /** Since when the server owes an answer, and has given none. */
  #quietSince = 0
  #watch: NodeJS.Timeout | undefined
  #ended: string | undefined

  /** @param silent the server has said nothing for too long */
  constructor(limits: CallLimits, now: () => number, silent: () => void) {
    this.#limits = limits
    this.#now = now
    this.#silent = silent
  }

  /**
   * Sends something, and waits for its answer for as long as is allowed. Rejects with what `send` does, or with a
   * LinkError.
   */
  run(send: () => Promise<unknown>): Promise<unknown> {
    if (this.#ended !== undefined) return Promise.reject(new LinkError(this.#ended))
    if (this.#unanswered >= most) return Promise.reject(new LinkError(`${most} calls are unanswered`))
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const call: Call = { done: promise, reject }
    this.#waiting.add(call)
    const late = () => reject(new LinkError(`no answer within ${this.#limits.timeout} ms`))
    // Where this process itself was held up, the answer may lie in the socket: it is read before the second turn.
    const timer = setTimeout(() => setImmediate(late), this.#limits.timeout)
    timer.unref()
    this.#sent()
    send().then(
      (value) => {
        this.#settled(true)
        resolve(value)
      },
      (error: unknown) => {
        this.#settled(refusalOf(error) !== undefined)
        reject(error)
      },
    )
    const over = () => {
      clearTimeout(timer)
      this.#waiting.delete(call)
    }
    promise.then(over, over)
    return promise
  }

  /** Rejects everything that is waited for, and whatever comes later. */
  end(why: string): void {
    this.#ended ??= why
    clearTimeout(this.#watch)
    this.#watch = undefined
    for (const call of this.#waiting) call.reject(new LinkError(why))
  }

  /** Resolves once nothing of what has been sent so far is waited for. */
  async idle(): Promise<void> {
    await Promise.allSettled(Array.from(this.#waiting, (call) => call.done))
  }

  #sent(): void {
    if (this.#unanswered++ === 0) this.#quietSince = this.#now()
    if (this.#watch === undefined) this.#arm(this.#limits.silence)
  }

  #settled(heard: boolean): void {
    this.#unanswered -= 1
    if (heard) this.#quietSince = this.#now()
  }

  #arm(ms: number): void {
    this.#watch = setTimeout(() => setImmediate(() => this.#look()), ms)
    this.#watch.unref()
  }

  #look(): void {
    this.#watch = undefined
    if (this.#ended !== undefined || this.#unanswered === 0) return
    const left = this.#quietSince + this.#limits.silence - this.#now()
    // A timer may fire a little early.
    if (left > 1) this.#arm(left)
    else this.#silent()
  }
}
