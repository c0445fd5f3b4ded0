import type { ClientHttp2Stream } from 'node:http2'
import type { ExchangeEvents } from '../http1/connection.ts'
import type { HeadContext } from '../http1/head.ts'
import type { RequestTrailers } from './trailers.ts'

/** What a stream tells the exchange that runs on it. */
export interface StreamEvents extends ExchangeEvents {
  /** The peer has not looked at the request, and says so: it can be sent again whatever it asks for. */
  refused(detail: string): void
  /** It could not be sent, and that is not the peer's doing. */
  unsent(detail: string): void
}

/** What follows a head, as Node's options have it. */
export interface Follows {
  readonly endStream: boolean
  /** Whether the stream asks for trailers once the body has been written: it ends with them. */
  readonly waitForTrailers: boolean
}

/** The session that a stream is of. */
export interface StreamHome {
  /** `http` or `https`. */
  readonly scheme: string
  /** Whom requests are for that name nobody: the peer's address. */
  readonly authority: string
  /** Whether its connection is gone. */
  readonly lost: boolean
  /** What it was lost by; undefined where the peer closed it in order. */
  readonly failed: NodeJS.ErrnoException | undefined
  /** Whether its peer was given up for its silence. */
  readonly deaf: boolean
  /** Bytes that have come on its connection. */
  readonly bytesRead: number
  /**
   * @param follows what does: a body or not, and perhaps trailers
   * @throws where the session takes none
   */
  request(fields: string[], follows: Follows): ClientHttp2Stream
  /** Whether the peer has said that it looks at no stream of this number. */
  unseen(id: number | undefined): boolean
  /** Something has come. */
  mark(): void
  /** The peer lets itself be waited for too long: is it still there? */
  doubt(): void
  /** A stream is over. */
  freed(): void
}

/** What is to be known of a request besides what is sent. */
export interface StreamContext extends HeadContext {
  /** Undefined where none follow it. */
  readonly trailers?: RequestTrailers | undefined
}
