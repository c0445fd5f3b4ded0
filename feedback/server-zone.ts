import type { Call } from './call.ts'

/** Counters of the client side of one `status_zone`: what its servers or locations were asked and answered. */
export class ServerZone {
  readonly name: string
  /** Requests received, the running ones included. */
  total = 0
  processing = 0
  /** Requests that ended without a response: the client went away, or `return 444`. */
  discarded = 0
  /** Responses by exact status. */
  readonly responses = new Map<number, number>()
  /** Bytes from and to clients, heads included. */
  received = 0
  sent = 0

  constructor(name: string) {
    this.name = name
  }

  begin(): void {
    this.total += 1
    this.processing += 1
  }

  /** Counts a finished request. A call whose head was never sent counts as discarded. */
  end(call: Call): void {
    this.processing -= 1
    this.received += call.requestLength
    this.sent += call.bytesSent
    if (call.bytesSent === 0) this.discarded += 1
    else this.responses.set(call.status, (this.responses.get(call.status) ?? 0) + 1)
  }
}
