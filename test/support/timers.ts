import { Clock } from './clock.ts'

/** A clock that stands until it is moved, and what is to run at some moment of it. */
export class ManualTimers {
  readonly clock = new Clock()
  readonly now = this.clock.now
  #waiting: { at: number; run: () => void }[] = []

  /** How many are waiting. */
  get count(): number {
    return this.#waiting.length
  }

  readonly after = (ms: number, run: () => void): (() => void) => {
    const one = { at: this.now() + ms, run }
    this.#waiting.push(one)
    return () => {
      this.#waiting = this.#waiting.filter((other) => other !== one)
    }
  }

  /** Moves on, running in order what comes up on the way, and what follows from it. */
  async pass(ms: number): Promise<void> {
    const end = this.now() + ms
    for (;;) {
      await settled()
      const next = this.#waiting.toSorted((a, b) => a.at - b.at)[0]
      if (next === undefined || next.at > end) break
      this.#waiting = this.#waiting.filter((other) => other !== next)
      this.clock.move(Math.max(0, next.at - this.now()))
      next.run()
    }
    this.clock.move(end - this.now())
    await settled()
  }

  /** Moves on at once, as when the process was stopped: what has come up meanwhile comes late. */
  async jump(ms: number): Promise<void> {
    this.clock.move(ms)
    await this.pass(0)
  }
}

/** Lets promises that can settle do so. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
