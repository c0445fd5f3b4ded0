import { monotonic } from '../../feedback/clock.ts'
import { type Done, KeptClient } from './tail-client.ts'
import type { Sender } from './tail-driver.ts'
import { IdealQueue } from './tail-ideal.ts'
import { type Plan, workers } from './tail-plan.ts'

/** Connections that a method may need while requests pile up at a peer that stands still. */
const maxConnections = 4096

/** To one port, the sidecar's. */
export class SidecarSender implements Sender {
  readonly #client: KeptClient

  constructor(port: number) {
    this.#client = new KeptClient(port, maxConnections)
    this.#client.open(64)
  }

  send(_request: number, work: number, done: Done): void {
    this.#client.get(path(work), done)
  }

  close(): void {
    this.#client.close()
  }
}

/** Straight to the peers, in the order and to the places of the best possible queue. */
export class IdealSender implements Sender {
  readonly #clients: readonly KeptClient[]
  readonly #queue: IdealQueue
  readonly #startAt: number
  readonly #waiting = new Map<number, { readonly work: number; readonly done: Done }>()

  /** @param startAt when the measured part begins, by `monotonic` */
  constructor(ports: readonly number[], plan: Plan, startAt: number) {
    this.#clients = ports.map((port) => new KeptClient(port, workers))
    for (const client of this.#clients) client.open(workers)
    this.#queue = new IdealQueue(plan)
    this.#startAt = startAt
  }

  send(request: number, work: number, done: Done): void {
    this.#waiting.set(request, { work, done })
    this.#queue.arrive(request)
    this.#move()
  }

  /** Peers that come back are seen with the next arrival or answer, which is soon enough. */
  #move(): void {
    for (;;) {
      const next = this.#queue.next(monotonic() - this.#startAt)
      if (next === undefined) return
      const { request, peer } = next
      const { work, done } = this.#waiting.get(request)!
      this.#waiting.delete(request)
      this.#clients[peer]!.get(path(work), (status) => {
        this.#queue.freed(peer)
        this.#move()
        done(status)
      })
    }
  }

  close(): void {
    for (const client of this.#clients) client.close()
  }
}

function path(work: number): string {
  return `/${work.toFixed(3)}`
}
