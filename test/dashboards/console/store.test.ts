import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Peer } from '../../../dashboards/console/peer.js'
import { Store } from '../../../dashboards/console/store.js'
import { latencyBucketsMs } from '../../../feedback/fields.ts'
import { attemptReasons } from '../../../feedback/reasons.ts'
import type { Learning } from '../../../feedback/upstream.ts'
import type { UpstreamFacts } from '../../../sidecar/admin/facts.ts'
import { LiveState } from '../../../sidecar/admin/live-state.ts'
import { facts, group, now, wall } from '../../sidecar/admin/facts.ts'

/** A program whose numbers a test changes, and a page that is told of them every second. */
class Scene {
  readonly store = new Store()
  groups: readonly UpstreamFacts[]
  #live: LiveState
  #at = wall

  constructor(groups: readonly UpstreamFacts[]) {
    this.groups = groups
    this.#live = this.#program(wall)
  }

  #program(startedAt: number): LiveState {
    const clock = { now: () => now + this.#at - wall, wall: () => this.#at }
    return new LiveState(facts({ clock, startedAt, upstreams: () => this.groups }))
  }

  /** Another run of the program. */
  restart(groups: readonly UpstreamFacts[]): void {
    this.groups = groups
    this.#live = this.#program(this.#at)
  }

  /** Time passes, and the page is told. @returns whether the page found another run of the program */
  tell(ms = 1000): boolean {
    this.#at += ms
    const changed = this.#live.look()
    const restarted = changed && this.store.takeLayout(JSON.parse(this.#live.layout))
    this.store.takeState(JSON.parse(this.#live.state))
    return restarted
  }

  peer(name: string): Peer {
    return this.store.groups.flatMap(({ peers }) => peers).find((peer) => peer.name === name)!
  }
}

/** Attempts at a peer: how many began, and how many of them ended well and for a reason. */
function count(
  { upstream }: UpstreamFacts,
  at: number,
  well: number,
  reasons: Record<string, number> = {},
): void {
  const { zone } = upstream
  let bad = 0
  for (const [reason, times] of Object.entries(reasons)) {
    bad += times
    // The words are of that list.
    zone.reasons[attemptReasons.indexOf(reason as (typeof attemptReasons)[number])]![at]! += times
  }
  zone.peers.selected[at]! += well + bad
  zone.peers.succeeded[at]! += well
  zone.add('tries', well + bad)
}

const close = (value: number | undefined, wanted: number) =>
  assert.ok(value !== undefined && Math.abs(value - wanted) < 1e-9, `${value} is not ${wanted}`)

test('rates and shares are worked out of what counters have grown by', () => {
  const demo = group('demo', { a: {}, b: {} })
  const scene = new Scene([demo])
  count(demo, 0, 1000)
  scene.tell()
  assert.equal(scene.peer('a').rate('attempts', 10_000), undefined, 'one state says nothing of a rate')
  assert.equal(scene.peer('a').actualShare(10_000), undefined)
  for (let i = 0; i < 20; i++) {
    count(demo, 0, 30)
    count(demo, 1, 10)
    scene.tell()
  }
  close(scene.peer('a').rate('attempts', 10_000), 30)
  close(scene.peer('b').actualShare(10_000), 0.25)
  close(scene.peer('b').average('share', 10_000), 0.5)
  for (let i = 0; i < 10; i++) {
    count(demo, 1, 10)
    scene.tell()
  }
  close(scene.peer('b').actualShare(10_000), 1)
  close(scene.peer('a').rate('attempts', 60_000), 20)
})

test('what fails shows with its reason and since when, and a client that left is nobody’s failure', () => {
  const demo = group('demo', { a: {} })
  const scene = new Scene([demo])
  count(demo, 0, 5, { reset: 3 })
  scene.tell()
  const peer = scene.peer('a')
  assert.equal(peer.lastFailure, undefined, 'what was before is not known')
  assert.equal(peer.inTrouble(10_000), false)
  count(demo, 0, 8, { timeout_read: 2, client_abort: 90, stale: 5 })
  scene.tell()
  assert.deepEqual(peer.troubles(10_000), [{ reason: 'timeout_read', rate: 2 }])
  assert.deepEqual(peer.lastFailure, { reason: 'timeout_read', at: wall + 2000 })
  close(peer.well(10_000), 0.8)
  assert.equal(peer.inTrouble(10_000), true)
  assert.deepEqual([...peer.reasons].sort(), [
    ['client_abort', 90],
    ['reset', 3],
    ['stale', 5],
    ['timeout_read', 2],
  ])
  for (let i = 0; i < 12; i++) scene.tell()
  assert.equal(peer.inTrouble(10_000), false)
  assert.equal(peer.well(10_000), undefined, 'nothing ended')
})

test('an answer 5xx that is passed on is no good end', () => {
  const demo = group('demo', { a: {} })
  const scene = new Scene([demo])
  scene.tell()
  count(demo, 0, 10)
  demo.upstream.zone.statuses[500 - 100]![0]! += 4
  scene.tell()
  close(scene.peer('a').well(10_000), 0.6)
  assert.deepEqual(scene.peer('a').troubles(10_000), [{ reason: '5xx', rate: 4 }])
  // One that is listed has its reason already.
  count(demo, 0, 0, { http_503: 3 })
  demo.upstream.zone.statuses[503 - 100]![0]! += 3
  scene.tell()
  assert.equal(scene.peer('a').grown('passedErrors', 10_000), 4)
})

test('a call of gRPC is no good end where its status says that the peer failed', () => {
  const demo = group('demo', { a: {} })
  const scene = new Scene([demo])
  scene.tell()
  count(demo, 0, 10)
  const { grpcStatuses } = demo.upstream.zone
  for (const [status, times] of [
    [0, 5],
    [5, 2],
    [13, 2],
    [15, 1],
  ] as const)
    grpcStatuses[status]![0]! += times
  scene.tell()
  close(scene.peer('a').well(10_000), 0.7)
  assert.deepEqual(scene.peer('a').troubles(10_000), [{ reason: 'grpc', rate: 3 }])
  // Those that are listed have their reason already.
  count(demo, 0, 0, { grpc_unavailable: 4, grpc_cancelled: 1 })
  grpcStatuses[14]![0]! += 4
  grpcStatuses[1]![0]! += 1
  scene.tell()
  assert.equal(scene.peer('a').grown('passedCalls', 10_000), 3)
})

test('a peer whose requests get no header is in trouble, and one that is idle or sends a long answer is not', () => {
  const demo = group('demo', { silent: {}, idle: {}, long: {}, slow: {}, brisk: {} })
  const { zone } = demo.upstream
  const { conns, selected, headerTime } = zone.peers
  const begin = (at: number) => {
    conns[at]! += 1
    selected[at]! += 1
  }
  const answer = (at: number) => {
    zone.headerHistogram[0]![at]! += 1
  }
  const end = (at: number) => {
    conns[at]! -= 1
    zone.statuses[200 - 100]![at]! += 1
  }
  const scene = new Scene([demo])
  // Where the usual time is long, so is the patience.
  headerTime[3] = 2000
  scene.tell()
  for (const at of [0, 2, 3]) begin(at)
  answer(2)
  for (let second = 0; second < 9; second++) {
    begin(4)
    begin(4)
    answer(4)
    end(4)
    scene.tell()
  }
  const found = (name: string) => scene.peer(name).waits
  assert.deepEqual(found('silent'), { count: 1, ms: 8000, silent: true })
  for (const name of ['idle', 'long', 'slow', 'brisk']) assert.equal(found(name), undefined, name)
  assert.equal(scene.peer('silent').inTrouble(10_000), true)
  assert.equal(scene.peer('long').inTrouble(10_000), false)
  assert.deepEqual(scene.store.groups[0]!.waits, { peers: 1, attempts: 1 })
  for (let second = 0; second < 3; second++) scene.tell()
  assert.deepEqual(found('slow'), { count: 1, ms: 11_000, silent: true })
  answer(0)
  scene.tell()
  assert.equal(found('silent'), undefined, 'its header has come')
  end(0)
  scene.tell(60_000)
  begin(0)
  scene.tell()
  assert.equal(found('silent'), undefined, 'what begins after a pause has not waited for all of it')
})

test('an answer that a dead thread was sending does not hide what waits', () => {
  const demo = group('demo', { a: {} })
  const { zone } = demo.upstream
  const scene = new Scene([demo])
  zone.headerHistogram[0]![0]! += 1
  scene.tell()
  zone.peers.conns[0] = 1
  for (let second = 0; second < 5; second++) scene.tell()
  assert.equal(scene.peer('a').waits?.count, 1)
})

test('where the method notes how long attempts wait for the header, one that answers others is found too', () => {
  const demo = group('demo', { a: {} }, { learning: { mode: 'header' } as Learning })
  const { zone } = demo.upstream
  zone.peers.headerTime[0] = 300
  const scene = new Scene([demo])
  scene.tell()
  zone.peers.conns[0] = 2
  zone.peers.waiting[0] = 2
  zone.peers.startSum[0] = 2 * (now + 1000)
  for (let second = 0; second < 4; second++) {
    count(demo, 0, 5)
    zone.headerHistogram[0]![0]! += 5
    zone.statuses[200 - 100]![0]! += 5
    scene.tell()
    if (second === 2) assert.equal(scene.peer('a').waits, undefined)
  }
  assert.deepEqual(scene.peer('a').waits, { count: 2, ms: 4000, silent: false })
})

test('a change of state is told once, with the state before', () => {
  const demo = group('demo', { a: { max_fails: 1, fail_timeout: 60_000 }, b: {} })
  const scene = new Scene([demo])
  scene.tell()
  assert.deepEqual(scene.store.takeChanges(), [])
  const { peers } = demo.upstream.zone
  peers.fails[0] = 1
  peers.checkedAt[0] = now
  peers.downstartWallAt[0] = wall
  scene.tell()
  const [change, ...more] = scene.store.takeChanges()
  assert.deepEqual(
    [change?.peer.name, change?.before, change?.peer.state, more.length],
    ['a', 'up', 'unavailable', 0],
  )
  assert.equal(scene.peer('a').stateAt, wall + 2000)
  assert.equal(scene.peer('a').excluded, 'unavailable')
  assert.deepEqual(scene.store.takeChanges(), [])
  assert.deepEqual(
    [...(scene.store.groups[0]?.states ?? [])],
    [
      ['unavailable', 1],
      ['up', 1],
    ],
  )
})

test('a reload keeps what is known of peers that stay, and a new run of the program begins anew', () => {
  const demo = group('demo', { a: {}, b: {} })
  const scene = new Scene([demo])
  for (let i = 0; i < 5; i++) {
    count(demo, 0, 10)
    scene.tell()
  }
  const other = group('other', { c: {} })
  scene.groups = [other, demo]
  assert.equal(scene.tell(), false)
  assert.deepEqual(
    scene.store.groups.map(({ name }) => name),
    ['other', 'demo'],
  )
  close(scene.peer('a').rate('attempts', 10_000), 8)
  assert.equal(scene.peer('c').rate('attempts', 10_000), undefined)

  const fresh = group('demo', { a: {}, b: {} })
  count(fresh, 0, 3)
  scene.restart([fresh])
  assert.equal(scene.tell(), true)
  assert.equal(scene.peer('a').rate('attempts', 10_000), undefined)
  assert.equal(scene.peer('a').number('attempts'), 3)
  scene.tell()
  close(scene.peer('a').rate('attempts', 10_000), 0)
})

test('a gap while the link was lost neither falsifies rates nor is drawn through', () => {
  const demo = group('demo', { a: {} })
  const scene = new Scene([demo])
  scene.tell()
  count(demo, 0, 10)
  scene.tell()
  count(demo, 0, 400)
  scene.tell(40_000)
  const peer = scene.peer('a')
  close(peer.rate('attempts', 60_000), 10)
  assert.equal(peer.rate('attempts', 10_000), undefined, 'there is only one state within that span')
  assert.deepEqual(
    peer.line('attempts', 60_000).map(({ value }) => value),
    [10, Number.NaN],
  )
  // The first state of a new link may come close upon the last one of the old.
  count(demo, 0, 5)
  scene.tell(100)
  assert.equal(peer.line('attempts', 60_000).length, 2)
})

test('five minutes are remembered, however long the page is open', () => {
  const demo = group('demo', { a: {} })
  const scene = new Scene([demo])
  for (let i = 0; i < 700; i++) {
    count(demo, 0, i < 600 ? 2 : 4)
    scene.tell()
  }
  const peer = scene.peer('a')
  close(peer.rate('attempts', 60_000), 4)
  close(peer.rate('attempts', 300_000), (200 * 2 + 100 * 4) / 300)
  assert.equal(peer.line('attempts', 300_000).length, 300)
})

test('percentiles come out of the histogram, and beyond its end they are infinite', () => {
  const demo = group('demo', { a: {} })
  const scene = new Scene([demo])
  const [track] = demo.upstream.tracks.values()
  track!.answered(200, 5000, undefined)
  scene.tell()
  const shown = scene.store.groups[0]!
  assert.equal(shown.quantile(0.5, 10_000), undefined)
  for (let i = 0; i < 90; i++) track!.answered(200, 7, undefined)
  for (let i = 0; i < 10; i++) track!.answered(503, 70, undefined)
  scene.tell()
  const [low, high] = [5, 10]
  assert.ok(
    latencyBucketsMs.some((bound) => bound === low) && latencyBucketsMs.some((bound) => bound === high),
  )
  close(shown.quantile(0.5, 10_000), low + ((high - low) * 50) / 90)
  close(shown.quantile(0.99, 10_000), 95)
  assert.deepEqual(shown.bucketOf(0.5, 10_000), { low, high, within: 50 / 90, top: false })
  assert.equal(shown.bucketOf(0.99, 10_000)?.high, 100)
  assert.equal(shown.bucketOf(0.99, 10_000)?.top, true, 'none took longer')
  close(shown.rate('serverErrors', 10_000), 10)
  for (let i = 0; i < 100; i++) track!.answered(200, 100_000, undefined)
  scene.tell()
  assert.equal(shown.quantile(0.99, 10_000), Number.POSITIVE_INFINITY)
})

test('a state of another layout than the last one is left alone', () => {
  const demo = group('demo', { a: {} })
  const scene = new Scene([demo])
  scene.tell()
  const before = scene.store.state
  scene.store.takeState({ ...before!, layout: 99, at: 1 })
  assert.equal(scene.store.state, before)
  scene.store.takeProbes({ layout: 99, rows: [[0, 0, 0, 1]] })
  assert.equal(scene.peer('a').probes.size, 0)
})
