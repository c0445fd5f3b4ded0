import type { Cohort } from './cohort.ts'
import type { Learning, Upstream } from './upstream.ts'

/*
 * What the averages of a group are of: a reload may ask for another kind of time, or another reported value, and
 * they lie in the same columns. Averages of one thing say nothing of another.
 */

/** A number for what is learnt, 1 or more (FNV-1a). */
export function signalOf(what: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < what.length; i++) hash = Math.imul(hash ^ what.charCodeAt(i), 0x01000193)
  return hash >>> 0 || 1
}

/**
 * What a group learns from now on. Where that is something else than before, what was learnt is forgotten.
 * @param cohort the peers that are asked about; what is usual among them is to be found out anew
 */
export function adoptSignal({ zone }: Upstream, cohort: Cohort, { signal = 0 }: Learning): void {
  zone.enter()
  const before = zone.get('signal')
  if (before !== 0 && before !== signal) {
    zone.peers.avg.fill(0)
    zone.peers.reportAt.fill(0)
  }
  zone.set('signal', signal)
  cohort.medianAt = 0
  zone.leave()
}

/** Whether what an attempt teaches is still what the group keeps: a reload may have passed since it began. */
export function isCurrent({ zone, learning }: Upstream): boolean {
  const kept = zone.get('signal')
  return kept === 0 || learning?.signal === undefined || learning.signal === kept
}
