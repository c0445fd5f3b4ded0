/** What has come of the exchanges with Redis, of all groups together. */
export class Tally {
  /** Exchanges that succeeded and that did not, ever. */
  exchanges = 0
  failures = 0
  /** Milliseconds that the last exchange took; undefined before the first. */
  roundTripMs: number | undefined
  /** What went wrong with the last exchange, for people; undefined: nothing. */
  fault: string | undefined
  /** When anything was heard last, monotonic milliseconds; undefined: never. */
  heardAt: number | undefined

  /** An exchange has succeeded. Monotonic milliseconds. */
  answered(startedAt: number, endedAt: number): void {
    this.exchanges += 1
    this.roundTripMs = endedAt - startedAt
    this.fault = undefined
    this.heardAt = endedAt
  }

  /** An exchange has not. */
  failed(error: unknown): void {
    this.failures += 1
    this.fault = error instanceof Error ? error.message : String(error)
  }
}
