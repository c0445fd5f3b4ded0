import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { RecentAttempt, RecentBatch } from '../../../feedback/feed.ts'
import { peerStates } from '../../../feedback/health.ts'
import type { Facts, ProbeFacts } from '../../../sidecar/admin/facts.ts'
import { mostViewers } from '../../../sidecar/admin/live.ts'
import { peerColumns, probeColumns, trackColumns } from '../../../sidecar/admin/live-numbers.ts'
import { LiveState } from '../../../sidecar/admin/live-state.ts'
import { adminApp, startAdmin } from '../../../sidecar/admin/server.ts'
import { until } from '../../support/until.ts'
import { facts, fleet, group, now, wall } from './facts.ts'

const loopback = { kind: 'tcp', host: '127.0.0.1', port: 0 } as const

/** The admin server of facts, on a free port. */
async function serve(t: TestContext, from: Facts): Promise<{ url: string; close: () => Promise<void> }> {
  const server = await startAdmin([{ address: loopback, readonly: false }], from)
  t.after(() => server.close())
  return { url: `http://${server.addresses[0]}`, close: () => server.close() }
}

interface Event {
  readonly name: string
  /** The test knows what the event has. */
  // biome-ignore lint/suspicious/noExplicitAny: JSON, of which each test reads another part
  readonly data: any
}

/** Somebody who watches, and what was heard so far. */
class Viewer {
  readonly events: Event[] = []
  ended = false
  readonly #control = new AbortController()

  async open(url: string): Promise<Response> {
    const response = await fetch(`${url}/live`, { signal: this.#control.signal })
    if (response.ok)
      void this.#read(response)
        .catch(() => {})
        .finally(() => (this.ended = true))
    return response
  }

  async #read(response: Response): Promise<void> {
    let text = ''
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      const parts = (text + piece).split('\n\n')
      text = parts.pop()!
      for (const part of parts) {
        const [, name = '', data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(part) ?? []
        this.events.push({ name, data: JSON.parse(data) })
      }
    }
  }

  leave(): void {
    this.#control.abort()
  }

  of(name: string): Event[] {
    return this.events.filter((event) => event.name === name)
  }

  async heard(name: string, count = 1, ms = 5000): Promise<Event> {
    await until(() => this.of(name).length >= count, ms)
    return this.of(name)[count - 1]!
  }
}

async function watch(t: TestContext, url: string): Promise<Viewer> {
  const viewer = new Viewer()
  t.after(() => viewer.leave())
  assert.equal((await viewer.open(url)).status, 200)
  return viewer
}

test('who begins to watch is told what there is at once, and the numbers every second', async (t) => {
  const groups = [group('demo', { a: {}, b: { down: true, track: 'canary' }, c: { backup: true } })]
  const numbers = groups[0]!.upstream.zone.peers
  numbers.selected[0] = 7
  const { url } = await serve(t, facts({ groups, fleet: () => fleet() }))
  const viewer = new Viewer()
  t.after(() => viewer.leave())
  const response = await viewer.open(url)
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  assert.equal(response.headers.get('cache-control'), 'no-store')
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
  const layout = (await viewer.heard('layout')).data
  assert.equal(layout.version, '0.1.0')
  assert.equal(layout.startedAt, wall - 60_000)
  assert.deepEqual(layout.words.peer, peerColumns)
  assert.deepEqual(
    layout.groups[0].peers.map(({ name, track, backup }: Record<string, unknown>) => [name, track, backup]),
    [
      ['a', 'stable', undefined],
      ['b', 'canary', undefined],
      ['c', 'stable', true],
    ],
  )
  const { data } = await viewer.heard('state')
  assert.equal(data.layout, layout.layout)
  assert.equal(data.at, wall)
  assert.deepEqual(data.program.connections, [7, 1, 2, 3, 4])
  assert.equal(data.program.fleet.name, 'pod-1')
  assert.deepEqual(data.groups[0].fleet, [3, 120, 1])
  const at = (name: (typeof peerColumns)[number]) => peerColumns.indexOf(name)
  const [a, b, c] = data.groups[0].peers
  assert.equal(a.length, peerColumns.length)
  assert.equal(peerStates[a[at('state')]], 'up')
  assert.equal(a[at('attempts')], 7)
  assert.equal(a[at('share')], 1)
  assert.equal(peerStates[b[at('state')]], 'down')
  assert.equal(layout.words.exclusions[b[at('excluded')] - 1], 'down')
  assert.equal(c[at('share')], 0, 'a backup has no share as long as a primary is ready')
  assert.equal(data.groups[0].tracks[0].length, trackColumns.length)

  numbers.selected[0] = 8
  const next = await viewer.heard('state', 2)
  assert.equal(next.data.groups[0].peers[0][at('attempts')], 8)
  assert.equal(viewer.of('layout').length, 1, 'what has not changed is not told again')
})

test('a changed layout is told before the numbers that go by it', async (t) => {
  let groups = [group('one', { a: {} })]
  const { url } = await serve(t, facts({ upstreams: () => groups }))
  const viewer = await watch(t, url)
  await viewer.heard('state')
  groups = [group('one', { a: {} }), group('two', { b: {} })]
  const { data } = await viewer.heard('layout', 2)
  assert.deepEqual(
    data.groups.map(({ name }: { name: string }) => name),
    ['one', 'two'],
  )
  const state = await viewer.heard('state', 2)
  assert.equal(state.data.layout, data.layout)
  assert.ok(viewer.events.indexOf(viewer.of('layout')[1]!) < viewer.events.indexOf(state))
})

test('what probes found is told to who comes, and then only what is new', () => {
  const probe = {
    name: 'health',
    location: '/',
    kind: { name: 'http' },
    mode: 'always',
    interval: 5000,
    essential: false,
  }
  let detail = 'status 200'
  let at = wall - 1000
  const about = (): ProbeFacts => ({
    probe,
    standing: { fails: 0, passes: 3, rule: { fails: 1, passes: 1 } },
    last: { passed: detail === 'status 200', detail, at, endedAt: now, tookMs: 2.5, by: undefined },
    shared: false,
    leavesMs: 0,
    asking: false,
    nextMs: 4000,
  })
  const groups = [group('demo', { a: {}, b: {} }, { probes: (peer) => (peer.name === 'b' ? [about()] : []) })]
  const state = new LiveState(facts({ groups }))
  assert.equal(state.look(), true)
  const told = JSON.parse(state.probes(false)!)
  assert.deepEqual(told.rows.length, 1)
  const [g, p, which, ...values] = told.rows[0]
  assert.deepEqual([g, p, which, values.length], [0, 1, 0, probeColumns.length])
  assert.deepEqual(values.slice(0, 4), [1, 'status 200', wall - 1000, 2.5])
  assert.equal(values[probeColumns.indexOf('nextAt')], wall + 4000)
  assert.equal(state.look(), false)
  assert.equal(state.probes(false), undefined)
  assert.equal(JSON.parse(state.probes(true)!).rows.length, 1)
  detail = `<script>alert(1)</script>${'x'.repeat(1000)}`
  at = wall
  state.look()
  const [, , , passed, seen] = JSON.parse(state.probes(false)!).rows[0]
  assert.equal(passed, 0)
  assert.ok(seen.startsWith('<script>') && seen.length === 300)
})

const attempt: RecentAttempt = {
  at: wall,
  upstream: 'demo',
  peer: 'a',
  track: 'stable',
  pick: 'round_robin',
  status: 200,
  grpcStatus: undefined,
  ending: 'ok',
  reason: undefined,
  detail: undefined,
  next: false,
  denial: undefined,
  headerMs: 1,
  ms: 2,
  reused: false,
  retry: 0,
  protocol: 'HTTP',
  method: 'GET',
  path: '/',
  traceId: '',
}

test('attempts are told as they come, and gathered only while somebody watches', async (t) => {
  let hear: ((batch: RecentBatch) => void) | undefined
  const watched: string[] = []
  const from = facts({
    watch(listener) {
      watched.push('on')
      hear = listener
      return () => {
        watched.push('off')
        hear = undefined
      }
    },
  })
  const { url } = await serve(t, from)
  assert.deepEqual(watched, [])
  const one = await watch(t, url)
  const two = await watch(t, url)
  assert.deepEqual(watched, ['on'])
  const bad = { ...attempt, ending: 'error', reason: 'reset', status: 502 } as const
  hear!({ attempts: [...Array.from({ length: 40 }, () => attempt), bad], more: 100, moreFailed: 3 })
  for (const viewer of [one, two]) {
    const { data } = await viewer.heard('attempts')
    assert.equal(data.attempts.length, 25)
    assert.equal(data.attempts.at(-1).reason, 'reset', 'what failed is not left out')
    assert.deepEqual([data.more, data.moreFailed], [116, 3])
  }
  one.leave()
  await wait(50)
  assert.deepEqual(watched, ['on'])
  two.leave()
  await until(() => watched.length === 2)
  assert.deepEqual(watched, ['on', 'off'])
})

test('what is told is made once for all, and while nobody watches not at all', async (t) => {
  let looks = 0
  const groups = [group('demo', { a: {} })]
  const from = facts({
    upstreams() {
      looks += 1
      return groups
    },
  })
  const { url } = await serve(t, from)
  await wait(30)
  assert.equal(looks, 0)
  const viewers = await Promise.all(Array.from({ length: 5 }, () => watch(t, url)))
  assert.equal(looks, 5, 'each is told at once what there is')
  await Promise.all(viewers.map((viewer) => viewer.heard('state', 2)))
  assert.equal(looks, 6)
  for (const viewer of viewers) viewer.leave()
  await wait(1200)
  assert.ok(looks <= 7)
})

test('there is room for so many, and who comes later is told why not', async (t) => {
  const { url } = await serve(t, facts())
  const viewers = await Promise.all(Array.from({ length: mostViewers }, () => watch(t, url)))
  const refused = await fetch(`${url}/live`)
  assert.equal(refused.status, 503)
  assert.equal(refused.headers.get('retry-after'), '10')
  // The test knows the shape.
  const { error } = (await refused.json()) as { error: string }
  assert.equal(error, '16 pages watch already, which is the most that may; close one of them')
  viewers[0]!.leave()
  await until(async () => {
    const again = new Viewer()
    t.after(() => again.leave())
    return (await again.open(url)).status === 200
  })
})

test('who does not take what is told is let go, and the others go on', async (t) => {
  let hear: ((batch: RecentBatch) => void) | undefined
  const from = facts({
    watch(listener) {
      hear = listener
      return () => {
        hear = undefined
      }
    },
  })
  const { url } = await serve(t, from)
  const { port } = new URL(url)
  const slow = connect(Number(port), '127.0.0.1')
  t.after(() => slow.destroy())
  slow.on('error', () => {})
  await once(slow, 'connect')
  slow.pause()
  slow.write(`GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
  await until(() => hear !== undefined)
  const other = await watch(t, url)
  const large = { ...attempt, path: 'x'.repeat(40_000) }
  let told = 0
  const flood = setInterval(() => {
    told += 1
    hear?.({ attempts: Array.from({ length: 25 }, () => large), more: 0, moreFailed: 0 })
  }, 20)
  t.after(() => clearInterval(flood))
  const gone = once(slow, 'close')
  // Paused streams do not notice their end: it is read on once the other has far more than any buffer holds.
  await until(() => other.of('attempts').length >= 16, 15_000)
  clearInterval(flood)
  slow.resume()
  await gone
  assert.ok(told > 0)
  assert.equal(other.ended, false)
  await other.heard('state', other.of('state').length + 1)
})

test('closing the server ends what is watched, at once', async (t) => {
  const { url, close } = await serve(t, facts())
  const viewer = await watch(t, url)
  await viewer.heard('state')
  const began = performance.now()
  await close()
  assert.ok(performance.now() - began < 900, 'nobody is waited for')
  await until(() => viewer.ended)
})

test('a page of another site, and one that asks for an unknown name, cannot watch', async () => {
  const app = adminApp(facts(), { readonly: false, local: true, unix: false, report: () => {} })
  for (const site of ['cross-site', 'same-site'])
    assert.equal((await app.inject({ url: '/live', headers: { 'sec-fetch-site': site } })).statusCode, 403)
  assert.equal((await app.inject({ url: '/live', headers: { host: 'evil.example' } })).statusCode, 421)
  const head = await app.inject({ url: '/live', method: 'HEAD' })
  assert.equal(head.statusCode, 200)
  assert.equal(head.headers['content-type'], 'text/event-stream; charset=utf-8')
  await app.close()
})

test('an event of two hundred peers is small and made in a moment', () => {
  const peers = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`10.20.${i % 7}.${i}:8080`, {}]))
  const demo = group('demo', peers)
  const { zone } = demo.upstream
  for (let i = 0; i < 200; i++) {
    zone.peers.selected[i] = 1_234_567 + i
    zone.peers.succeeded[i] = 1_234_000 + i
    zone.peers.headerTime[i] = 12.345678 + i
    zone.peers.responseTime[i] = 23.456789 + i
    zone.reasons[i % 22]![i] = 321
    zone.headerSum[i] = 9_876_543.21
  }
  const state = new LiveState(facts({ groups: [demo] }))
  state.look()
  const costs = Array.from({ length: 10 }, () => {
    const began = performance.now()
    state.look()
    state.probes(false)
    const { length } = state.state
    assert.ok(length < 40_000, `${length} bytes`)
    return performance.now() - began
  })
  // The machine may be busy with something else, but not every time.
  assert.ok(Math.min(...costs) < 10, `${Math.min(...costs)} ms`)
})
