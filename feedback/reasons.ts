/**
 * The closed list of words for everything that is not plain success. Logs, metrics, the admin API, variables
 * and docs use these words and no others.
 */

/** Why an attempt did not end plainly well. */
export const attemptReasons = [
  'refused',
  'unreachable',
  'reset',
  'closed',
  'timeout_connect',
  'timeout_send',
  'timeout_read',
  'stale',
  'invalid_header',
  'header_overflow',
  'http_403',
  'http_404',
  'http_429',
  'http_500',
  'http_502',
  'http_503',
  'http_504',
  'grpc_cancelled',
  'grpc_unknown',
  'grpc_deadline_exceeded',
  'grpc_resource_exhausted',
  'grpc_aborted',
  'grpc_unimplemented',
  'grpc_internal',
  'grpc_unavailable',
  'body_cut',
  'body_timeout',
  'client_abort',
  'dns',
  'tls',
  'dropped',
] as const

/** Why there was no attempt, or no further one. */
export const denialReasons = [
  'budget',
  'not_replayable',
  'tries',
  'deadline',
  'overflow',
  'queue_full',
  'queue_timeout',
  'no_live',
  'shutdown',
] as const

/** Why a value that a peer reported was not taken, or that there was none. */
export const signalReasons = [
  'absent',
  'malformed',
  'not_a_number',
  'infinite',
  'negative',
  'too_long',
  'duplicate',
  'unknown_field',
] as const

/** Why a peer gets no share of the requests now. */
export const exclusionReasons = [
  'down',
  'draining',
  'unavailable',
  'unhealthy',
  'checking',
  'busy',
  'tried',
] as const

export type AttemptReason = (typeof attemptReasons)[number]
export type DenialReason = (typeof denialReasons)[number]
export type SignalReason = (typeof signalReasons)[number]
export type ExclusionReason = (typeof exclusionReasons)[number]
