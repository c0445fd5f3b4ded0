import { monotonic } from '../../feedback/clock.ts'
import { afterReading } from '../net/late.ts'

/** What a try waits for. */
export type Phase = 'connect' | 'send' | 'read'

/** Whose time it is. */
export interface Waiting {
  /** Whether it is somebody else who is waited for: the peer's time does not run. */
  readonly resting: boolean
  /** The time for a phase is over. */
  late(phase: Phase): void
}

/** The time that a peer has: one timer serves a whole try. What is active only moves a mark. */
export class TryTimer {
  phase: Phase = 'connect'
  readonly #waiting: Waiting
  #timer: NodeJS.Timeout | undefined = undefined
  #unsettle: (() => void) | undefined = undefined
  #timeout = 0
  /** Monotonic milliseconds. */
  #active = 0

  constructor(waiting: Waiting) {
    this.#waiting = waiting
  }

  /** Begins a phase. @param timeout milliseconds without a mark */
  arm(phase: Phase, timeout: number): void {
    this.phase = phase
    this.mark()
    if (this.#timer && this.#timeout === timeout) return
    clearTimeout(this.#timer)
    this.#timeout = timeout
    this.#timer = setTimeout(() => this.#tick(), timeout)
  }

  /** Something happened: the time begins anew. @returns when that is, monotonic milliseconds */
  mark(): number {
    this.#active = monotonic()
    return this.#active
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#unsettle?.()
    this.#unsettle = undefined
  }

  /** @param seen whether what has come meanwhile has been looked at */
  #tick(seen = false): void {
    this.#unsettle = undefined
    // Something else is waited for by now, with a timer of its own.
    if (seen && this.#timer) return
    this.#timer = undefined
    const left = this.#waiting.resting ? this.#timeout : this.#timeout - (monotonic() - this.#active)
    if (left > 0.5) this.#timer = setTimeout(() => this.#tick(), Math.ceil(left))
    else if (seen) this.#waiting.late(this.phase)
    else this.#unsettle = afterReading(() => this.#tick(true))
  }
}
