import type { ClientHttp2Stream } from 'node:http2'

/**
 * Tells that an answer is whole. A stream that breaks off ends for its readers as one that is whole does: that it is whole is
 * said while it is open, and what ends it otherwise closes it first.
 */
export function onWhole(stream: ClientHttp2Stream, told: () => void): void {
  const push = stream.push.bind(stream)
  stream.push = (chunk, encoding) => {
    if (chunk === null && !stream.closed && !stream.destroyed) told()
    return push(chunk, encoding)
  }
}
