import type { Call } from '../call.ts'
import type { Attempt } from '../outcome.ts'
import { seconds } from './clock.ts'

/**
 * Variables that tell of the attempts at peers. Lists have one item an attempt: `, ` stands between the attempts of
 * one run, ` : ` where an internal redirect began another, `-` for what is not known. Empty when no peer was asked.
 */

type Read = (call: Call) => string

/** Joins one item an attempt. */
export function attemptList(item: (attempt: Attempt, call: Call) => string): Read {
  return (call) => {
    const { attempts, runs } = call
    if (attempts.length === 0) return ''
    let text = item(attempts[0]!, call)
    for (let i = 1; i < attempts.length; i++) {
      text += (runs.includes(i) ? ' : ' : ', ') + item(attempts[i]!, call)
    }
    return text
  }
}

/** A time in seconds; `-` for one that is not known. */
export const span = (ms: number | undefined): string => (ms === undefined ? '-' : seconds(ms))

/** Time to the end of an attempt. Where nobody was eligible there was none, and nginx has zero. */
export const ended = ({ responseMs, ending }: Attempt): string => span(ending === 'no_live' ? 0 : responseMs)

/** The word of why an attempt did not end well; of an entry that says that nobody was eligible, why not. */
function reason(attempt: Attempt, call: Call): string {
  if (attempt.reason !== undefined) return attempt.reason
  if (attempt.ending !== 'no_live') return '-'
  return (attempt === call.attempts.at(-1) ? call.denial : undefined) ?? 'no_live'
}

const stickiness = attemptList((attempt) => attempt.sticky || '-')

export const attemptVariables: ReadonlyMap<string, Read> = new Map<string, Read>([
  ['upstream_addr', attemptList((attempt) => attempt.address)],
  ['upstream_status', attemptList((attempt) => (attempt.status === undefined ? '-' : `${attempt.status}`))],
  ['upstream_response_time', attemptList(ended)],
  ['upstream_connect_time', attemptList((attempt) => span(attempt.connectMs))],
  ['upstream_header_time', attemptList((attempt) => span(attempt.headerMs))],
  ['upstream_response_length', attemptList((attempt) => `${attempt.bodyLength}`)],
  ['upstream_bytes_received', attemptList((attempt) => `${attempt.bytesReceived}`)],
  ['upstream_bytes_sent', attemptList((attempt) => `${attempt.bytesSent}`)],
  ['upstream_reason', attemptList(reason)],
  ['upstream_pick', attemptList((attempt) => attempt.pick || '-')],
  [
    'upstream_sticky_status',
    (call) => (call.attempts.some((attempt) => attempt.sticky !== '') ? stickiness(call) : ''),
  ],
  ['upstream_track', (call) => call.attempts.at(-1)?.peer?.options.track ?? ''],
  ['upstream_queue_time', (call) => (call.queueMs === undefined ? '' : seconds(call.queueMs))],
  ['upstream_probe', (call) => call.probe],
  ['upstream_probe_body', (call) => call.probeBody],
])
