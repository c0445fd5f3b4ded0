import type { Call } from '../../feedback/call.ts'
import type { PeerStateEvent } from '../../feedback/channels.ts'
import { peerStateChannel } from '../../feedback/channels.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import { stableTrack } from '../../feedback/track.ts'
import { onAttempt } from './channels.ts'
import { type ErrorLog, errorLog, type Level } from './error-log.ts'
import { logGroups } from './group-lines.ts'
import { escapeText } from './log-format.ts'
import { sessionContext, sessionPhase } from './session-lines.ts'
import { systemError } from './system-error.ts'

/** What the error log says of an attempt. */
export interface Line {
  readonly level: Level
  readonly text: string
}

const connecting = 'while connecting to upstream'
const sending = 'while sending request to upstream'
const readingHead = 'while reading response header from upstream'
const readingBody = 'while reading upstream'
const timedOut = 'upstream timed out (110: Connection timed out)'

/**
 * The line of an attempt that failed, in nginx's words, so that searches and alerts made for nginx find it.
 * @returns undefined for what nginx does not log: answers, whatever their status
 */
export function describeAttempt(call: Call, attempt: Attempt): Line | undefined {
  const what = happening(attempt)
  if (!what) return undefined
  return { level: what.level, text: `*${call.connection} ${what.text}${context(call, attempt)}` }
}

function happening(attempt: Attempt): Line | undefined {
  const error = (text: string): Line => ({ level: 'error', text })
  const detail = escapeText(attempt.detail)
  if (attempt.upstream.kind === 'stream' && attempt.connectMs !== undefined) {
    // What was said of it ends with that: there are no heads to wait for.
    if (attempt.reason === undefined) return undefined
    // Datagrams that were to be answered.
    if (attempt.reason === 'dropped') return dropped(attempt)
    if (attempt.reason === 'timeout_read') return error(`${timedOut}, ${detail} ${sessionPhase(attempt)}`)
    const level = attempt.reason === 'client_abort' ? 'info' : 'error'
    return { level, text: `recv() failed (${errorOf(detail) ?? detail}) ${sessionPhase(attempt)}` }
  }
  if (attempt.ending === 'no_live') {
    return error(`no live upstreams${detail === '' ? '' : `, ${detail}`} ${connecting}`)
  }
  switch (attempt.reason) {
    case 'refused':
      return error(`connect() failed (${systemError('ECONNREFUSED')}) ${connecting}`)
    case 'unreachable':
      return error(`connect() failed (${errorOf(detail) ?? detail}) ${connecting}`)
    case 'reset':
      if (attempt.connectMs === undefined) {
        return error(`connect() failed (${errorOf(detail) ?? detail}) ${connecting}`)
      }
      if (detail.includes('EPIPE')) return error(`writev() failed (${errorOf(detail)}) ${sending}`)
      return error(`recv() failed (${errorOf(detail) ?? detail}) ${readingHead}`)
    case 'closed':
      return error(`upstream prematurely closed connection ${readingHead}`)
    case 'timeout_connect':
      return error(`${timedOut} ${connecting}`)
    case 'timeout_send':
      return error(`${timedOut} ${sending}`)
    case 'timeout_read':
      return error(`${timedOut} ${readingHead}`)
    case 'body_timeout':
      return error(`${timedOut} ${readingBody}`)
    case 'body_cut': {
      const system = errorOf(detail)
      if (system !== undefined) return error(`recv() failed (${system}) ${readingBody}`)
      return error(`upstream prematurely closed connection${explained(detail)} ${readingBody}`)
    }
    case 'invalid_header':
      return error(`upstream sent invalid header${explained(detail)} ${readingHead}`)
    case 'header_overflow':
      return error(`upstream sent too big header ${readingHead}`)
    case 'dns':
      return error(`host not found${explained(detail)} ${connecting}`)
    case 'tls':
      return error(`${detail === '' ? 'SSL_do_handshake() failed' : detail} ${handshaking(attempt)}`)
    case 'stale':
      return { level: 'info', text: `upstream closed keepalive connection ${sending}` }
    case 'client_abort': {
      const phase = attempt.headerMs === undefined ? readingHead : 'while sending to client'
      if (attempt.upstream.kind === 'stream') {
        return { level: 'info', text: `client prematurely closed connection ${connecting}` }
      }
      const text = `client prematurely closed connection, so upstream connection is closed too ${phase}`
      return { level: 'info', text }
    }
    case 'dropped':
      return dropped(attempt)
    default:
      return undefined
  }
}

function dropped({ headerMs, upstream }: Attempt): Line {
  const phase =
    upstream.kind === 'stream' ? 'while proxying' : headerMs === undefined ? readingHead : readingBody
  return { level: 'info', text: `upstream has left its group, its connection is closed ${phase}` }
}

/** A peer may refuse what it was shown when the handshake is over for this side. */
function handshaking({ connectMs }: Attempt): string {
  return connectMs === undefined ? 'while SSL handshaking to upstream' : readingHead
}

/** The system's own error in a message of Node's (`connect EHOSTUNREACH 10.0.0.1:80`), in nginx's words. */
function errorOf(detail: string): string | undefined {
  const code = /\bE[A-Z0-9]{3,}\b/.exec(detail)?.[0]
  return code === undefined ? undefined : systemError(code)
}

function explained(detail: string): string {
  return detail === '' || detail === 'connection closed' ? '' : ` (${detail})`
}

/** Whose request it was. All that clients wrote is escaped. */
function context(call: Call, attempt: Attempt): string {
  if (attempt.upstream.kind === 'stream') {
    return sessionContext(call, attempt) + trackNote(attempt.peer?.options.track ?? call.track)
  }
  const request = `${call.originalMethod ?? call.method} ${call.target} HTTP/${call.httpVersion}`
  let text = `, client: ${escapeText(call.remoteAddr)}, server: ${escapeText(call.serverName)}`
  text += `, request: "${escapeText(request)}", upstream: "${sentTo(call, attempt)}"`
  const host = call.header('host')
  if (host !== undefined) text += `, host: "${escapeText(host)}"`
  const referrer = call.header('referer')
  if (referrer !== undefined) text += `, referrer: "${escapeText(referrer)}"`
  return text + trackNote(attempt.peer?.options.track ?? call.track)
}

/** nginx has the peer alone of calls of gRPC, and the target with others. */
function sentTo({ proxyGrpc, proxySecure, proxyTarget, target }: Call, { address, peer }: Attempt): string {
  const scheme = `${proxyGrpc ? 'grpc' : 'http'}${proxySecure ? 's' : ''}`
  const colon = peer?.address.kind === 'unix' && !proxyGrpc ? ':' : ''
  return `${scheme}://${address}${colon}${proxyGrpc ? '' : escapeText(proxyTarget || target)}`
}

/** Names a track that is not the usual one. */
function trackNote(track: string): string {
  return track === '' || track === stableTrack ? '' : `, track: "${track}"`
}

/** The line of a peer that is set aside, or taken back. */
export function describeState({ upstream, peer, state, fails, downtimeMs, heard }: PeerStateEvent): Line {
  const where = `upstream: "${upstream.name}", peer: "${peer.name}"${trackNote(peer.options.track)}`
  if (state === 'unavailable') {
    if (heard) {
      // Nothing failed here, so nginx's words, which count failures, would mislead.
      const text = `peer ${peer.name} of upstream "${upstream.name}" is unavailable: another instance set it aside`
      return { level: 'warn', text }
    }
    return { level: 'warn', text: `upstream server temporarily disabled, ${where}, fails: ${fails}` }
  }
  return {
    level: 'notice',
    text: `upstream server enabled again, ${where}, downtime: ${Math.round(downtimeMs)}ms`,
  }
}

/**
 * Writes a line of every failed attempt, of every change of a peer's state, and what group-lines.ts has.
 * @returns stops that
 */
export function logAttempts(log: ErrorLog = errorLog): () => void {
  const stop = onAttempt((call, attempt) => {
    // Most attempts end well, and few logs want to hear of the clients that left.
    if (attempt.reason === undefined && attempt.ending !== 'no_live') return
    const line = log.admits('error') ? describeAttempt(call, attempt) : undefined
    if (line) log.log(line.level, line.text)
  })
  const hear = (message: unknown) => {
    // The channel is published with this payload alone.
    const line = describeState(message as PeerStateEvent)
    log.log(line.level, line.text)
  }
  peerStateChannel.subscribe(hear)
  const stopGroups = logGroups(log)
  return () => {
    stop()
    stopGroups()
    peerStateChannel.unsubscribe(hear)
  }
}
