import { claimRetry, countRequest, retryBegan, retryWaits } from '../../feedback/budget.ts'
import type { Call } from '../../feedback/call.ts'
import { classify } from '../../feedback/classify.ts'
import { monotonic } from '../../feedback/clock.ts'
import { deny, observe } from '../../feedback/observe.ts'
import { Attempt, type Ending } from '../../feedback/outcome.ts'
import type { RetryPolicy } from '../../feedback/policy.ts'
import type { AttemptReason } from '../../feedback/reasons.ts'
import { Selection } from '../balance/pick.ts'
import { publishAttempt } from '../telemetry/channels.ts'
import type { GroupTarget } from './settings.ts'

/** Why a peer could not be connected to. */
export interface ConnectFailure {
  readonly ending: Ending
  readonly reason: AttemptReason
  readonly detail: string
  /** This machine could not even try (no file descriptor, no port): says nothing of the peer. */
  readonly local: boolean
}

/** A session's search for a peer that can be connected to, one after the other. */
export class Search {
  readonly #call: Call
  readonly #policy: RetryPolicy
  readonly #target: GroupTarget
  #selection: Selection
  #triesLeft: number
  #firstAt: number | undefined = undefined

  constructor(target: GroupTarget, call: Call, policy: RetryPolicy) {
    const { group } = target
    const { upstream } = group
    call.upstream = upstream.name
    call.group = upstream
    countRequest(upstream, monotonic())
    this.#call = call
    this.#policy = policy
    this.#target = target
    this.#selection = new Selection(group, call)
    this.#triesLeft = this.#tries()
  }

  /** What peers are to call themselves, unless told otherwise. */
  get host(): string {
    return this.#target.host
  }

  #tries(): number {
    const { tries } = this.#selection
    return this.#policy.tries > 0 ? Math.min(this.#policy.tries, tries) : tries
  }

  /** Goes on in the group as it is now, where peers have come and gone while others were tried. */
  #moveOn(): boolean {
    const { group, forms } = this.#target
    const now = forms?.latest?.balancing ?? group
    if (now === this.#selection.group) return false
    const { tries } = this.#policy
    const used = this.#tries() - this.#triesLeft
    this.#selection = this.#selection.over(now)
    const { triesLeft } = this.#selection
    this.#triesLeft = tries > 0 ? Math.min(tries - used, triesLeft) : triesLeft
    return true
  }

  /** @returns an attempt at the next peer, begun; undefined when nobody is eligible, which is recorded */
  next(): Attempt | undefined {
    let attempt = this.#selection.next()
    if (attempt === undefined && this.#moveOn()) attempt = this.#selection.next()
    if (attempt === undefined) {
      this.#nobody()
      return undefined
    }
    this.#firstAt ??= attempt.startedAt
    this.#triesLeft -= 1
    this.#call.attempts.push(attempt)
    return attempt
  }

  /**
   * An attempt has come to no connection: judges it and lets the memory know.
   * @returns whether another peer is to be tried
   */
  failed(attempt: Attempt, failure: ConnectFailure): boolean {
    const call = this.#call
    const { upstream } = attempt
    const now = monotonic()
    // It may have left meanwhile, and others have come.
    this.#moveOn()
    const verdict = classify({ kind: 'failure', ...failure }, this.#policy, {
      method: '',
      sent: false,
      answered: false,
      replayable: true,
      triesLeft: this.#triesLeft,
      elapsedMs: now - (this.#firstAt ?? now),
      mayRetry: () => claimRetry(upstream, this.#policy.budget, now),
    })
    attempt.ending = failure.ending
    attempt.reason = verdict.reason
    attempt.detail = failure.detail
    attempt.failed = verdict.failed
    attempt.next = verdict.next
    attempt.status = 502
    if (verdict.denial !== undefined) {
      call.denial = verdict.denial
      deny(upstream, verdict.denial)
    }
    observe(attempt, call, now)
    publishAttempt(call, attempt)
    if (!verdict.next) return false
    retryWaits(upstream, -1)
    retryBegan(upstream, now)
    return true
  }

  #nobody(): void {
    const { denial, denialDetail, group } = this.#selection
    const attempt = new Attempt(group.upstream, undefined, monotonic(), '')
    attempt.ending = 'no_live'
    attempt.status = 502
    attempt.detail = denialDetail
    attempt.sticky = this.#selection.stickiness
    this.#call.attempts.push(attempt)
    this.#call.denial = denial
    deny(group.upstream, denial)
    publishAttempt(this.#call, attempt)
  }
}
