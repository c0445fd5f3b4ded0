import type { Call } from '../feedback/call.ts'
import { type AttemptEvent, classify } from '../feedback/classify.ts'
import { grpcStatusOf } from '../feedback/grpc-status.ts'
import { Attempt } from '../feedback/outcome.ts'
import type { Address, Peer } from '../feedback/peer.ts'
import type { LiveProbe } from './live-probe.ts'
import type { Answer, Orders } from './probe.ts'

/** What a probing needs of whoever runs it. */
export interface Sending {
  /** Monotonic milliseconds. */
  now(): number
  /** Aborted when the time is over, or when nobody wants to know any more. */
  readonly signal: AbortSignal
  /** Whether the last probe of this peer did not pass. */
  readonly failing: boolean
}

/** How a probing ended. */
export interface Probing {
  /** Undefined: it says nothing of the peer, since this machine could not even ask. */
  readonly passed: boolean | undefined
  /** For people: what was seen, or why it did not pass; empty when there is nothing to say. */
  readonly detail: string
  readonly orders: Orders | undefined
  /** What went wrong in this program; undefined where nothing did. */
  readonly fault: string | undefined
  readonly attempt: Attempt
  readonly call: Call
}

/** Asks a peer once, and judges what it answers. Learns nothing and changes no state. */
export async function run(probe: LiveProbe, peer: Peer, sending: Sending): Promise<Probing> {
  const startedAt = sending.now()
  const call = probe.call()
  call.startedAt = startedAt
  const attempt = new Attempt(probe.upstream, peer, startedAt, 'probe')
  const inconclusive = (detail: string, fault?: string): Probing => {
    attempt.responseMs ??= sending.now() - startedAt
    return { passed: undefined, detail, orders: undefined, fault, attempt, call }
  }
  let answer: Answer
  try {
    const question = probe.question(call)
    if (probe.kind.http && question === undefined)
      return inconclusive('a field of the request has a line break')
    const target = { name: peer.name, address: addressOf(peer.address, probe.port) }
    // Whatever the request was made of, its own attempt was not there yet.
    call.attempts.push(attempt)
    const { signal, failing } = sending
    const { test } = probe
    const holds = (seen: Answer) => {
      fill(attempt, call, seen)
      return test === undefined || held(test(call))
    }
    const asking = { question, signal, failing, holds: test && holds }
    answer = await probe.kind.check(target, probe.args, asking)
  } catch (error) {
    // No peer is to suffer for a mistake of this program.
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return inconclusive(`the probe broke: ${error instanceof Error ? error.message : text}`, text)
  }
  fill(attempt, call, answer)
  if (answer.failure?.local === true) return inconclusive(answer.detail || attempt.reason || '')
  const { passed, detail } = judge(probe, call, attempt, answer)
  return { passed, detail, orders: answer.orders, fault: undefined, attempt, call }
}

function addressOf(own: Address, port: number | undefined): Address {
  return port === undefined || own.kind === 'unix' ? own : { ...own, port }
}

/** Puts the answer where variables read it. */
function fill(attempt: Attempt, call: Call, answer: Answer): void {
  attempt.connectMs = answer.connectMs
  attempt.headerMs = answer.headerMs
  attempt.responseMs = answer.responseMs
  attempt.peerStatus = answer.status
  attempt.status = answer.status
  attempt.headers = answer.headers
  attempt.trailers = answer.trailers
  attempt.bodyLength = answer.body.length
  attempt.detail = answer.detail
  call.probeBody = answer.body
  // What the request was made of was looked up while there was no answer.
  call.cache = []
}

/**
 * Whether the peer passed. What the location takes for a failed attempt is a failed probe; a kind that knows better
 * says so itself. With a test that must hold as well.
 */
function judge(
  probe: LiveProbe,
  call: Call,
  attempt: Attempt,
  answer: Answer,
): { readonly passed: boolean; readonly detail: string } {
  const { failure, status } = answer
  const event: AttemptEvent | undefined = failure
    ? { kind: 'failure', ending: failure.ending, reason: failure.reason }
    : status === undefined
      ? undefined
      : { kind: 'status', status, grpc: grpcStatusOf(answer.trailers) ?? grpcStatusOf(answer.headers) }
  const verdict = event && classify(event, probe.retry, facts(call))
  attempt.reason = verdict?.reason
  attempt.ending = failure?.ending ?? (verdict?.reason === undefined ? 'ok' : 'http')
  attempt.status ??= failure && verdict ? verdict.status : undefined
  const seen = answer.detail || failure?.reason || (status === undefined ? '' : `status ${status}`)
  attempt.failed = failure !== undefined || !(answer.passed ?? verdict?.failed !== true)
  if (attempt.failed || probe.test === undefined) {
    // A status of HTTP does not say that the call has failed.
    const ofCall = failure === undefined && verdict?.reason?.startsWith('grpc_') ? `, ${verdict.reason}` : ''
    return { passed: !attempt.failed, detail: seen + ofCall }
  }
  const said = probe.test(call)
  if (held(said)) return { passed: true, detail: seen }
  // A status of an error explains itself; for any other one it takes the test to see why.
  const test =
    status !== undefined && status >= 400 ? [] : [said === '' ? 'the test is empty' : 'the test is 0']
  return { passed: false, detail: [seen, ...test].filter((part) => part !== '').join(', ') }
}

/** Whether a test holds by what became of it. */
function held(said: string): boolean {
  return said !== '' && said !== '0'
}

/** A probe is asked once and is nobody's retry. */
function facts({ method }: Call) {
  return {
    method,
    sent: true,
    answered: true,
    replayable: false,
    triesLeft: 0,
    elapsedMs: 0,
    mayRetry: () => false,
  }
}
