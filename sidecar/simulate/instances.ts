import { Call } from '../../feedback/call.ts'
import { adopt, type Wanted } from '../../feedback/carry.ts'
import { measured, observe } from '../../feedback/observe.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import { Upstream } from '../../feedback/upstream.ts'
import { Group } from '../balance/group.ts'
import type { Env } from '../balance/method.ts'
import { Selection } from '../balance/pick.ts'
import type { Contender } from './contenders.ts'
import { dice } from './dice.ts'
import { SimulatedFleet } from './fleet.ts'

/** Simulated time does not begin at 0, where some moments would read as "never". */
const epoch = 1_000_000

/**
 * The sidecars of a simulation: of each the group as the program has it, with the same code that picks and learns, on a
 * clock that is moved and dice that are seeded.
 */
export class Instances {
  readonly groups: readonly Group[]
  readonly #envs: readonly Env[]
  readonly #attempts: (Attempt | undefined)[] = []
  readonly #call = new Call()
  #now = epoch
  /** Whether peers are to report something of which more is better. */
  readonly #more: boolean
  /** What the peer says of itself in the answer that is being learnt from. */
  #report = ''
  readonly #fleet: SimulatedFleet | undefined

  /**
   * @param wanted the peers in order
   * @param keep `response_time_factor` / 100
   * @param fleet how often they tell one another what they see, milliseconds; undefined: they do not
   */
  constructor(
    contender: Contender,
    wanted: readonly Wanted[],
    keep: number,
    count: number,
    seed: number,
    fleet?: number,
  ) {
    this.#more = contender.args['inverse'] !== true
    this.#envs = Array.from({ length: count }, (_, instance) => ({
      now: () => this.#now,
      // The same for every method, so that none is luckier than another.
      random: dice(seed, 'picks', instance),
    }))
    this.groups = this.#envs.map((env) => group(contender, wanted, keep, env, () => this.#report))
    if (fleet !== undefined) {
      const upstreams = this.groups.map(({ upstream }) => upstream)
      this.#fleet = new SimulatedFleet(upstreams, fleet, seed, epoch)
    }
  }

  /** Lets them tell one another what there was to tell up to a moment; to be called before anything else happens then. */
  share(now: number): void {
    const fleet = this.#fleet
    while (fleet !== undefined && fleet.next <= epoch + now) fleet.step()
  }

  /** A request comes to a sidecar. @returns the place of the peer that it goes to; −1 when nobody is eligible */
  pick(id: number, instance: number, key: number, now: number): number {
    this.#now = epoch + now
    const call = this.#call
    call.target = `/${key}`
    call.remoteAddr = `10.${(key >> 16) & 255}.${(key >> 8) & 255}.${key & 255}`
    const attempt = new Selection(this.groups[instance]!, call, this.#envs[instance]!).next()
    this.#attempts[id] = attempt
    return attempt?.peer ? attempt.peer.index : -1
  }

  /**
   * The answer to a request is back: header and last byte at once, whatever its status.
   * @param report what the peer says of itself: of less there the more is left
   */
  answered(id: number, status: number, report: number, now: number): void {
    const attempt = this.#attempts[id]
    if (attempt === undefined) throw new Error('an answer to nobody')
    this.#attempts[id] = undefined
    this.#now = epoch + now
    attempt.peerStatus = attempt.status = status
    attempt.ending = 'ok'
    this.#report = String(this.#more ? 1 / Math.max(report, 1e-3) : report)
    measured(attempt, this.#call, this.#now)
    observe(attempt, this.#call, this.#now)
  }
}

function group(
  { method, args }: Contender,
  wanted: readonly Wanted[],
  keep: number,
  env: Env,
  report: () => string,
): Group {
  const { zone, peers, backups } = adopt(undefined, wanted, 'simulated', env.now())
  // Of what a method learns by, the one variable is what the peers report; every answer is taken into account.
  const learnt = (text: string) => (text === args['variable'] ? report : () => '1')
  // Whatever the configuration makes a key of, here it is one that was drawn.
  const key = () => (call: Call) => call.target
  const upstream = new Upstream({
    name: zone.name,
    zone,
    peers,
    backups,
    method: method.name,
    learning: method.learning(args, learnt, keep),
    responseTimeFactor: keep,
  })
  const make = (list: typeof peers) => method.create(upstream, list, args, env, key)
  return new Group(upstream, make(peers), backups.length > 0 ? make(backups) : undefined)
}
