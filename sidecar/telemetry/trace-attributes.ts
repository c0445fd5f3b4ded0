import type { Attributes } from '@opentelemetry/api'
import type { Call } from '../../feedback/call.ts'
import { grpcEnding, grpcStatusOf, isGrpcFailure } from '../../feedback/grpc-status.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { SentRequest } from './tracing.ts'

/*
 * What spans say, by OpenTelemetry's semantic conventions for HTTP; what is only ours begins with `evenkeel.`.
 */

/** Methods that the conventions know. `OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS` puts others in their place. */
const knownMethods = 'CONNECT,DELETE,GET,HEAD,OPTIONS,PATCH,POST,PUT,QUERY,TRACE'

/** What a span says of the method: those beside the known ones would make as many kinds of spans as clients like. */
export class Methods {
  readonly #known: ReadonlySet<string>

  /** @param names separated by commas; undefined: those of the conventions */
  constructor(names: string | undefined) {
    this.#known = new Set((names || knownMethods).split(',').map((name) => name.trim()))
  }

  /** What a span's name begins with. */
  word(method: string): string {
    return this.#known.has(method) ? method : 'HTTP'
  }

  attributes(method: string): Attributes {
    if (this.#known.has(method)) return { 'http.request.method': method }
    const other = { 'http.request.method': '_OTHER' }
    return method === '' ? other : { ...other, 'http.request.method_original': method }
  }
}

/** Of the request's own span, as it begins. */
export function requestAttributes(call: Call, methods: Methods): Attributes {
  const { target, remoteAddr, realipRemoteAddr, realipRemotePort } = call
  const question = target.indexOf('?')
  const asked = askedFor(call)
  const attributes = methods.attributes(call.originalMethod ?? call.method)
  attributes['url.scheme'] = asked.scheme
  attributes['url.path'] = question < 0 ? target : target.slice(0, question)
  if (question >= 0) attributes['url.query'] = withoutSecrets(target.slice(question + 1))
  if (asked.host !== '') {
    attributes['server.address'] = asked.host
    attributes['server.port'] = asked.port
  }
  // The conventions know no minor version of it; `http`, the name, goes without saying.
  attributes['network.protocol.version'] = call.httpVersion === '2.0' ? '2' : call.httpVersion
  if (!remoteAddr.startsWith('unix:')) attributes['client.address'] = remoteAddr
  if (realipRemoteAddr.startsWith('unix:')) attributes['network.transport'] = 'unix'
  else {
    attributes['network.peer.address'] = realipRemoteAddr
    attributes['network.peer.port'] = Number(realipRemotePort)
  }
  if (asked.agent !== '') attributes['user_agent.original'] = asked.agent
  return attributes
}

/** Of the same, when it ends. */
export function responseAttributes(call: Call): Attributes {
  const { endStatus: status, location, upstream, denial, queueMs } = call
  const attributes: Attributes = {}
  if (location !== '') attributes['http.route'] = location
  if (status > 0) attributes['http.response.status_code'] = status
  if (upstream !== '') attributes['evenkeel.upstream'] = upstream
  if (denial !== undefined) attributes['evenkeel.denial'] = denial
  if (queueMs !== undefined) attributes['evenkeel.queue_ms'] = queueMs
  const grpcStatus = sentGrpcStatus(call)
  if (grpcStatus !== undefined) attributes['rpc.grpc.status_code'] = grpcStatus
  const error = requestError(call, grpcStatus)
  if (error !== undefined) attributes['error.type'] = error
  return attributes
}

/** What went wrong with a request; undefined where nothing did, or it was the client's doing. */
function requestError(call: Call, grpcStatus: number | undefined): string | undefined {
  const { endStatus } = call
  if (endStatus >= 500) return `${endStatus}`
  if (endStatus === 499) return undefined
  if (call.completed) return endStatus === 200 ? grpcError(grpcStatus) : undefined
  // The client has its status already, and gets no more than a part of the body.
  const last = call.attempts.at(-1)
  return last?.failed && !last.next ? last.reason : undefined
}

/**
 * The status that a call of gRPC ended with for its client: a peer's, or one of our own. Undefined where it is none, and
 * where its answer was not whole.
 */
function sentGrpcStatus({ completed, status, sentHeaders, sentTrailers }: Call): number | undefined {
  if (!completed) return undefined
  return grpcStatusOf(sentTrailers) ?? grpcEnding(sentHeaders, status, sentHeaders)
}

/** Of an attempt's span, as it begins. */
export function attemptAttributes(
  call: Call,
  attempt: Attempt,
  request: SentRequest,
  methods: Methods,
): Attributes {
  const { peer, upstream, address, pick } = attempt
  const attributes = methods.attributes(request.method)
  if (peer !== undefined) {
    const { host, port, authority, transport } = placeOf(peer)
    attributes['server.address'] = host
    if (port !== undefined) attributes['server.port'] = port
    attributes['network.peer.address'] = transport.address
    if (transport.port !== undefined) attributes['network.peer.port'] = transport.port
    const scheme = call.proxySecure ? 'https' : 'http'
    attributes['url.full'] = `${scheme}://${authority ?? call.proxyHost}${withoutSecrets(request.target)}`
    attributes['evenkeel.track'] = peer.options.track
  }
  attributes['network.protocol.version'] = request.http2 ? '2' : '1.1'
  attributes['evenkeel.upstream'] = upstream.name
  attributes['evenkeel.peer'] = address
  if (pick !== '') attributes['evenkeel.pick'] = pick
  const sent = call.attempts.length - 1 - (call.runs.at(-1) ?? 0)
  if (sent > 0) attributes['http.request.resend_count'] = sent
  return attributes
}

/** Of the same, when it ends. */
export function endingAttributes(attempt: Attempt): Attributes {
  const { peerStatus, ending, reason, grpcStatus } = attempt
  const attributes: Attributes = {}
  if (peerStatus !== undefined) attributes['http.response.status_code'] = peerStatus
  if (grpcStatus !== undefined) attributes['rpc.grpc.status_code'] = grpcStatus
  if (ending !== undefined) attributes['evenkeel.ending'] = ending
  if (reason !== undefined) attributes['evenkeel.reason'] = reason
  const error = attemptError(attempt)
  if (error !== undefined) attributes['error.type'] = error
  return attributes
}

/** What went wrong with an attempt; undefined where nothing did, or the client left first. */
export function attemptError({ peerStatus, ending, reason, grpcStatus }: Attempt): string | undefined {
  if (ending === 'aborted') return undefined
  // A status says it by itself, whether or not it counts as a failure.
  if (peerStatus !== undefined && peerStatus >= 400) return `${peerStatus}`
  return reason ?? grpcError(grpcStatus)
}

/** Where the status says that the peer did not do its work. */
function grpcError(status: number | undefined): string | undefined {
  return status !== undefined && isGrpcFailure(status) ? `grpc_${status}` : undefined
}

/** Where a peer is, as its spans say it. */
interface Place {
  readonly host: string
  readonly port: number | undefined
  /** As `url.full` has it; undefined for a peer that has no place in a URL. */
  readonly authority: string | undefined
  readonly transport: { readonly address: string; readonly port: number | undefined }
}

const places = new WeakMap<Peer, Place>()

function placeOf(peer: Peer): Place {
  let place = places.get(peer)
  if (place === undefined) {
    place = findPlace(peer)
    places.set(peer, place)
  }
  return place
}

/** The name that the configuration has for a peer says more than the address that it stands for now. */
function findPlace({ address, server }: Peer): Place {
  if (address.kind === 'unix') {
    const { path } = address
    return {
      host: path,
      port: undefined,
      authority: undefined,
      transport: { address: path, port: undefined },
    }
  }
  const { host: ip, port } = address
  const host = /^([A-Za-z0-9_.-]+?)\.?(?::\d+)?$/.exec(server)?.[1] ?? ip
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`
  return { host, port, authority, transport: { address: ip, port } }
}

const credential =
  /([?&](?:awsaccesskeyid|signature|sig|x-goog-signature|x-amz-signature|x-amz-credential|x-amz-security-token|(?:access_|id_|refresh_)?token|api_?key|client_secret|secret|password|passwd)=)[^&#]*/gi

/** A query without the values of what are credentials by their names: traces go to others. */
function withoutSecrets(text: string): string {
  if (!text.includes('=')) return text
  return text.startsWith('/') ? hide(text) : hide(`?${text}`).slice(1)
}

const hide = (text: string): string => text.replace(credential, '$1REDACTED')

/** What the client asked for before any proxy: what proxies tell of that goes before the request's own fields. */
interface Asked {
  readonly scheme: string
  /** Lower case; empty where it is not known. */
  readonly host: string
  readonly port: number
  readonly agent: string
}

/** All in one pass over the fields. */
function askedFor({ rawHeaders, scheme: own }: Call): Asked {
  let [host, agent, proto, original, forwarded] = ['', '', '', '', '']
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    const value = rawHeaders[i + 1]!
    switch (name.length) {
      case 4:
        if (name === 'host' || name.toLowerCase() === 'host') host = value
        break
      case 9:
        if (name.toLowerCase() === 'forwarded') forwarded = value
        break
      case 10:
        if (name === 'user-agent' || name.toLowerCase() === 'user-agent') agent = value
        break
      case 16:
        if (name.toLowerCase() === 'x-forwarded-host') original = value
        break
      case 17:
        if (name.toLowerCase() === 'x-forwarded-proto') proto = value
    }
  }
  if (forwarded !== '') {
    original = /(?:^|[;,\s])host="?([^",;\s]+)/i.exec(forwarded)?.[1] ?? original
    proto = /(?:^|[;,\s])proto="?([^",;\s]+)/i.exec(forwarded)?.[1] ?? proto
  }
  const scheme = /^https?\b/i.exec(proto)?.[0]?.toLowerCase() ?? own
  const found = (original === '' ? null : authorityForm.exec(original)) ?? authorityForm.exec(host)
  const port = found?.[2] === undefined ? (scheme === 'https' ? 443 : 80) : Number(found[2])
  return { scheme, host: found?.[1]?.toLowerCase() ?? '', port, agent }
}

/** `example.com:8080` or `[::1]`, the first of a list. */
const authorityForm = /^\[?((?<=\[)[0-9A-Fa-f:.]+|[A-Za-z0-9_.-]+)\]?(?::(\d{1,5}))?(?:\s*,|$)/
