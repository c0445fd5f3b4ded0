import { claimRetry, retryBegan, retryWaits } from '../../feedback/budget.ts'
import { classify, type Verdict } from '../../feedback/classify.ts'
import { monotonic } from '../../feedback/clock.ts'
import { grpcEnding } from '../../feedback/grpc-status.ts'
import { deny } from '../../feedback/observe.ts'
import { Attempt } from '../../feedback/outcome.ts'
import { Selection } from '../balance/pick.ts'
import type { Queue } from '../balance/queue.ts'
import { afterReading } from '../net/late.ts'
import { tracing } from '../telemetry/tracing.ts'
import { answer } from './answer.ts'
import { Try, type TryResult } from './attempt.ts'
import { backOff } from './back-off.ts'
import { statusPhrase } from './builtin-pages.ts'
import type { Exchange } from './exchange.ts'
import { done, type ForwardEnv, type Forwarded } from './forwarded.ts'
import type { RequestHead } from './headers.ts'
import { RequestTrailers } from './http2-peer/trailers.ts'
import { latest, type PeerGroup } from './pools.ts'
import { waitInQueue } from './queued.ts'
import { bodyFaultStatus, type PeerBody } from './request-body.ts'
import { finish, keep, leaveUnasked, type NoPeer, settle } from './settle.ts'
import type { TargetTls } from './target-tls.ts'
import { clientLeft } from './try-failure.ts'

/** Methods that change nothing: sending them again does no harm. */
const safe: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
/** A kept connection that has rested so long, milliseconds, is looked at once more before it is used. */
const longRest = 500

/** One request's attempts at one group, one after the other. */
export class Run {
  readonly #exchange: Exchange
  readonly #group: PeerGroup
  readonly #head: RequestHead
  readonly #body: PeerBody
  readonly #env: ForwardEnv
  readonly #tls: TargetTls | undefined
  /** Another one where the group has changed since the request came. */
  #selection: Selection
  #triesLeft: number
  #retries = 0
  #firstAt: number | undefined = undefined

  constructor(
    exchange: Exchange,
    group: PeerGroup,
    head: RequestHead,
    body: PeerBody,
    env: ForwardEnv,
    tls: TargetTls | undefined,
  ) {
    this.#tls = tls
    this.#exchange = exchange
    this.#group = group
    this.#head = head
    this.#body = body
    this.#env = env
    this.#selection = new Selection(group.balancing, exchange.call)
    this.#triesLeft = this.#tries()
  }

  /** How many attempts the request may have. */
  #tries(): number {
    const limit = this.#exchange.settings.retry.tries
    const all = this.#selection.tries
    return limit > 0 ? Math.min(limit, all) : all
  }

  async run(): Promise<Forwarded> {
    const { call } = this.#exchange
    const { queue } = this.#group
    const { upstream } = this.#group.balancing
    for (;;) {
      // Whoever left while the body was read or a retry waited is not served any more.
      if (this.#exchange.gone && !this.#exchange.settings.ignoreClientAbort) return done
      // Nor is a peer asked any more that has left meanwhile.
      if (this.#firstAt !== undefined || this.#body !== undefined) this.#moveOn()
      let attempt: Attempt | undefined
      // Whoever comes while others wait goes behind them; a request that has been at a peer is no newcomer.
      if (queue === undefined || this.#firstAt !== undefined || !this.#goesBehind(queue))
        attempt = this.#selection.next()
      if (attempt === undefined && this.#moveOn()) continue
      if (attempt === undefined && queue !== undefined && this.#mayWait) {
        const waited = await this.#wait(queue)
        if (waited === 'left') return done
        if (!(waited instanceof Attempt)) return this.#nobody(waited)
        attempt = waited
      }
      if (!attempt) return this.#nobody(this.#selection.denial)
      this.#firstAt ??= attempt.startedAt
      this.#triesLeft -= 1
      call.attempts.push(attempt)
      let trial = new Try(attempt, this.#tryOptions(attempt))
      let result = await this.#send(trial)
      let verdict = this.#judge(trial, result)
      if (verdict.resend) {
        // The peer had closed a kept connection: the same peer is asked once more on a fresh one.
        // Its place there goes from one to the other, or somebody who waits for it might come between.
        const again = this.#selection.reserve(trial.attempt.peer!, trial.attempt.pick)
        this.#end(trial, result, verdict)
        call.attempts.push(again)
        trial = new Try(again, this.#tryOptions(again))
        result = await this.#send(trial, true)
        verdict = this.#judge(trial, result)
      }
      if (verdict.next) {
        // From the verdict on the retry has its place in the budget: see `#judge`.
        this.#end(trial, result, verdict)
        this.#retries += 1
        const stayed = await backOff(this.#exchange, this.#retries)
        retryWaits(upstream, -1)
        if (!stayed) return done
        retryBegan(upstream, monotonic())
        continue
      }
      if (verdict.denial) {
        call.denial = verdict.denial
        deny(upstream, verdict.denial)
      }
      if (result.kind === 'head')
        return answer(this.#exchange, this.#group, trial, result.head, verdict, this.#env)
      this.#end(trial, result, verdict)
      const { body, gone } = this.#exchange
      if (gone) return done
      return { kind: 'refused', status: body?.fault ? bodyFaultStatus(body.fault) : verdict.status }
    }
  }

  #tryOptions({ peer }: Attempt) {
    const tls = this.#tls
    const { settings, call, response } = this.#exchange
    return {
      connectTimeout: settings.connectTimeout,
      sendTimeout: settings.proxySendTimeout,
      readTimeout: settings.readTimeout,
      maxHead: settings.bufferSize,
      method: this.#head.method,
      upgrade: this.#head.upgrade,
      http2: settings.http2Peer ? this.#group.pool.sessions : undefined,
      trailers: settings.http2Peer ? new RequestTrailers(this.#exchange) : undefined,
      tls: tls && { engine: tls.engine, name: tls.engine.lane(peer!.name, tls.name) },
      drops: settings.dropAfter === undefined ? undefined : this.#env.drops,
      interim: (status: number, headers: string[]) => {
        // 100 is between a peer and this proxy; others are the client's, where its protocol knows them.
        if (status === 100 || call.httpVersion === '1.0') return
        response.interim(status, statusPhrase(status) ?? '', headers)
      },
    }
  }

  /** @param fresh not on a kept connection */
  async #send(trial: Try, fresh = false): Promise<TryResult> {
    const { settings, call } = this.#exchange
    const { attempt } = trial
    const peer = attempt.peer!
    const head = `${this.#head.text}${tracing?.attempt(call, attempt, this.#head) ?? ''}\r\n`
    const { pool } = this.#group
    const keeps = !fresh && !settings.http2Peer
    if (!fresh && !safe.has(call.method) && rested(pool, trial, settings.http2Peer) >= longRest) {
      // Its peer may have closed it: what should not be sent twice is sent once that would be known.
      await new Promise<void>((resolve) => afterReading(resolve))
      if (this.#exchange.gone && !settings.ignoreClientAbort) return clientLeft
    }
    const reused = !keeps ? undefined : pool.take(peer, attempt.startedAt, trial.lane)
    const stay = this.#exchange.onLeave(() => {
      if (!settings.ignoreClientAbort) trial.abandonFor(clientLeft)
    })
    if (settings.dropAfter !== undefined) {
      // The body may have taken so long that peers have left meanwhile.
      const late = latest(this.#group).balancing !== this.#selection.group
      this.#env.drops.add(trial, settings.dropAfter, late)
    }
    const result = await trial.start(peer, reused, head, this.#body, fresh)
    stay()
    return result
  }

  #judge(trial: Try, result: TryResult): Verdict {
    const exchange = this.#exchange
    const { attempt } = trial
    const { upstream } = this.#group.balancing
    const now = monotonic()
    const body = this.#body
    // Where there was nobody else to ask, there may be now.
    if (this.#triesLeft === 0 && latest(this.#group) !== this.#group) this.#moveOn()
    if (result.kind === 'head') {
      attempt.peerStatus = result.head.status
      attempt.headers = result.head.headers
      attempt.headerMs = now - attempt.startedAt
      // It is in the head where the call has ended with that.
      if (exchange.settings.grpc && result.head.framing === 'none')
        attempt.grpcStatus = grpcEnding(attempt.headers, attempt.peerStatus, attempt.headers)
    }
    const policy = exchange.settings.retry
    return classify(
      result.kind === 'head'
        ? { kind: 'status', status: result.head.status, grpc: attempt.grpcStatus }
        : { kind: 'failure', ending: result.ending, reason: result.reason, local: result.local },
      policy,
      {
        method: exchange.call.method,
        sent: trial.sent,
        answered: trial.answered,
        unseen: trial.unseen,
        replayable: body === undefined || Buffer.isBuffer(body) || body.replayable,
        triesLeft: this.#triesLeft,
        elapsedMs: now - (this.#firstAt ?? now),
        mayRetry: () => claimRetry(upstream, policy.budget, now),
      },
    )
  }

  /** Settles an attempt that gives the client nothing. */
  #end(trial: Try, result: TryResult, verdict: Verdict): void {
    settle(trial, verdict, result.kind === 'head' ? undefined : result)
    trial.discard()
    keep(this.#group, trial, result.kind === 'head' && result.head.persistent && !this.#head.close)
    finish(this.#exchange, trial.attempt)
  }

  /**
   * Whether the request may wait for a peer: at its first choice whatever there is to wait for; later, where a peer that it
   * has not been at is busy. Nobody knows when one that is set aside comes back, and the client has waited already.
   */
  get #mayWait(): boolean {
    if (this.#selection.lost) return false
    return this.#firstAt === undefined || this.#selection.denial === 'overflow'
  }

  /**
   * Goes on in the group as it is now, where peers have come and gone since the request came: while its body was read, or
   * while others were asked.
   */
  #moveOn(): boolean {
    const { balancing } = latest(this.#group)
    if (balancing === this.#selection.group) return false
    const { tries } = this.#exchange.settings.retry
    const used = this.#tries() - this.#triesLeft
    this.#selection = this.#selection.over(balancing)
    const { triesLeft } = this.#selection
    this.#triesLeft = tries > 0 ? Math.min(tries - used, triesLeft) : triesLeft
    return true
  }

  #goesBehind(queue: Queue): boolean {
    return queue.crowded(this.#group.balancing) && !this.#selection.lost
  }

  /** @returns the attempt, begun; `left` when the client is gone; otherwise why there is none */
  async #wait(queue: Queue): Promise<Attempt | NoPeer | 'left'> {
    const waited = await waitInQueue(this.#exchange, queue, this.#selection)
    if (waited === undefined) return 'queue_full'
    const { end, selection, attempt } = waited
    if (selection !== this.#selection) {
      this.#selection = selection
      if (this.#firstAt === undefined) this.#triesLeft = this.#tries()
    }
    if (attempt !== undefined) return attempt
    if (end === 'left') return 'left'
    return end === 'timeout' ? 'queue_timeout' : 'no_live'
  }

  #nobody(denial: NoPeer): Forwarded {
    const { upstream } = this.#selection.group
    leaveUnasked(this.#exchange.call, upstream, denial, this.#detail(denial), this.#selection.stickiness)
    return { kind: 'refused', status: 502 }
  }

  #detail(denial: NoPeer): string {
    const { queue } = this.#group
    if (denial === 'queue_full') return `${queue?.size} requests wait in the queue, which is full`
    if (denial === 'queue_timeout') return `waited ${this.#exchange.call.queueMs?.toFixed(0)} ms in the queue`
    return this.#selection.denialDetail
  }
}

/** How long the connection has rested that a try would be made on, milliseconds; 0 where there is none. */
function rested(pool: PeerGroup['pool'], { lane, attempt }: Try, http2: boolean): number {
  const { peer, startedAt } = attempt
  return http2 ? pool.sessions.rested(lane ?? peer!.name, startedAt) : pool.rested(peer!, startedAt, lane)
}
