import type { SessionHost } from './host.ts'

/** What UDP sessions need of whoever serves them. */
export interface UdpHost extends Pick<SessionHost, 'counts' | 'complain' | 'note' | 'expect'> {
  /** How long sessions have whose peer is gone, milliseconds. */
  readonly graceMs: number
  /** A datagram was not passed on: too many wait, it is too long, or it came when no more are taken. */
  lost(): void
}
