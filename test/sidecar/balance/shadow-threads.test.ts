import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { recall } from '../../../feedback/held.ts'
import { Track } from '../../../feedback/track.ts'
import { Zone } from '../../../feedback/zone.ts'
import { finished, thread } from '../../support/thread.ts'

const threads = 4
const tracks = ['stable', 'stable', 'canary', 'canary']

/** A group that is split over two tracks, with a shadow, in the memory that the threads share. */
const prelude = `
  const { Zone } = await load('feedback/zone.ts')
  const { Peer } = await load('feedback/peer.ts')
  const { Upstream } = await load('feedback/upstream.ts')
  const { Shadow } = await load('feedback/shadow.ts')
  const { Track } = await load('feedback/track.ts')
  const { Call } = await load('feedback/call.ts')
  const { observe } = await load('feedback/observe.ts')
  const { Group } = await load('sidecar/balance/group.ts')
  const { Selection } = await load('sidecar/balance/pick.ts')
  const { Split } = await load('sidecar/balance/split.ts')
  const { methods } = await load('sidecar/balance/methods.ts')
  const env = { now: () => performance.now(), random: Math.random }
  const tracksOf = (shared) => new Map(shared.map((one) => [one.name, new Track(one.name, one)]))
  const seat = ({ zone: shared, tracks }) => {
    const zone = Zone.attach(shared, data.row)
    const peers = data.labels.map((track, index) => new Peer(zone, index, 's' + index, 's' + index,
      { kind: 'tcp', host: '127.0.0.1', port: 8001 + index },
      { weight: 1, max_conns: 0, max_conns_scope: 'instance', max_fails: 0, fail_timeout: 10, slow_start: 0, backup: false,
        down: false, drain: false, track, sid: '' }))
    return { zone, peers, backups: [], tracks: tracksOf(tracks), name: 'u', responseTimeFactor: 0.9, split: true }
  }
  const rule = { variable: undefined, percents: new Map([['canary', 25]]), key: undefined }
  const work = (name, args, seated, shadow) => {
    const method = methods.find((one) => one.name === name)
    const learning = method.learning(args, () => () => '')
    const upstream = new Upstream({ ...seated, method: name, learning, shadow })
    return { upstream, balancer: new Split(upstream.peers, rule, (some) => method.create(upstream, some, args, env, () => () => '')) }
  }
  const real = seat(data.real)
  const tried = work('least_conn', {}, seat(data.tried))
  const state = new Shadow(tried.upstream, real.peers)
  const own = work('least_time', { mode: 'last_byte' }, real, state)
  const group = new Group(own.upstream, own.balancer, undefined, { words: '', beside: '', balancer: tried.balancer, state })
  const next = () => new Selection(group, new Call(), env).next()
  const end = (attempt, ending = 'ok') => {
    Object.assign(attempt, { ending, failed: ending === 'error' })
    observe(attempt, undefined, env.now())
  }
  parentPort.postMessage('ready')
`

function shared() {
  const place = () => {
    const zone = new Zone('u', tracks.length, threads)
    for (const _ of tracks) zone.allocate()
    return { zone, tracks: [...new Set(tracks)].map((name) => new Track(name)) }
  }
  const [real, tried] = [place(), place()]
  const given = ({ zone, tracks: all }: typeof real) => ({
    zone: zone.share(),
    tracks: all.map((track) => track.share()),
  })
  const begin = (body: string, row: number) =>
    thread(`${prelude}\n${body}`, { real: given(real), tried: given(tried), row, labels: tracks })
  return { real, tried, begin }
}

const none = [0, 0, 0, 0]

test('four threads that pick with a shadow count each pick in both zones, and hold nothing in the end', async () => {
  const { real, tried, begin } = shared()
  const body = `
    const held = []
    for (let i = 0; i < 20_000; i++) {
      held.push(next())
      if (held.length > 5) end(held.shift(), Math.random() < 0.01 ? 'error' : 'ok')
    }
    for (const attempt of held) end(attempt)
  `
  await finished(...Array.from({ length: threads }, (_, row) => begin(body, row)))
  for (const { zone } of [real, tried]) {
    assert.equal(
      zone.peers.selected.reduce((sum, count) => sum + count, 0),
      80_000,
    )
    for (const field of ['conns', 'waiting', 'startSum'] as const)
      assert.deepEqual([...zone.peers[field]], none)
  }
  const [stable, canary] = real.tracks
  assert.equal(stable!.get('split') + canary!.get('split'), 80_000)
  assert.ok(Math.abs(canary!.get('split') - 20_000) < 800)
  const inCanary = ({ zone }: typeof real) => zone.peers.selected[2]! + zone.peers.selected[3]!
  assert.equal(inCanary(tried), inCanary(real), 'a shadow picks in the track that the request is in')
})

test('threads that are ended at any moment leave nothing in a shadow, and stop nobody', async () => {
  const { real, tried, begin } = shared()
  const busy = `
    const held = []
    for (;;) {
      held.push(next())
      if (held.length > 5) end(held.shift(), Math.random() < 0.1 ? 'aborted' : 'ok')
    }
  `
  for (let round = 0; round < 12; round++) {
    const row = round % threads
    const worker = begin(busy, row)
    await once(worker, 'message')
    await new Promise((resolve) => setTimeout(resolve, 5 + 3 * round))
    await worker.terminate()
    for (const { zone } of [real, tried]) {
      zone.enter()
      recall(zone, row)
      zone.leave()
      for (const field of ['conns', 'waiting', 'startSum'] as const)
        assert.deepEqual([...zone.peers[field]], none)
    }
  }
  await finished(begin('for (let i = 0; i < 1000; i++) end(next())', 0))
  assert.deepEqual([...tried.zone.peers.conns], none)
})
