import assert from 'node:assert/strict'
import { test } from 'node:test'
import { obey, type PeerOrders } from '../../../feedback/agent.ts'
import { Call } from '../../../feedback/call.ts'
import { measured, observe } from '../../../feedback/observe.ts'
import type { Attempt, Ending } from '../../../feedback/outcome.ts'
import type { Peer } from '../../../feedback/peer.ts'
import type { Group } from '../../../sidecar/balance/group.ts'
import type { Balancer } from '../../../sidecar/balance/method.ts'
import { Selection } from '../../../sidecar/balance/pick.ts'
import { env, type PeerSketch } from '../../support/peers.ts'
import { fc } from '../../support/property.ts'
import { type Variant, variants } from '../../support/variants.ts'

/** What is known of a peer without its numbers in the zone: what the rules of passive health say in words. */
interface Known {
  running: number
  fails: number
  checkedAt: number
  recoverAt: number
  drained: boolean
  limit: number
}

interface Request {
  readonly selection: Selection
  readonly tried: Set<Peer>
  moved: boolean
}

const failures: readonly Ending[] = ['error', 'timeout', 'invalid_header', 'http']

/** A group at work, and a second account of all that happens to it. */
class Twin {
  readonly group: Group
  readonly known = new Map<Peer, Known>()
  readonly running: { readonly attempt: Attempt; readonly call: Call }[] = []
  readonly requests: Request[] = []
  readonly env = env(5)
  #spare = 0

  constructor(variant: Variant, sketches: readonly PeerSketch[], backups: readonly PeerSketch[]) {
    this.group = variant.make(sketches, this.env, backups)
    for (const peer of this.all) {
      this.known.set(peer, { running: 0, fails: 0, checkedAt: 0, recoverAt: 0, drained: false, limit: 0 })
    }
  }

  get all(): readonly Peer[] {
    return [...this.group.upstream.peers, ...this.group.upstream.backups]
  }

  get now(): number {
    return this.env.clock.now()
  }

  /** Why the peer may not be picked, in the order in which the reasons count. */
  out(peer: Peer): 'barred' | 'failed' | 'full' | undefined {
    const { down, max_fails, fail_timeout, max_conns } = peer.options
    const { running, fails, checkedAt, drained, limit } = this.known.get(peer)!
    if (down || drained) return 'barred'
    const failing = max_fails > 0 && fails >= max_fails && !this.group.upstream.single
    if (failing && this.now < checkedAt + fail_timeout) return 'failed'
    const most = limit || max_conns
    return most > 0 && running >= most ? 'full' : undefined
  }

  /** A new request, or another attempt of one that is there. */
  ask(request: Request): void {
    const { upstream } = this.group
    const fit = (peer: Peer) => this.out(peer) === undefined && (upstream.single || !request.tried.has(peer))
    const primaries = request.moved ? [] : upstream.peers.filter(fit)
    if (primaries.length === 0 && upstream.backups.length > 0) request.moved = true
    const fitting = request.moved ? upstream.backups.filter(fit) : primaries
    const attempt = request.selection.next()
    if (fitting.length === 0) {
      assert.equal(attempt, undefined, `${attempt?.address} was picked, and nobody is eligible`)
      const full = this.all.some(
        (peer) => this.out(peer) === 'full' && (upstream.single || !request.tried.has(peer)),
      )
      assert.equal(request.selection.denial, full ? 'overflow' : 'no_live')
      return
    }
    assert.ok(attempt?.peer, `nobody was picked, and ${fitting.map(({ name }) => name)} are eligible`)
    assert.ok(fitting.includes(attempt.peer), `${attempt.address} was picked, and is not eligible`)
    request.tried.add(attempt.peer)
    const known = this.known.get(attempt.peer)!
    known.running += 1
    known.checkedAt = this.now
    this.running.push({ attempt, call: request.selection.call })
  }

  begin(target: string, load: string): void {
    const call = new Call()
    call.target = target
    call.args = load
    call.remoteAddr = `10.${this.#spare++ % 250}.0.1`
    const request = {
      selection: new Selection(this.group, call, this.env),
      tried: new Set<Peer>(),
      moved: false,
    }
    this.requests.push(request)
    this.ask(request)
  }

  /** Does what an agent beside the peer asks for. */
  order(peer: Peer, orders: PeerOrders): void {
    obey(peer, orders)
    const known = this.known.get(peer)!
    if (orders.administrative !== undefined) known.drained = orders.administrative === 'drain'
    if (orders.maxConns !== undefined) known.limit = orders.maxConns
  }

  measure(at: number): void {
    const one = this.running[at % this.running.length]
    if (one === undefined) return
    one.attempt.peerStatus ??= 200
    measured(one.attempt, one.call, this.now)
  }

  end(at: number, ending: Ending): void {
    const [one] = this.running.splice(at % Math.max(1, this.running.length), 1)
    if (one === undefined) return
    const { attempt, call } = one
    attempt.ending = ending
    attempt.failed = failures.includes(ending)
    if (ending === 'ok' || ending === 'http') attempt.peerStatus ??= ending === 'ok' ? 200 : 503
    const peer = attempt.peer!
    const known = this.known.get(peer)!
    known.running -= 1
    const { now } = this
    if (attempt.failed) {
      known.fails += 1
      known.recoverAt = now + peer.options.fail_timeout
      known.checkedAt = now
    } else if (ending === 'ok') {
      if (attempt.startedAt >= known.recoverAt) known.fails = 0
    } else if (peer.options.max_fails > 0 && known.fails >= peer.options.max_fails) {
      // An attempt that says nothing gives its leave to try a peer that is set aside back.
      const last = known.checkedAt === attempt.startedAt && attempt.startedAt >= known.recoverAt
      if (last) known.checkedAt = known.recoverAt - peer.options.fail_timeout
    }
    observe(attempt, call, now)
  }

  /** What must hold after every step. */
  check(): void {
    const { upstream, primary, backup } = this.group
    const { peers } = upstream.zone
    for (const peer of this.all) {
      const { index, options } = peer
      const known = this.known.get(peer)!
      assert.equal(peers.conns[index], known.running, `requests in progress of ${peer.name}`)
      assert.equal(peers.fails[index], known.fails, `failures of ${peer.name}`)
      assert.ok(peers.waiting[index]! >= 0 && peers.waiting[index]! <= known.running)
      assert.ok(peers.effectiveWeight[index]! >= 0 && peers.effectiveWeight[index]! <= options.weight)
      assert.ok(peers.ok[index]! >= 0 && peers.ok[index]! <= 1)
      assert.ok(peers.avg[index]! >= 0)
      for (const [field, column] of Object.entries(peers)) {
        assert.ok(Number.isFinite(column[index]), `${field} of ${peer.name}: ${column[index]}`)
      }
    }
    this.#checkShares(primary, upstream.peers)
    if (backup) this.#checkShares(backup, upstream.backups)
  }

  #checkShares(balancer: Balancer, list: readonly Peer[]): void {
    const ready = (peer: Peer) => this.out(peer) === undefined
    const shares = balancer.shares(ready, this.now)
    assert.equal(shares.length, list.length)
    const sum = shares.reduce((total, share) => total + share, 0)
    const wanted = list.some(ready) ? 1 : 0
    assert.ok(Math.abs(sum - wanted) < 1e-6, `shares ${shares} sum to ${sum} and not ${wanted}`)
    for (const [i, peer] of list.entries()) {
      assert.ok(shares[i]! >= 0 && (ready(peer) || shares[i] === 0), `share of ${peer.name}: ${shares[i]}`)
    }
  }

  /** Ends what is in progress; nothing may be left of it. */
  finish(): void {
    while (this.running.length > 0) this.end(0, 'aborted')
    const { conns, waiting, startSum } = this.group.upstream.zone.peers
    for (const { index, name } of this.all) {
      assert.deepEqual([conns[index], waiting[index], startSum[index]], [0, 0, 0], name)
    }
  }
}

const step = fc.record({
  act: fc.constantFrom(
    'begin',
    'begin',
    'begin',
    'again',
    'measure',
    'end',
    'end',
    'end',
    'wait',
    'wait',
    'order',
  ),
  which: fc.nat(30),
  /** What a peer reports of itself, for the method that goes by that. */
  load: fc.constantFrom('', '0', '1', '0.5', '250', '-3', 'NaN', '1e400', 'x'),
  ending: fc.constantFrom<Ending[]>('ok', 'ok', 'ok', 'error', 'timeout', 'http', 'aborted', 'stale'),
  ms: fc.constantFrom(0.001, 1, 20, 900, 1000, 5000, 60_000),
  order: fc.constantFrom<PeerOrders[]>(
    { weightFactor: 0.5 },
    { weightFactor: 0.01 },
    { weightFactor: 2 },
    { weightFactor: 1 },
    { administrative: 'drain' },
    { administrative: 'ready' },
    { maxConns: 1 },
    { maxConns: 0 },
  ),
})

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** A peer with whatever the method allows to be said of it. */
function sketch({ method }: Variant): fc.Arbitrary<PeerSketch> {
  const may = (param: (typeof method.supports)[number]) => method.supports.includes(param)
  return fc.record({
    weight: may('weight') ? fc.constantFrom(1, 1, 2, 5, 100) : fc.constant(1),
    slow_start: may('slow_start') ? fc.constantFrom(0, 0, 2000) : fc.constant(0),
    max_fails: fc.constantFrom(0, 1, 1, 3),
    fail_timeout: fc.constantFrom(0, 1000, 10_000),
    max_conns: fc.constantFrom(0, 0, 1, 3),
    down: fc.constantFrom(false, false, false, true),
  })
}

function play(twin: Twin, steps: readonly Step[]): void {
  const peers = twin.all
  for (const { act, which, load, ending, ms, order } of steps) {
    const request = twin.requests[which % Math.max(1, twin.requests.length)]
    const peer = peers[which % peers.length]!
    if (act === 'begin') twin.begin(`/${which}`, load)
    else if (act === 'again' && request) twin.ask(request)
    else if (act === 'measure') twin.measure(which)
    else if (act === 'end') twin.end(which, ending)
    else if (act === 'wait') twin.env.clock.move(ms)
    else if (act === 'order') twin.order(peer, order)
    twin.check()
  }
  twin.finish()
}

for (const variant of variants) {
  const some = sketch(variant)
  const backups = variant.method.supports.includes('backup')
    ? fc.array(some, { maxLength: 2 })
    : fc.constant([])

  test(`${variant.title}: whatever happens, numbers are sound and nobody is picked who may not be`, () => {
    fc.assert(
      fc.property(
        fc.array(some, { minLength: 1, maxLength: 5, size: 'max' }),
        backups,
        fc.array(step, { maxLength: 120, size: 'max' }),
        (sketches, spare, steps) => play(new Twin(variant, sketches, spare), steps),
      ),
      { numRuns: 80, seed: 1 },
    )
  })

  test(`${variant.title}: the same holds of a large group`, () => {
    fc.assert(
      fc.property(
        fc.array(some, { minLength: 65, maxLength: 80, size: 'max' }),
        fc.array(step, { maxLength: 60, size: 'max' }),
        (many, steps) => play(new Twin(variant, many, []), steps),
      ),
      { numRuns: 6, seed: 1 },
    )
  })
}
