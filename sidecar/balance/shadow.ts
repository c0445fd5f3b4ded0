import type { Call } from '../../feedback/call.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { Shadow } from '../../feedback/shadow.ts'
import type { Ask, Balancer } from './method.ts'
import { Split } from './split.ts'

/** A method that is tried beside a group's own, at work on twins of the primaries. */
export interface ShadowMethod {
  /** As the configuration has it: `least_time header best`. */
  readonly words: string
  /** The group's own method, with which it is compared, likewise. */
  readonly beside: string
  /** Split over tracks as the group's own. */
  readonly balancer: Balancer
  readonly state: Shadow
}

/** Who picks a twin, among those of its track where requests are split. */
export function balancerOf({ balancer }: ShadowMethod, { options }: Peer): Balancer | undefined {
  return balancer instanceof Split ? balancer.inside(options.track) : balancer
}

/**
 * One request's search through a shadow, one choice for each that the group's own method makes. Whoever may be picked
 * there at that moment may be picked here.
 */
export class ShadowAsk implements Ask {
  readonly call: Call
  memo: unknown = undefined
  draws = 0
  pick = ''
  drifted = 0
  fallen = false
  /** The twin that was picked last; undefined before the first. */
  picked: Peer | undefined = undefined
  /** Whom the own method picked then, and what the shadow's average of that peer had drifted to. */
  #asked: Peer | undefined = undefined
  #askedDrifted = 0
  readonly #method: ShadowMethod
  readonly #real: Ask

  constructor(method: ShadowMethod, real: Ask) {
    this.call = real.call
    this.#method = method
    this.#real = real
  }

  get now(): number {
    return this.#real.now
  }

  ready(twin: Peer): boolean {
    return this.#real.ready(this.#method.state.original(twin))
  }

  /** Reads what the method needs of the call, before anybody holds a zone. */
  read(): void {
    this.#method.balancer.read?.(this)
  }

  /**
   * Picks, and counts what both have picked. To be called with the group's zone held, before anything there says that a
   * peer was chosen.
   * @param peer whom the own method has picked
   */
  choose(peer: Peer): void {
    const { state, balancer } = this.#method
    const { zone } = state.upstream
    this.pick = ''
    this.drifted = 0
    zone.enter()
    try {
      state.heed()
      this.picked = balancer.pick(this)
      if (this.picked !== undefined) state.compare(peer, this.picked)
      const twin = state.twin(peer)
      this.#asked = peer
      this.#askedDrifted = (twin && balancerOf(this.#method, twin)?.drifted?.(twin, this.now)) ?? 0
    } finally {
      zone.leave()
    }
  }

  /** An attempt has begun, at whom the own method has picked or at another. To be called with the group's zone held. */
  begin(attempt: Attempt, now: number): void {
    const drifted = attempt.peer === this.#asked ? this.#askedDrifted : 0
    this.#method.state.begin(attempt, this.picked, drifted, now)
  }
}
