import { Fifo } from './fifo.ts'
import type { Instances } from './instances.ts'
import { emptyTrace, Machines, type Trace } from './machines.ts'
import type { Stage } from './stage.ts'
import type { Workload } from './workload.ts'

/**
 * One simulation of a method: requests come to sidecars, which pick a peer each by their own knowledge; at the peer
 * they wait for a worker in the order of coming; the answer teaches the sidecar. The way of a request takes the same time
 * for all, so what is under way arrives in the order of setting out.
 */
export function run(stage: Stage, work: Workload, instances: Instances): Trace {
  const { network } = stage.plan
  const trace = emptyTrace(work.count)
  const machines = new Machines(stage, work, trace)
  const queues = stage.speeds.map(() => new Fifo())
  const there = new Fifo()
  const back = new Fifo()
  /** When each answer set out, and what its peer said of itself then. */
  const done = new Float64Array(work.count)
  const said = new Float64Array(work.count)
  let coming = 0
  for (;;) {
    const arrival = coming < work.count ? work.at[coming]! : Number.POSITIVE_INFINITY
    const reach = there.length > 0 ? work.at[there.first()]! + network : Number.POSITIVE_INFINITY
    const answer = back.length > 0 ? done[back.first()]! + network : Number.POSITIVE_INFINITY
    const now = Math.min(arrival, reach, answer, machines.next)
    if (now === Number.POSITIVE_INFINITY) return trace
    instances.share(now)
    if (now === answer) {
      const id = back.shift()
      trace.took[id] = now - work.at[id]!
      instances.answered(id, trace.failed[id] === 1 ? 503 : 200, said[id]!, now)
    } else if (now === machines.next) {
      const id = machines.take()
      const peer = trace.peer[id]!
      const queue = queues[peer]!
      if (queue.length > 0 && machines.free[peer]! > 0) begin(queue.shift(), peer, now)
      done[id] = now
      said[id] = machines.report(peer, queue.length, now)
      back.push(id)
    } else if (now === reach) {
      const id = there.shift()
      const peer = trace.peer[id]!
      if (machines.refuses(id, peer, now)) machines.refuse(id, peer, now)
      else if (machines.free[peer]! > 0) begin(id, peer, now)
      else queues[peer]!.push(id)
    } else {
      const id = coming++
      const peer = instances.pick(id, work.instance[id]!, work.key[id]!, now)
      trace.peer[id] = peer
      // With nobody to ask the sidecar answers by itself.
      if (peer < 0) trace.failed[id] = 1
      else there.push(id)
    }
  }

  function begin(id: number, peer: number, now: number): void {
    trace.waited[id] = now - work.at[id]! - network
    machines.start(id, peer, now)
  }
}
