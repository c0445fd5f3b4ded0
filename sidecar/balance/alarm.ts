import { monotonic } from '../../feedback/clock.ts'
import type { Zone } from '../../feedback/zone.ts'
import type { QueueAlarm } from './queue.ts'

/** Calls when a moment has come, and when the bell of a zone rings, in whichever thread it was rung. */
export class Alarm implements QueueAlarm {
  readonly #call: () => void
  #timer: NodeJS.Timeout | undefined = undefined
  #at = Number.POSITIVE_INFINITY
  #listening = false

  constructor(call: () => void) {
    this.#call = call
  }

  set(at: number): void {
    if (at === this.#at) return
    this.#at = at
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (at === Number.POSITIVE_INFINITY) return
    // Whole milliseconds, and rather too late: what is too early is to be looked at again.
    const wait = Math.max(1, Math.ceil(at - monotonic()))
    this.#timer = setTimeout(() => {
      this.#at = Number.POSITIVE_INFINITY
      this.#call()
    }, wait)
  }

  listen(zone: Zone): void {
    if (this.#listening) return
    this.#listening = true
    // One that has moved rings at its new place.
    zone.enter()
    zone.leave()
    const { bell } = zone
    let ring = bell.rung(bell.rings)
    while (ring === undefined) ring = bell.rung(bell.rings)
    void ring.then(() => {
      this.#listening = false
      this.#call()
    })
  }
}
