import type { SessionHost } from './host.ts'
import type { UdpSession } from './udp-session.ts'

/** What UDP sessions need of whoever serves them. */
export interface UdpHost extends Pick<SessionHost, 'counts' | 'complain' | 'note' | 'expect'> {
  /** How long sessions have whose peer is gone, milliseconds. */
  readonly graceMs: number
  /** A datagram was not passed on: too many wait, it is too long, or it came when no more are taken. */
  lost(): void
}

/** Where a client's datagrams come from. */
export interface UdpClient {
  readonly address: string
  readonly port: number
}

/** The listener that a session belongs to. */
export interface UdpSide extends UdpHost {
  /** Sends to the client. */
  reply(client: UdpClient, datagram: Uint8Array): void
  /** The client's next datagram is not this session's any more. */
  unbind(session: UdpSession): void
  /** It is over and recorded. */
  gone(session: UdpSession): void
}
