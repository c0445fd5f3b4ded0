import type { Minute } from './reservoir.ts'
import type { Upstream } from './upstream.ts'

/**
 * A copy of what is known of a track's attempts in the minutes from one on to another, the last included. Empty where
 * the group has no such track, or nothing to compare it with.
 * @param from minutes of the wall clock since 1970
 */
export function sampled({ tracks, zone }: Upstream, track: string, from: number, to: number): Minute[] {
  const reservoir = tracks.get(track)?.reservoir
  const copies: Minute[] = []
  if (reservoir === undefined) return copies
  for (let minute = from; minute <= to; minute++) {
    // One at a time: other threads wait to write.
    zone.enter()
    const [found] = reservoir.minutes(minute, minute)
    const copy = found && { ...found, times: found.times.slice() }
    zone.leave()
    if (copy !== undefined) copies.push(copy)
  }
  return copies
}
