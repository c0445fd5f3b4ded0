import { usualStyle } from './redirect.ts'
import type { Settings } from './route.ts'

/** Fields of a peer's answer that are not passed on, since the proxy speaks for itself or is meant by them (nginx's list). */
export const hiddenHeaders: readonly string[] = [
  'date',
  'server',
  'x-pad',
  'x-accel-expires',
  'x-accel-redirect',
  'x-accel-limit-rate',
  'x-accel-buffering',
  'x-accel-charset',
]

const kib = 1024

/** What holds where the configuration says nothing: nginx's defaults, and ours where nginx has none. */
export const defaultSettings: Settings = {
  clientMaxBodySize: kib * kib,
  clientBodyTimeout: 60_000,
  sendTimeout: 60_000,
  keepaliveTimeout: 75_000,
  keepaliveRequests: 1000,
  connectTimeout: 60_000,
  peerTls: undefined,
  http2Peer: false,
  grpc: false,
  proxySendTimeout: 60_000,
  readTimeout: 60_000,
  retry: {
    on: new Set(['error', 'timeout']),
    nonIdempotent: false,
    tries: 0,
    timeout: 0,
    // A fifth more load is what a group that is nearly full can still bear; ten a second keep a quiet group retrying.
    budget: { ratio: 0.2, min: 10, window: 10_000 },
    backoff: { base: 25, max: 250 },
  },
  buffering: true,
  // nginx: one memory page, 4k or 8k. A head must fit.
  bufferSize: 8 * kib,
  buffers: 8 * 16 * kib,
  requestBuffering: true,
  replayBuffer: 64 * kib,
  method: undefined,
  setBody: undefined,
  passRequestHeaders: true,
  passRequestBody: true,
  ignoreClientAbort: false,
  dropAfter: undefined,
  interceptErrors: false,
  setHeaders: [],
  setHeaderNames: new Set(),
  closePeer: false,
  hideHeaders: new Set(hiddenHeaders),
  redirect: undefined,
  addHeaders: [],
  errorPages: new Map(),
  accessLogs: [],
  statusZones: [],
  explainHeader: undefined,
  passLoadReport: false,
  defaultType: 'text/plain',
  serverText: 'evenkeel',
  redirectStyle: usualStyle,
  realIp: undefined,
}
