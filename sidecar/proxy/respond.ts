import type { Call } from '../../feedback/call.ts'
import { withOwnHeaders } from './answer-headers.ts'
import { builtinPage, statusPhrase } from './builtin-pages.ts'
import { locationUrl } from './redirect.ts'
import type { ErrorPage, Settings } from './route.ts'
import { fitForLine, splitArgs } from './uri.ts'

/** What stands instead of a peer's answer. */
export interface LocalContent {
  /** Body of a `return`, latin1: then `error_page` has no say. Undefined: the page of the status. */
  readonly text?: string | undefined
  /** Media type of `text`; `default_type` where absent. */
  readonly type?: string | undefined
  /** URL of a redirect. */
  readonly location?: string | undefined
  /** Further fields, names and values in turn. */
  readonly headers?: readonly string[] | undefined
}

/** An answer of our own, or the internal redirect that `error_page` makes of it. */
export type LocalAnswer =
  | {
      readonly kind: 'response'
      readonly status: number
      /** Names and values in turn: all but `Connection`. */
      readonly headers: string[]
      /** Undefined where there is none, as for HEAD. */
      readonly body: Buffer | undefined
      /** The connection cannot be used any further: what follows a bad request cannot be trusted. */
      readonly close: boolean
    }
  | { readonly kind: 'redirect'; readonly uri: string; readonly args: string }
  | { readonly kind: 'named'; readonly name: string }

/** URI changes and internal redirects that one request may have. */
export const mostRelocations = 10

/** Statuses after which nginx closes the connection, and 431, the standard's word for its 494. */
const closing = new Set([400, 408, 413, 414, 431, 495, 496, 497, 500, 501])

/** What nginx says more of bad requests whose status is its own. */
const badRequests: ReadonlyMap<number, string> = new Map([
  [494, 'Request Header Or Cookie Too Large'],
  [495, 'The SSL certificate error'],
  [496, 'No required SSL certificate was sent'],
  [497, 'The plain HTTP request was sent to HTTPS port'],
])

/** Whether a failure of this status ends the connection, whatever error page it is answered with. */
export function endsConnection(status: number): boolean {
  return closing.has(status)
}

export const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/**
 * Makes an answer of our own: a page, a text or a redirect. A failure that has an `error_page` becomes a redirect
 * inside, once: a failure of the error page itself gets the built-in page.
 * @param settings of the location in charge
 */
export function localResponse(
  call: Call,
  settings: Settings,
  status: number,
  content: LocalContent = {},
): LocalAnswer {
  if (content.text !== undefined) {
    const type = content.type ?? mediaType(call, settings)
    return response(call, settings, status, Buffer.from(content.text, 'latin1'), type, content)
  }
  const page = errorPage(call, settings, status)
  call.statusOverride = 0
  if (!page) return builtin(call, settings, ownStatus(status), content, badRequests.get(status))
  const to = page.to(call)
  call.statusOverride = page.status ?? ownStatus(status)
  if (to.startsWith('@')) return { kind: 'named', name: to }
  if (to.startsWith('/')) {
    if (call.method !== 'HEAD' && call.method !== 'GET') {
      call.originalMethod ??= call.method
      call.method = 'GET'
    }
    return { kind: 'redirect', ...splitArgs(to) }
  }
  const redirect = redirectStatuses.has(call.statusOverride) ? call.statusOverride : 302
  call.statusOverride = 0
  return builtin(call, settings, redirect, { ...content, location: to })
}

function errorPage(call: Call, settings: Settings, status: number): ErrorPage | undefined {
  if (call.errorPage || settings.errorPages.size === 0 || call.relocations > mostRelocations) return undefined
  call.errorPage = true
  return settings.errorPages.get(status)
}

/** 494 to 497 are nginx's own words for bad requests; below 200 nothing is an answer. */
function ownStatus(status: number): number {
  if (status >= 494 && status <= 497) return 400
  return status < 200 ? 500 : status
}

/** @param more what the page says beside the status */
function builtin(
  call: Call,
  settings: Settings,
  status: number,
  content: LocalContent,
  more?: string,
): LocalAnswer {
  if (status >= 400 && isCall(call)) return callResponse(call, settings, status, content)
  const page = builtinPage(status, settings.serverText, more)
  return response(call, settings, status, page, 'text/html', content)
}

function response(
  call: Call,
  settings: Settings,
  wanted: number,
  body: Buffer | undefined,
  type: string,
  content: LocalContent,
): LocalAnswer {
  const status = call.statusOverride || ownStatus(wanted)
  const headers: string[] = []
  const bodyless = status === 204 || status === 304
  if (!bodyless) {
    if (body !== undefined && type !== '') headers.push('Content-Type', type)
    headers.push('Content-Length', String(body?.length ?? 0))
  }
  const { location } = content
  if (location !== undefined && location !== '') {
    headers.push('Location', fitForLine(locationUrl(call, location, settings.redirectStyle)))
  }
  if (content.headers) headers.push(...content.headers)
  return {
    kind: 'response',
    status,
    headers: withOwnHeaders(call, settings, status, headers),
    body: bodyless || call.method === 'HEAD' ? undefined : body,
    close: endsConnection(wanted) && content.text === undefined,
  }
}

/** Whether it is a call of gRPC, whose client reads no pages. */
function isCall(call: Call): boolean {
  const type = call.header('content-type')
  return type !== undefined && /^application\/grpc(?:$|[;+])/.test(type)
}

/** Statuses of gRPC for those of HTTP, as its clients take them where there is no other; and 413. */
const callStatuses: ReadonlyMap<number, number> = new Map([
  [400, 13],
  [401, 16],
  [403, 7],
  [404, 12],
  [413, 8],
  [429, 14],
  [502, 14],
  [503, 14],
  [504, 14],
])

/**
 * What a call of gRPC gets instead of a page: the status of HTTP as everybody would, for logs and counters to be right,
 * and that of gRPC beside it.
 */
function callResponse(call: Call, settings: Settings, status: number, content: LocalContent): LocalAnswer {
  const headers = [
    'Content-Type',
    'application/grpc',
    'Grpc-Status',
    String(callStatuses.get(status) ?? 2),
    'Grpc-Message',
    statusPhrase(status) ?? '',
    ...(content.headers ?? []),
  ]
  return {
    kind: 'response',
    status,
    headers: withOwnHeaders(call, settings, status, headers),
    body: undefined,
    close: endsConnection(status),
  }
}

/** nginx's types where the configuration has none; all other names have `default_type`. */
function mediaType(call: Call, settings: Settings): string {
  const [, extension = ''] = /\.([^./]+)$/.exec(call.uri) ?? []
  switch (extension.toLowerCase()) {
    case 'html':
      return 'text/html'
    case 'gif':
      return 'image/gif'
    case 'jpg':
      return 'image/jpeg'
    default:
      return settings.defaultType
  }
}

/** Whether an answer of a peer is replaced by an error page. */
export function intercepted(settings: Settings, status: number): boolean {
  return settings.interceptErrors && status >= 300 && settings.errorPages.has(status)
}
