/*
 * What the words mean that the program uses for everything that is not plain success, for people. The lists of the
 * words themselves are closed, in feedback/.
 */

/** Why an attempt did not end plainly well. @type {Readonly<Record<string, string>>} */
export const attemptReasons = {
  refused: 'The peer refused the connection: nothing listens there.',
  unreachable: 'There is no way to the peer: the network says that the host or network cannot be reached.',
  reset:
    'The peer broke the connection off (RST) before a complete header had come; in a session, at any time.',
  closed:
    'The peer closed the connection before a complete header had come; a session broke off in another way than by a reset.',
  timeout_connect: 'The connection was not established within proxy_connect_timeout.',
  timeout_send: 'The peer took nothing of the request for proxy_send_timeout.',
  timeout_read:
    'The peer sent nothing of its header for proxy_read_timeout; of a session, fewer answers than proxy_responses within proxy_timeout.',
  stale:
    'The peer had closed a kept connection just as it was used again. No mark against the peer: the request is sent once more.',
  invalid_header: 'The header of the answer was malformed.',
  header_overflow: 'The header of the answer was larger than proxy_buffer_size.',
  http_403: 'The peer answered 403, which proxy_next_upstream lists as a failure.',
  http_404: 'The peer answered 404, which proxy_next_upstream lists as a failure.',
  http_429: 'The peer answered 429, which proxy_next_upstream lists as a failure.',
  http_500: 'The peer answered 500, which proxy_next_upstream lists as a failure.',
  http_502: 'The peer answered 502, which proxy_next_upstream lists as a failure.',
  http_503: 'The peer answered 503, which proxy_next_upstream lists as a failure.',
  http_504: 'The peer answered 504, which proxy_next_upstream lists as a failure.',
  grpc_cancelled: 'The call ended with CANCELLED, which grpc_next_upstream lists as a failure.',
  grpc_unknown: 'The call ended with UNKNOWN, which grpc_next_upstream lists as a failure.',
  grpc_deadline_exceeded:
    'The call ended with DEADLINE_EXCEEDED, which grpc_next_upstream lists as a failure.',
  grpc_resource_exhausted:
    'The call ended with RESOURCE_EXHAUSTED, which grpc_next_upstream lists as a failure.',
  grpc_aborted: 'The call ended with ABORTED, which grpc_next_upstream lists as a failure.',
  grpc_unimplemented: 'The call ended with UNIMPLEMENTED, which grpc_next_upstream lists as a failure.',
  grpc_internal: 'The call ended with INTERNAL, which grpc_next_upstream lists as a failure.',
  grpc_unavailable: 'The call ended with UNAVAILABLE, which grpc_next_upstream lists as a failure.',
  body_cut: 'The answer broke off after its header had been passed on.',
  body_timeout: 'The peer sent nothing of the body for proxy_read_timeout.',
  client_abort: 'The client went away first. That says nothing of the peer.',
  dns: 'The name of the peer could not be looked up.',
  tls: 'The TLS handshake with the peer failed.',
  dropped: 'The peer left its group, and proxy_connection_drop ends what is under way with it.',
}

/** Reasons that say nothing of a peer. */
export const neutral = new Set(['client_abort', 'stale', 'dropped'])

/** What calls of gRPC end with, each at its number. */
export const grpcStatuses = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
]

/** Those of them that say that the peer did not do its work. */
export const grpcFailures = new Set([2, 4, 8, 13, 14, 15])

/** Why there was no attempt, or no further one. @type {Readonly<Record<string, string>>} */
export const denialReasons = {
  budget: 'The retry budget was spent, so the first failure was passed on.',
  not_replayable: 'The request cannot be sent again: its method may do something twice, or its body is gone.',
  tries: 'All attempts that proxy_next_upstream_tries and the number of peers allow were made.',
  deadline: 'The time of proxy_next_upstream_timeout had passed.',
  overflow: 'All peers that could be picked had max_conns requests in progress.',
  queue_full: 'The queue of the group was full.',
  queue_timeout: 'The request waited in the queue for as long as it may.',
  no_live: 'No peer could be picked.',
  shutdown: 'The program is ending.',
}

/** Why a peer gets no share now. @type {Readonly<Record<string, string>>} */
export const exclusionReasons = {
  down: 'Switched off: by the configuration (down), by its agent, or while the program runs.',
  draining: 'Finishes what it has begun, and gets nothing new but what sticky has bound to it.',
  unavailable: 'Set aside: its failures reached max_fails. After fail_timeout one request tries it again.',
  unhealthy: 'Probes found that it does not work. It comes back once they pass.',
  checking: 'Gets nothing until its first probe has passed (essential).',
  busy: 'Has as many requests in progress as it may (max_conns, or its lease of it).',
  tried: 'This request has tried it already.',
}

/** States of a peer. @type {Readonly<Record<string, string>>} */
export const states = {
  ...exclusionReasons,
  up: 'May be picked.',
  recovering: 'Comes back step by step (slow_start).',
}

/** How attempts end. @type {Readonly<Record<string, string>>} */
export const endings = {
  ok: 'The peer answered to the last byte.',
  error: 'The connection failed before, or broke off within, the answer.',
  timeout: 'Something took too long.',
  invalid_header: 'The header of the answer could not be used.',
  http: 'The peer answered with a status that counts as a failure.',
  aborted: 'The client went away first.',
  stale: 'A kept connection was closed just as it was used again.',
  no_live: 'No peer could be picked, so none was asked.',
}

/** How a choice was made, where it was not by the method alone. @type {Readonly<Record<string, string>>} */
export const picks = {
  explored: 'at random, to see whether what is known of it still holds',
  floor: 'out of the small share that every peer keeps',
  unmeasured: 'while nothing was known of its times',
  backup: 'as a backup, since no primary was ready',
  sticky: 'since the client belongs there',
  single: 'since there is no other',
}

/** Said of a peer beside its state. */
export const stalled =
  'Attempts wait for the header of their answer far longer than is usual here: 10 times its average and more than 1 s on average, or nothing at all has come for 3 s and 5 times its average. Answers that have begun are not counted.'

/** Shapes of the states, so that colour is not needed to tell them apart. @type {Readonly<Record<string, string>>} */
export const stateShapes = {
  up: 'up',
  recovering: 'recovering',
  busy: 'busy',
  unavailable: 'unavailable',
  unhealthy: 'unhealthy',
  checking: 'checking',
  draining: 'draining',
  down: 'down',
}

/** Worst first: what a summary begins with, and what sorting by state means. */
export const stateOrder = [
  'unhealthy',
  'unavailable',
  'down',
  'busy',
  'checking',
  'draining',
  'recovering',
  'up',
]

/**
 * What a word means, whatever list it is from.
 * @param {string} word
 * @returns {string | undefined}
 */
export function meaning(word) {
  if (word === '5xx')
    return 'The peer answered 5xx, and that was passed on: proxy_next_upstream does not list it.'
  if (word === 'grpc')
    return 'The peer ended a call of gRPC with a status that says that it failed, as UNAVAILABLE, and that was passed on: grpc_next_upstream does not list it.'
  for (const list of [attemptReasons, denialReasons, states, endings]) {
    if (Object.hasOwn(list, word)) return list[word]
  }
  return undefined
}
