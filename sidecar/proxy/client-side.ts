// A request of a client, the response to it and what both go over, whatever the version of HTTP: what the work on a
// request needs of them. Each version has classes of its own.

/** The head of a request, and what it says of the body that follows. */
export interface IncomingHead {
  readonly method: string
  /** Request target as received, latin1. */
  readonly target: string
  readonly version: '2.0' | '1.1' | '1.0'
  /** Names and values in turn, as received (latin1). */
  readonly headers: string[]
  /** Bytes of it. */
  readonly bytes: number
  /** How the body ends; `chunked` for one whose length is not announced. */
  readonly framing: 'none' | 'length' | 'chunked'
  /** Bytes of body announced; 0 unless framing is `length`. */
  readonly bodyLength: number
  /** Whether it asks to switch protocols. Then there is no body. */
  readonly upgrade: boolean
  /** Whether the client waits for a 100 before it sends the body. */
  readonly expectsContinue: boolean
  /** Whether a field's name has other characters than letters, digits and hyphens. */
  readonly odd: boolean
}

/** A request that is not served, and what is known of it. */
export interface Unserved {
  /** 400, 405, 408, 413, 414, 417, 431 or 505. */
  readonly status: number
  readonly method: string
  readonly target: string
  /** What is wrong with it, for the error log: `invalid header name`. */
  readonly why: string
}

/** Who takes the body of a request. */
export interface BodyListener {
  data(chunk: Buffer): void
  end(): void
  /** The client has gone, or what it sent is no body: the rest will not come. */
  aborted(): void
}

/** A request as it comes: its head, and its body to whoever takes it. */
export interface IncomingRequest {
  readonly head: IncomingHead
  /** Whether all of it has been read. */
  readonly complete: boolean
  /** What came after the body, once that is complete: names and values in turn; undefined for nothing. */
  readonly trailers: readonly string[] | undefined
  /** Gives the body to a listener, from `resume` on. */
  take(listener: BodyListener): void
  /** Tells no more of the body until `resume`. */
  pause(): void
  resume(): void
}

/** Who writes the body of a response. */
export interface ResponseWriter {
  /** More can be written, after `write` has said that it should be waited for. */
  drained(): void
}

/** The response to a client's request, framed as its protocol wants it. */
export interface OutgoingResponse {
  /** Whether nothing follows it on the connection, where that carries one request at a time. Set before `writeHead`. */
  last: boolean
  readonly headersSent: boolean
  /** Bytes written, interim responses included. */
  bytes: number
  /** Whether `end` was called: nothing more will be written. */
  readonly ended: boolean
  /** Whether all of it has been handed to the system. */
  readonly finished: boolean
  /** Whether it is over: finished, or cut off. */
  readonly closed: boolean
  /** Who writes the body. */
  writer: ResponseWriter | undefined
  /** Bytes that the system has not taken yet. */
  readonly backlog: number
  /** Calls once, when it is over; at once when it is. */
  whenClosed(listener: () => void): void
  /** Sends an interim response. */
  interim(status: number, phrase: string, headers: readonly string[]): void
  /**
   * Makes the head.
   * @param headers names and values in turn, without those of the connection
   * @param alone whether it is known that nothing follows it
   */
  writeHead(status: number, phrase: string, headers: readonly string[], alone?: boolean): void
  /** From now on what is written is kept together, until `release`, where it is little. */
  hold(): void
  release(): void
  /** @returns false when no more should be written until the writer is told that it has `drained` */
  write(chunk: Buffer): boolean
  /**
   * The response is whole.
   * @param trailers names and values in turn, where the protocol can carry them
   */
  end(trailers?: readonly string[]): void
}

/** What a request and its response go over: a connection of their own, or a part of one. */
export interface Carrier {
  /** Ends it at once, so that the client can tell that a response in progress is not whole. */
  cut(): void
  /** Ends a response that cannot be made whole, so that its client can tell. What went before it still arrives. */
  breakOff(): void
  /** Ends it without an answer. */
  hangUp(): void
}
