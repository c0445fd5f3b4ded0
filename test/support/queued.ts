import type { Exchange } from './backend.ts'
import { eventually } from './invariants.ts'
import type { Sidecar } from './sidecar.ts'

/** A peer's script that keeps requests until it is told to answer, each with its own target. */
export class Gate {
  #open = false
  readonly #held: (() => void)[] = []

  readonly script = async (exchange: Exchange): Promise<void> => {
    if (!this.#open) {
      const told = new Promise<void>((resolve) => this.#held.push(resolve))
      await Promise.race([told, exchange.gone])
    }
    await exchange.reply({ body: exchange.target })
  }

  /** Answers those that came first. */
  let(count = 1): void {
    for (const answer of this.#held.splice(0, count)) answer()
  }

  /** Answers all from now on. */
  open(): void {
    this.#open = true
    this.let(this.#held.length)
  }
}

/** What the status tree says of a group's queue. */
export interface QueueStatus {
  readonly queued: number
  readonly waiting: number
  readonly dropped: number
  readonly timedout: number
  readonly overflows: number
}

export function queueStatus(sidecar: Sidecar, group = 'peers'): Promise<QueueStatus> {
  return sidecar.json(`/status/http/upstreams/${group}/queue`)
}

/** Settles once so many requests wait for a peer. */
export function wait(sidecar: Sidecar, count: number, group = 'peers'): Promise<void> {
  return eventually(`${count} wait`, async () => (await queueStatus(sidecar, group)).waiting === count)
}
