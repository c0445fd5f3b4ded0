/** What a line tells of: ten seconds as a rule. Memory in bytes, the least seen in the window. */
export interface Window {
  /** Since the start of the load. */
  readonly seconds: number
  /** Requests judged in the window. */
  readonly requests: number
  /** What clients saw that no peer caused, and everything else that must not be. */
  readonly errors: number
  /** Failures that clients saw and a peer caused. */
  readonly byPeers: number
  readonly heap: number
  readonly external: number
  readonly resident: number
  readonly descriptors: number
  readonly handles: number
  readonly inFlight: number
  /** 99th percentile of the event loop's delay, milliseconds. */
  readonly delayMs: number
}

export const windowTitle =
  '    time  requests  errors  by peers      heap  external  resident   fds  handles  in flight  delay p99'

export function windowLine(window: Window): string {
  const mib = (bytes: number) => (Number.isFinite(bytes) ? `${(bytes / 2 ** 20).toFixed(1)}M` : '-')
  return [
    `${window.seconds.toFixed(0)} s`.padStart(8),
    String(window.requests).padStart(10),
    String(window.errors).padStart(8),
    String(window.byPeers).padStart(10),
    mib(window.heap).padStart(10),
    mib(window.external).padStart(10),
    mib(window.resident).padStart(10),
    String(window.descriptors).padStart(6),
    String(window.handles).padStart(9),
    String(window.inFlight).padStart(11),
    `${window.delayMs.toFixed(1)} ms`.padStart(11),
  ].join('')
}
