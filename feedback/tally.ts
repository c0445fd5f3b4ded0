import { Rows } from './rows.ts'

/** What each thread counts of its clients. Those from `open` to `tunnels` go down again. */
const fields = ['accepted', 'dropped', 'open', 'active', 'requests', 'tunnels', 'lost'] as const
const gauges = [2, 3, 4, 5] as const

/** What another thread needs to count along; can be posted to it. */
export interface SharedTally {
  readonly threads: number
  readonly buffer: SharedArrayBuffer
}

/** Numbers of the clients' side, over all listeners, of one thread or of all. */
export interface ClientCounts {
  /** Connections ever accepted. */
  accepted: number
  /** Connections closed as they came, for a limit. */
  dropped: number
  /** Connections now. */
  open: number
  /** Open ones with a request in progress. */
  active: number
  /** Requests in progress, those that have become tunnels included. */
  requests: number
  tunnels: number
  /** Datagrams that were not passed on: too many waited, they were too long, or none were taken any more. */
  lost: number
}

/** The counts of clients of all threads. This thread's are its own to change; the sums are everybody's to read. */
export class Tally {
  readonly #rows: Rows
  readonly own: ClientCounts

  constructor(threads = 1, thread = 0, shared?: SharedTally) {
    const rows = new Rows(fields.length, threads, thread, shared?.buffer)
    this.#rows = rows
    const own = {}
    for (const [field, name] of fields.entries()) {
      Object.defineProperty(own, name, {
        enumerable: true,
        get: () => rows.own[field]!,
        set: (value: number) => {
          rows.own[field] = value
        },
      })
    }
    // Each field of the interface was defined by the loop above.
    this.own = own as ClientCounts
  }

  share(): SharedTally {
    return { threads: this.#rows.threads, buffer: this.#rows.buffer }
  }

  /** The numbers of all threads together. */
  all(): ClientCounts {
    const [accepted, dropped, open, active, requests, tunnels, lost] = fields.map((_, field) =>
      this.#rows.sum(field),
    )
    return {
      accepted: accepted!,
      dropped: dropped!,
      open: open!,
      active: active!,
      requests: requests!,
      tunnels: tunnels!,
      lost: lost!,
    }
  }

  /** A thread has died, and its connections with it. */
  clear(thread: number): void {
    this.#rows.clear(thread, gauges)
  }
}
