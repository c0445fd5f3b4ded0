import { type ProbeStateEvent, probeStateChannel } from '../../feedback/channels.ts'
import type { Line } from './attempt-lines.ts'
import { type ErrorLog, errorLog } from './error-log.ts'
import { escapeText } from './log-format.ts'

/** The line of a change that probes made of a peer, or an agent that they asked. */
export function describeProbe(event: ProbeStateEvent): Line {
  const { upstream, peer, state, probe, by } = event
  const level = state === 'unhealthy' || state === 'down' || state === 'draining' ? 'warn' : 'notice'
  // Whoever writes to Redis may have made the id up.
  const asked = by === undefined ? '' : ` (asked by ${escapeText(by)})`
  return {
    level,
    text: `peer ${peer.name} of upstream "${upstream.name}" is ${state}: ${cause(event, probe)}${asked}`,
  }
}

function cause({ state, streak, outMs, detail }: ProbeStateEvent, probe: string): string {
  const said = detail === '' ? '' : `: ${escapeText(detail)}`
  if (probe === '') {
    return state === 'checking' ? 'it has to pass its probes after the reload' : 'nobody probes it any more'
  }
  const times = `${streak} ${streak === 1 ? 'time' : 'times'}`
  if (state === 'unhealthy') return `probe "${probe}" failed ${times}${said}`
  if (state === 'healthy') return `probe "${probe}" passed ${times}, after ${Math.round(outMs)}ms`
  return `so says the agent of probe "${probe}"${said}`
}

/**
 * Writes a line of every such change.
 * @returns stops that
 */
export function logProbes(log: ErrorLog = errorLog): () => void {
  const hear = (message: unknown) => {
    // The channel is published with this payload alone.
    const line = describeProbe(message as ProbeStateEvent)
    log.log(line.level, line.text)
  }
  probeStateChannel.subscribe(hear)
  return () => {
    probeStateChannel.unsubscribe(hear)
  }
}
