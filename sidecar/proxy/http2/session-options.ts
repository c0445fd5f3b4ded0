import type { ServerSessionOptions } from 'node:http2'
import type { ListenSpec } from '../listen-spec.ts'

/** Most fields of a head, a few more than those that a request may have: what has too many is still answered. */
const mostFields = 1100
/** What a stream may hold at most of its body before somebody takes it: the window that clients begin with, bytes. */
export const windowBytes = 65_535

/** What sessions with clients of an address obey. What is not said here is as Node and nghttp2 have it. */
export function sessionOptions({ maxStreams, maxHead }: ListenSpec): ServerSessionOptions {
  return {
    settings: {
      maxConcurrentStreams: maxStreams,
      initialWindowSize: windowBytes,
      // A head that is a little too large is still answered; what is larger than that is not read.
      maxHeaderListSize: Math.min(2 ** 31 - 1, Math.max(65_536, 2 * maxHead)),
    },
    maxHeaderListPairs: mostFields,
    // Megabytes: what is read ahead for all streams, but never less than Node's own limit.
    maxSessionMemory: Math.max(10, Math.ceil((maxStreams * windowBytes) / 1_000_000)),
    // Streams in order are counted against it: see `Resets`. These are for those that come and go between two looks.
    streamResetBurst: 1000,
    streamResetRate: 200,
    // Peers' fields go on as they came.
    strictSingleValueFields: false,
  }
}
