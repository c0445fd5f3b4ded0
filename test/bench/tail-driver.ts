import { monotonic } from '../../feedback/clock.ts'
import type { Arrivals } from './tail-arrivals.ts'
import type { Done } from './tail-client.ts'

/** Where requests go. */
export interface Sender {
  /** @param work milliseconds at a peer of speed 1 */
  send(request: number, work: number, done: Done): void
}

export interface Measured {
  /** Of every request of the measured part from when it was due to its last byte, milliseconds. */
  readonly times: Float64Array
  /** How many of them got no 200. */
  readonly failed: number
  /** How many of those were still waiting at the end; their times are what they had waited. */
  readonly unanswered: number
  /** How long after they were due they were sent, milliseconds: what this machine adds, not the method. */
  readonly late: Float64Array
}

export interface DriveOptions {
  readonly arrivals: Arrivals
  readonly sender: Sender
  /** When the stream of arrivals begins, by `monotonic`. */
  readonly start: number
  /** From when on requests are measured, milliseconds from the start. */
  readonly from: number
  /** How long to wait for answers after the last request, milliseconds. */
  readonly graceMs: number
}

/** Sends every request when it is due, whether or not those before it were answered. */
export function drive({ arrivals, sender, start, from, graceMs }: DriveOptions): Promise<Measured> {
  const { at, work } = arrivals
  const times = new Float64Array(at.length).fill(Number.NaN)
  const late = new Float64Array(at.length)
  let failed = 0
  let next = 0
  let pending = 0
  return new Promise((resolve) => {
    let grace: NodeJS.Timeout | undefined
    const first = at.findIndex((moment) => moment >= from)

    const end = () => {
      clearTimeout(grace)
      const now = monotonic()
      let unanswered = 0
      for (let i = first; i < at.length; i++) {
        if (!Number.isNaN(times[i]!)) continue
        times[i] = now - start - at[i]!
        unanswered += 1
      }
      const measured = first < 0 ? at.length : first
      resolve({
        times: times.slice(measured),
        failed: failed + unanswered,
        unanswered,
        late: late.slice(measured),
      })
    }

    const send = (request: number, now: number) => {
      late[request] = now - at[request]!
      pending += 1
      sender.send(request, work[request]!, (status) => {
        pending -= 1
        // Answers that come when all was counted change nothing any more.
        times[request] = monotonic() - start - at[request]!
        if (status !== 200 && at[request]! >= from) failed += 1
        if (pending === 0 && next === at.length) end()
      })
    }

    const tick = () => {
      let now = monotonic() - start
      while (next < at.length && at[next]! <= now) {
        const request = next
        next += 1
        send(request, now)
        now = monotonic() - start
      }
      if (next < at.length) setTimeout(tick, at[next]! - now)
      else if (pending > 0) grace = setTimeout(end, graceMs)
    }
    tick()
  })
}
