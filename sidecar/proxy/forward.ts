import { countRequest } from '../../feedback/budget.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { Exchange } from './exchange.ts'
import { done, type ForwardEnv, type Forwarded } from './forwarded.ts'
import { requestHead } from './headers.ts'
import { lookedUp } from './looked-up.ts'
import { bodyFraming, requestBody } from './request-body.ts'
import type { ProxyPass } from './route.ts'
import { Run } from './run.ts'
import { targetTls } from './target-tls.ts'

/** Passes a request to a group: picks a peer, sends, judges, and tries the next one or passes the answer on. */
export async function forward(exchange: Exchange, pass: ProxyPass, env: ForwardEnv): Promise<Forwarded> {
  const { call, settings } = exchange
  const target = pass.target(call)
  call.proxyHost = target.host
  call.proxyPort = target.port
  call.proxySecure = target.secure ?? false
  call.proxyGrpc = settings.grpc
  let { group, failure } = target
  if (target.pending !== undefined) {
    const found = await lookedUp(exchange, target.pending)
    if (found === undefined) return done
    if ('balancing' in found) group = found
    else failure = found
  }
  if (!group) return { kind: 'refused', status: failure?.status ?? 502, error: failure?.text }
  if (call.attempts.length > 0) call.runs.push(call.attempts.length)
  call.upstream = group.balancing.upstream.name
  call.group = group.balancing.upstream
  countRequest(group.balancing.upstream, monotonic())
  const prepared = await requestBody(exchange)
  if ('refused' in prepared) return { kind: 'refused', status: prepared.refused }
  // After the body, which it may be made of.
  call.proxyTarget = pass.requestTarget(call)
  const head = requestHead(call, settings, {
    method: settings.method?.(call) || call.method,
    target: call.proxyTarget,
    framing: bodyFraming(exchange, prepared.body),
    // HTTP/2 has no way to leave for another protocol.
    upgrade: exchange.upgrade && !settings.http2Peer,
  })
  if (!head) return { kind: 'refused', status: 400 }
  return new Run(exchange, group, head, prepared.body, env, targetTls(call, settings, target)).run()
}
