/** From a moment on a peer's workers work at a rate: 1 is a second's work in a second, 0 a standstill. */
export interface Step {
  /** Milliseconds. */
  readonly from: number
  readonly rate: number
}

/**
 * How fast a peer works over the whole of a simulation. It is known beforehand, so the end of a piece of work can be told
 * when it begins, whatever happens in between.
 */
export class Timeline {
  readonly steps: readonly Step[]
  /** The step of the latest question: questions go forward in time. */
  #at = 0

  /** @param steps in order of time, the first at 0 or before; the last one's rate above 0 */
  constructor(steps: readonly Step[]) {
    const last = steps.at(-1)
    if (last === undefined || last.rate <= 0 || steps[0]!.from > 0) throw new Error('a timeline never ends')
    this.steps = steps
  }

  /** @param now not before the moment of any earlier question */
  rate(now: number): number {
    return this.#step(now).rate
  }

  /** When a piece of work is done that begins now, for one worker. */
  finish(now: number, work: number): number {
    let { rate } = this.#step(now)
    let from = now
    let left = work
    for (let i = this.#at + 1; i < this.steps.length; i++) {
      const step = this.steps[i]!
      const done = (step.from - from) * rate
      if (done >= left) break
      left -= done
      from = step.from
      rate = step.rate
    }
    return from + left / rate
  }

  #step(now: number): Step {
    while (this.#at + 1 < this.steps.length && this.steps[this.#at + 1]!.from <= now) this.#at += 1
    return this.steps[this.#at]!
  }
}
