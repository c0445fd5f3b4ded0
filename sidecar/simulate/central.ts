import { Fifo } from './fifo.ts'
import { emptyTrace, Machines, type Trace } from './machines.ts'
import type { Stage } from './stage.ts'
import type { Workload } from './workload.ts'

/**
 * The best there could be: one queue for all, in the order of coming, and whenever a worker is free the first goes to
 * the fastest peer that has one; never to a peer that stands still or fails, and to one that works more slowly than it
 * should only where the others could not do without it. Nobody has to guess.
 */
export function centralQueue(stage: Stage, work: Workload): Trace {
  const { network } = stage.plan
  const trace = emptyTrace(work.count)
  const machines = new Machines(stage, work, trace)
  const queue = new Fifo()
  const turns = turningPoints(stage, machines)
  let coming = 0
  let turn = 0
  for (;;) {
    const arrival = coming < work.count ? work.at[coming]! + network : Number.POSITIVE_INFINITY
    const now = Math.min(
      arrival,
      machines.next,
      turn < turns.length ? turns[turn]! : Number.POSITIVE_INFINITY,
    )
    if (now === Number.POSITIVE_INFINITY) return trace
    if (now === machines.next) {
      const id = machines.take()
      trace.took[id] = now + network - work.at[id]!
    } else if (now === arrival) {
      const id = coming++
      if (work.doomed[id] === 1) machines.refuse(id, stage.counted[0]!, now)
      else queue.push(id)
    } else {
      turn += 1
    }
    while (queue.length > 0) {
      const peer = fastest(stage, machines, now)
      if (peer < 0) break
      const id = queue.shift()
      trace.waited[id] = now - work.at[id]! - network
      machines.start(id, peer, now)
    }
  }
}

/** @returns −1 when no worker is to be had */
function fastest(stage: Stage, { free, timelines }: Machines, now: number): number {
  const dispensable = stage.plan.load < 1 - stage.fairShare(stage.faulty)
  let best = -1
  let most = 0
  for (const peer of stage.counted) {
    if (free[peer] === 0) continue
    const rate = timelines[peer]!.rate(now)
    if (rate <= most || stage.fails(peer, now)) continue
    if (dispensable && rate < stage.speeds[peer]!) continue
    best = peer
    most = rate
  }
  return best
}

/** Moments at which a peer may become of use without anything ending there. */
function turningPoints(stage: Stage, { timelines }: Machines): number[] {
  const moments = timelines.flatMap(({ steps }) => steps.slice(1).map(({ from }) => from))
  if (stage.fault) moments.push(stage.fault.to)
  return moments.sort((a, b) => a - b)
}
