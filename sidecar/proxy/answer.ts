import { listedGrpc, type Verdict } from '../../feedback/classify.ts'
import { grpcEnding, isGrpcFailure } from '../../feedback/grpc-status.ts'
import { measured } from '../../feedback/observe.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import type { RetryPolicy } from '../../feedback/policy.ts'
import { passedHead } from './answer-headers.ts'
import type { Try } from './attempt.ts'
import type { Exchange } from './exchange.ts'
import type { ForwardEnv, Forwarded } from './forwarded.ts'
import { responseHeaders } from './headers.ts'
import type { ResponseHead } from './http1/head.ts'
import type { PeerGroup } from './pools.ts'
import { relay } from './relay.ts'
import { intercepted } from './respond.ts'
import { finish, keep, settle } from './settle.ts'
import { tunnel } from './upgrade.ts'

/** Passes a peer's answer to the client, or leaves it to `error_page`. */
export async function answer(
  exchange: Exchange,
  group: PeerGroup,
  trial: Try,
  head: ResponseHead,
  verdict: Verdict,
  env: ForwardEnv,
): Promise<Forwarded> {
  const { call, settings } = exchange
  const { attempt } = trial
  settle(trial, verdict, undefined)
  if (intercepted(settings, head.status)) {
    trial.discard()
    keep(group, trial, head.persistent)
    finish(exchange, attempt)
    return { kind: 'intercepted', status: head.status }
  }
  measured(attempt, call, attempt.startedAt + attempt.headerMs!)
  attempt.ending = undefined
  const { status, headers } = passedHead(call, settings, head.status, responseHeaders(head.headers, settings))
  if (status === 101) return join(exchange, trial, head, headers, verdict, env)
  const phrase = status === head.status ? head.reasonPhrase : undefined
  exchange.sendHead(status, phrase, headers, head.framing === 'none' && settings.grpc)
  const end = await relay(exchange, trial, readAhead(exchange, head))
  if (end.kind === 'complete') {
    attempt.trailers = end.trailers
    settle(trial, settings.grpc ? ended(attempt, verdict, settings.retry) : verdict, undefined)
  } else if (end.kind === 'gone') {
    settle(trial, { ...verdict, failed: false, next: false, reason: 'client_abort' }, undefined)
    attempt.ending = 'aborted'
  } else {
    const { failure } = end
    // A body that breaks off is the peer's failure, unless it is the client that broke it off.
    const failed = failure.ending !== 'aborted'
    settle(trial, { ...verdict, failed, next: false, reason: failure.reason }, failure)
  }
  keep(group, trial, head.persistent)
  finish(exchange, attempt)
  return { kind: 'done' }
}

/** How a call of gRPC has ended: what its trailers say comes too late for another peer, and only counts. */
function ended(attempt: Attempt, verdict: Verdict, policy: RetryPolicy): Verdict {
  // Where nothing but a head came, it has been judged by that.
  if (attempt.grpcStatus !== undefined) return verdict
  const status = grpcEnding(attempt.trailers, attempt.peerStatus, attempt.headers)
  if (status === undefined) return verdict
  attempt.grpcStatus = status
  const word = listedGrpc(status, policy)
  return word === undefined ? verdict : { ...verdict, failed: isGrpcFailure(status), reason: word }
}

/** `X-Accel-Buffering` of the peer overrides `proxy_buffering`, and an event stream is never held up. */
function readAhead(exchange: Exchange, head: ResponseHead): number {
  const { settings } = exchange
  let { buffering } = settings
  const { headers } = head
  for (let i = 0; i < headers.length; i += 2) {
    const { length } = headers[i]!
    if (length !== 17 && length !== 12) continue
    const lower = headers[i]!.toLowerCase()
    if (lower === 'x-accel-buffering')
      buffering = headers[i + 1] === 'yes' || (buffering && headers[i + 1] !== 'no')
    else if (lower === 'content-type' && headers[i + 1]!.startsWith('text/event-stream')) buffering = false
  }
  return buffering ? settings.buffers : 0
}

/** Answers 101 and joins both sides. */
async function join(
  exchange: Exchange,
  trial: Try,
  head: ResponseHead,
  headers: string[],
  verdict: Verdict,
  env: ForwardEnv,
): Promise<Forwarded> {
  const { call } = exchange
  const { attempt } = trial
  let text = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n'
  for (let i = 0; i < head.headers.length; i += 2) {
    if (head.headers[i]!.toLowerCase() === 'upgrade') text += `Upgrade: ${head.headers[i + 1]!}\r\n`
  }
  for (let i = 0; i < headers.length; i += 2) text += `${headers[i]!}: ${headers[i + 1]!}\r\n`
  call.sentHeaders = headers
  const cut = await tunnel(exchange, trial, `${text}\r\n`, env)
  settle(trial, cut === undefined ? verdict : { ...verdict, reason: cut.reason }, cut)
  finish(exchange, attempt)
  return { kind: 'done' }
}
