/*
 * One meaning, one colour, on every dashboard: green works, yellow waits, orange has failed lately, red is broken, purple
 * is an error that a peer has answered with, blue is not known yet, grey is nobody's fault.
 */

import { type GrpcStatusName, grpcStatusNames } from '../feedback/grpc-status.ts'
import {
  type AttemptReason,
  attemptReasons,
  type DenialReason,
  denialReasons,
  type ExclusionReason,
  type SignalReason,
  signalReasons,
} from '../feedback/reasons.ts'

/** What a state timeline shows of a peer: the greater the number, the worse. */
export interface PeerState {
  readonly value: number
  readonly text: string
  readonly colour: string
}

const good = 'green'

/** The peer may be picked. */
export const readyState: PeerState = { value: 0, text: 'ready', colour: good }

/** Why it may not. `tried` is a matter of one request and has no series. */
export const peerStates: Readonly<Record<Exclude<ExclusionReason, 'tried'>, PeerState>> = {
  busy: { value: 1, text: 'busy', colour: 'yellow' },
  checking: { value: 2, text: 'checking', colour: 'blue' },
  draining: { value: 3, text: 'draining', colour: 'purple' },
  unavailable: { value: 4, text: 'unavailable', colour: 'orange' },
  unhealthy: { value: 5, text: 'unhealthy', colour: 'red' },
  down: { value: 6, text: 'down', colour: '#808080' },
}

/** How attempts end that did not end plainly well. */
const endingColours: Readonly<Record<AttemptReason, string>> = {
  refused: 'dark-red',
  unreachable: 'semi-dark-red',
  reset: 'red',
  closed: 'light-red',
  dns: '#7a0019',
  tls: '#a3324b',
  timeout_connect: 'dark-orange',
  timeout_send: 'semi-dark-orange',
  timeout_read: 'orange',
  body_timeout: 'light-orange',
  body_cut: 'super-light-red',
  invalid_header: 'dark-yellow',
  header_overflow: 'semi-dark-yellow',
  http_403: 'super-light-purple',
  http_404: 'light-purple',
  http_429: 'light-yellow',
  http_500: 'dark-purple',
  http_502: 'semi-dark-purple',
  http_503: 'purple',
  http_504: '#5b2a86',
  grpc_cancelled: '#c8d3f5',
  grpc_unknown: '#27408b',
  grpc_deadline_exceeded: '#3b6ea5',
  grpc_resource_exhausted: '#1b9e8f',
  grpc_aborted: '#7fa8d9',
  grpc_unimplemented: '#9fb6cd',
  grpc_internal: '#0b3d91',
  grpc_unavailable: '#4169e1',
  client_abort: '#808080',
  dropped: '#989898',
  stale: '#b0b0b0',
}

/** How calls of gRPC end; where there is a reason for it, in its colour. */
const grpcColours: Readonly<Record<GrpcStatusName, string>> = {
  OK: good,
  CANCELLED: endingColours.grpc_cancelled,
  UNKNOWN: endingColours.grpc_unknown,
  INVALID_ARGUMENT: 'dark-yellow',
  DEADLINE_EXCEEDED: endingColours.grpc_deadline_exceeded,
  NOT_FOUND: 'yellow',
  ALREADY_EXISTS: 'light-yellow',
  PERMISSION_DENIED: 'semi-dark-orange',
  RESOURCE_EXHAUSTED: endingColours.grpc_resource_exhausted,
  FAILED_PRECONDITION: 'semi-dark-yellow',
  ABORTED: endingColours.grpc_aborted,
  OUT_OF_RANGE: 'super-light-yellow',
  UNIMPLEMENTED: endingColours.grpc_unimplemented,
  INTERNAL: endingColours.grpc_internal,
  UNAVAILABLE: endingColours.grpc_unavailable,
  DATA_LOSS: 'dark-purple',
  UNAUTHENTICATED: 'light-orange',
}

/** Why there was no attempt, or no further one. */
const denialColours: Readonly<Record<DenialReason, string>> = {
  no_live: 'red',
  overflow: 'dark-orange',
  queue_full: 'orange',
  queue_timeout: 'light-orange',
  budget: 'purple',
  tries: 'yellow',
  deadline: 'dark-yellow',
  not_replayable: 'blue',
  shutdown: '#808080',
}

const ignoredColours: Readonly<Record<SignalReason, string>> = {
  absent: '#b0b0b0',
  malformed: 'red',
  not_a_number: 'dark-red',
  infinite: 'orange',
  negative: 'dark-orange',
  too_long: 'yellow',
  duplicate: 'purple',
  unknown_field: 'blue',
}

/** Colours of series by their name; a name that is no plain word is a regular expression between slashes. */
export type SeriesColours = ReadonlyMap<string, string>

/** `succeeded`, and the reason of every other end, in the order in which they are stacked. */
export const endingSeries: SeriesColours = new Map([
  ['succeeded', good],
  ...attemptReasons.map((reason): [string, string] => [reason, endingColours[reason]]),
])

export const denialSeries: SeriesColours = new Map(
  denialReasons.map((reason) => [reason, denialColours[reason]]),
)

export const ignoredSeries: SeriesColours = new Map(
  signalReasons.map((reason) => [reason, ignoredColours[reason]]),
)

/** By status; 499 is a client that left, `xxx` what is no status. */
export const statusSeries: SeriesColours = new Map([
  ['/^1../', 'light-blue'],
  ['/^2../', good],
  ['/^3../', 'blue'],
  ['/^4../', 'yellow'],
  ['/^499/', '#808080'],
  ['/^(5..|xxx)/', 'red'],
])

/** By status of gRPC. */
export const grpcSeries: SeriesColours = new Map(grpcStatusNames.map((name) => [name, grpcColours[name]]))

/** Tracks: the one that is on trial stands out. */
export const trackSeries: SeriesColours = new Map([
  ['/\\bstable\\b/', 'blue'],
  ['/\\bcanary\\b/', 'orange'],
])
