import type { Call } from '../call.ts'
import { monotonic } from '../clock.ts'
import { attemptList, attemptVariables, ended, span } from './attempts.ts'
import { seconds } from './clock.ts'
import { requestVariables } from './request.ts'

/** Variables of sessions of `stream`: nginx's names and meanings. */

type Read = (call: Call) => string

/** Those that mean the same of a request and of a session. */
const shared = [
  'remote_addr',
  'remote_port',
  'binary_remote_addr',
  'realip_remote_addr',
  'realip_remote_port',
  'server_addr',
  'server_port',
  'proxy_protocol_addr',
  'proxy_protocol_port',
  'proxy_protocol_server_addr',
  'proxy_protocol_server_port',
  'connection',
  'status',
  'bytes_sent',
  'request_id',
  'msec',
  'time_local',
  'time_iso8601',
]
const sharedOfAttempts = [
  'upstream_addr',
  'upstream_connect_time',
  'upstream_bytes_sent',
  'upstream_bytes_received',
  'upstream_reason',
  'upstream_pick',
  'upstream_track',
  'upstream_sticky_status',
  'upstream_probe',
]

export const streamVariables: ReadonlyMap<string, Read> = new Map<string, Read>([
  ...shared.map((name): [string, Read] => [name, requestVariables.get(name)!]),
  ...sharedOfAttempts.map((name): [string, Read] => [name, attemptVariables.get(name)!]),
  ['ssl_preread_server_name', ({ preread }) => preread?.serverName ?? ''],
  ['ssl_preread_protocol', ({ preread }) => preread?.protocol ?? ''],
  ['ssl_preread_alpn_protocols', ({ preread }) => preread?.alpn.join(',') ?? ''],
  ['upstream_probe_response', (call) => call.probeBody],
  ['protocol', (call) => call.protocol],
  ['bytes_received', (call) => `${call.requestLength}`],
  ['session_time', (call) => seconds((call.endedAt || monotonic()) - call.startedAt)],
  ['upstream_first_byte_time', attemptList((attempt) => span(attempt.headerMs))],
  ['upstream_session_time', attemptList(ended)],
])
