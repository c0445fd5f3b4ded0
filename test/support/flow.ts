import { Call, findHeader } from '../../feedback/call.ts'
import { measured, observe } from '../../feedback/observe.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import { Group } from '../../sidecar/balance/group.ts'
import type { Env, Method } from '../../sidecar/balance/method.ts'
import { methods } from '../../sidecar/balance/methods.ts'
import { Selection } from '../../sidecar/balance/pick.ts'
import type { Clock } from './clock.ts'
import { env, group, type PeerSketch } from './peers.ts'

/** How a peer answers one attempt: after how long, and with which status (200), or how it fails. */
export interface Answer {
  readonly ms: number
  readonly status?: number
  readonly ending?: 'error' | 'timeout' | 'aborted'
  /** Whether `proxy_next_upstream` lists it. */
  readonly failed?: boolean
  /** What it reports of itself, in `X-Load`. */
  readonly load?: number | string
}

/** Variables of a text: `$account` is the request's arguments, `$load` what the peer reports. */
function variable(text: string): (call: Call) => string {
  if (text === '$account') return (call) => call.args
  if (text === '$load') return (call) => findHeader(call.attempts.at(-1)?.headers ?? [], 'x-load') ?? ''
  return (call) => call.target
}

/** A group at work under a method, in time that the test moves. */
export class Flow {
  readonly upstream: Upstream
  readonly group: Group
  readonly env: Env & { readonly clock: Clock }
  /** Attempts in progress and when they end, in no order. */
  readonly #running: { readonly attempt: Attempt; readonly endsAt: number; readonly answer: Answer }[] = []

  constructor(sketches: readonly PeerSketch[], name: string, args: object, seed = 1) {
    // Each method takes arguments of its own schema; tests keep to them.
    const method = methods.find((one) => one.name === name) as unknown as Method
    this.env = env(seed)
    this.upstream = group(sketches, { method: name, learning: method.learning(args, variable) })
    const primary = method.create(this.upstream, this.upstream.peers, args, this.env, variable)
    this.group = new Group(this.upstream, primary, undefined)
  }

  get clock(): Clock {
    return this.env.clock
  }

  /** Begins a request's first attempt; undefined when nobody is eligible. */
  begin(call = new Call()): Attempt | undefined {
    return new Selection(this.group, call, this.env).next()
  }

  /** Ends an attempt now. */
  end(attempt: Attempt, answer: Omit<Answer, 'ms'> = {}, call = new Call()): void {
    const now = this.clock.now()
    const { ending, status = 200, failed = false, load } = answer
    call.attempts.push(attempt)
    attempt.responseMs = now - attempt.startedAt
    attempt.failed = ending === 'error' || ending === 'timeout' || failed
    if (ending === undefined) {
      attempt.peerStatus = status
      attempt.headers = load === undefined ? [] : ['X-Load', String(load)]
      attempt.headerMs = attempt.responseMs
      attempt.ending = failed ? 'http' : 'ok'
      measured(attempt, call, now)
    } else {
      attempt.ending = ending
    }
    observe(attempt, call, now)
  }

  /** One request from beginning to end, nothing else being in progress. */
  serve(answer: (peer: Peer) => Answer, call = new Call()): Peer | undefined {
    const attempt = this.begin(call)
    if (attempt === undefined) return undefined
    const told = answer(attempt.peer!)
    this.clock.move(told.ms)
    this.end(attempt, told, call)
    return attempt.peer
  }

  /**
   * A number of requests with so many always in progress: each that ends begins the next. The first ones begin
   * apart from one another, or equal times would go in step.
   * @returns how many each peer was given, by name
   */
  run(requests: number, inProgress: number, answer: (peer: Peer) => Answer): Map<string, number> {
    const given = new Map(this.upstream.peers.map(({ name }) => [name, 0]))
    for (let i = 0; i < requests; i++) {
      while (this.#running.length >= inProgress) this.#endNext()
      if (this.#running.length < inProgress - 1) this.clock.move(7 * this.env.random())
      const attempt = this.begin()
      if (attempt === undefined) continue
      const { name } = attempt.peer!
      given.set(name, given.get(name)! + 1)
      const told = answer(attempt.peer!)
      this.#running.push({ attempt, endsAt: this.clock.now() + told.ms, answer: told })
    }
    return given
  }

  #endNext(): void {
    let next = 0
    for (let i = 1; i < this.#running.length; i++) {
      if (this.#running[i]!.endsAt < this.#running[next]!.endsAt) next = i
    }
    const [ended] = this.#running.splice(next, 1)
    this.clock.move(Math.max(0, ended!.endsAt - this.clock.now()))
    this.end(ended!.attempt, ended!.answer)
  }
}

/** Each one's part of the whole in percent, in the order of the map. */
export function percent(given: ReadonlyMap<string, number>): number[] {
  const total = [...given.values()].reduce((sum, one) => sum + one, 0)
  return Array.from(given.values(), (one) => (100 * one) / total)
}
