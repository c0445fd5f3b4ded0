// Fields that answers have for clients, whoever has made them.

import type { Call } from '../../feedback/call.ts'
import type { Settings } from './route.ts'
import { fitForLine } from './uri.ts'

/** Status and fields for a client, made of what a peer answered. */
export interface PassedHead {
  readonly status: number
  /** Names and values in turn. */
  readonly headers: string[]
}

/**
 * Adds to a peer's answer what the location says: `proxy_redirect`, `add_header`, and the status of an error page.
 * @param headers those fields of the peer that are passed on; taken over and changed
 */
export function passedHead(call: Call, settings: Settings, status: number, headers: string[]): PassedHead {
  const { redirect } = settings
  if (redirect) {
    for (let i = 0; i < headers.length; i += 2) {
      const lower = headers[i]!.toLowerCase()
      if (lower === 'location') headers[i + 1] = fitForLine(redirect(call, lower, headers[i + 1]!))
      else if (lower === 'refresh') headers[i + 1] = fitForField(redirect(call, lower, headers[i + 1]!))
    }
  }
  // Switching protocols is an answer to the peer's own.
  const final = status === 101 ? status : call.statusOverride || status
  return { status: final, headers: withOwnHeaders(call, settings, final, headers) }
}

/**
 * The fields of an answer with those that every answer has and those that the location adds.
 * @param headers taken over and changed
 */
export function withOwnHeaders(call: Call, settings: Settings, status: number, headers: string[]): string[] {
  call.status = status
  const own: string[] = []
  if (!has(headers, 'server')) own.push('Server', settings.serverText)
  if (!has(headers, 'date')) own.push('Date', httpDate())
  const added = addedHeaders(call, settings, status)
  for (let i = 0; i < added.length; i += 2) {
    // nginx sets these two, where it adds to all others.
    const lower = added[i]!.toLowerCase()
    if (lower === 'etag' || lower === 'last-modified') remove(headers, lower)
  }
  const { stickyCookie } = call
  if (stickyCookie !== '') added.push('Set-Cookie', fitForField(stickyCookie))
  return [...own, ...headers, ...added]
}

const addedAnyway = new Set([200, 201, 204, 206, 301, 302, 303, 304, 307, 308])
/** Fields that the framing hangs on: added ones would contradict it. */
const framing = new Set(['content-length', 'transfer-encoding', 'connection'])

/**
 * The fields that `add_header` and `explain_header` add, names and values in turn. One whose value comes out empty
 * is left out.
 */
export function addedHeaders(call: Call, settings: Settings, status: number): string[] {
  const out: string[] = []
  for (const { name, lower, value, always } of settings.addHeaders) {
    if (!always && !addedAnyway.has(status)) continue
    if (framing.has(lower)) continue
    const text = value(call)
    if (text !== '') out.push(name, fitForField(text))
  }
  if (settings.explainHeader !== undefined && call.attempts.length > 0) {
    out.push(settings.explainHeader, fitForField(explained(call)))
  }
  return out
}

/** How long the request waited in the queue, and each attempt: where it went, what came of it, why, and how its peer was picked. */
function explained(call: Call): string {
  const parts = call.attempts.map((attempt) => {
    const { address, status, peerStatus, reason, pick } = attempt
    const outcome = [status ?? peerStatus ?? '-', reason].filter((word) => word !== undefined).join(' ')
    return pick === '' ? `${address} ${outcome}` : `${address} ${outcome} (${pick})`
  })
  if (call.queueMs !== undefined) parts.unshift(`queued ${call.queueMs.toFixed(0)} ms`)
  if (call.denial !== undefined) parts.push(call.denial)
  return parts.join(', ')
}

/** RFC 9110 section 5.5: line breaks and other controls in a value are refused or replaced by spaces. */
function fitForField(text: string): string {
  return text.replace(/[^\t\x20-\x7e\x80-\xff]/g, ' ')
}

function has(headers: readonly string[], name: string): boolean {
  for (let i = 0; i < headers.length; i += 2)
    if (headers[i]!.length === name.length && headers[i]!.toLowerCase() === name) return true
  return false
}

function remove(headers: string[], name: string): void {
  for (let i = headers.length - 2; i >= 0; i -= 2) {
    if (headers[i]!.toLowerCase() === name) headers.splice(i, 2)
  }
}

let dateSecond = 0
let dateText = ''

/** The date for `Date`, made once a second. */
function httpDate(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== dateSecond) {
    dateSecond = second
    dateText = new Date(second * 1000).toUTCString()
  }
  return dateText
}
