/** How much of what something that still goes on has sent and received is in the counters already, bytes. */
export class Counted {
  sent = 0
  received = 0

  /**
   * What is to be counted beside that. Never less than nothing: a datagram that could not be sent after all has been
   * counted for good, as counters only grow.
   * @param counted undefined: nothing is in the counters yet
   */
  static rest(bytes: number, counted: number | undefined): number {
    return counted === undefined ? bytes : Math.max(0, bytes - counted)
  }
}
