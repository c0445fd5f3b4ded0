import assert from 'node:assert/strict'
import { test } from 'node:test'
import { obey } from '../../../feedback/agent.ts'
import { enrol, judgeProbe } from '../../../feedback/probe-health.ts'
import { explainUpstream } from '../../../sidecar/admin/explain.ts'
import type { LastProbing, ProbeFacts } from '../../../sidecar/admin/facts.ts'
import { scrape } from '../../../sidecar/admin/metrics.ts'
import { statusResponse } from '../../../sidecar/admin/status.ts'
import { facts, group, now, wall } from './facts.ts'

const last: LastProbing = {
  passed: false,
  detail: 'status 503',
  at: wall,
  endedAt: now - 1200,
  tookMs: 3.0618,
  by: undefined,
}

function probe(fields: Partial<ProbeFacts> = {}): ProbeFacts {
  const rule = { fails: 3, passes: 2 }
  return {
    probe: {
      name: 'health',
      location: '/',
      kind: { name: 'http' },
      mode: 'always',
      interval: 5000,
      essential: false,
    },
    standing: { fails: 3, passes: 0, rule },
    last,
    shared: false,
    leavesMs: 0,
    asking: false,
    nextMs: 3800,
    ...fields,
  }
}

/** A group of which probes have taken the first peer out. */
function probed(found: () => readonly ProbeFacts[] = () => []) {
  const backend = group('backend', { a: { weight: 4 }, b: {} }, { probes: found })
  const [a] = backend.upstream.peers
  const rule = { name: 'health', fails: 3, passes: 2, essential: false, persistent: false }
  const { checkup } = enrol(a!, [rule], false, now - 60_000)
  for (let i = 0; i < 4; i++) judgeProbe(checkup, checkup.standings[0]!, i === 0, now - 500)
  return backend
}

function value(backend: ReturnType<typeof probed>, path: string): Record<string, unknown> {
  const answer = statusResponse(facts({ groups: [backend] }), path, '', 'GET', '127.0.0.1')
  // The shape is what is asserted.
  return JSON.parse(answer.body.toString()) as Record<string, unknown>
}

test('the status tree counts the probes of a peer where Angie has them', () => {
  const backend = probed()
  const path = '/status/http/upstreams/backend/peers/'
  const a = value(backend, `${path}a/`)
  assert.equal(a['state'], 'unhealthy')
  const { probes } = value(backend, `${path}a/health/`) as { probes: Record<string, unknown> }
  assert.deepEqual(Object.keys(probes), ['count', 'fails', 'last'])
  assert.deepEqual([probes['count'], probes['fails']], [4, 3])
  assert.match(String(probes['last']), /^20\d\d-.*Z$/)
  assert.deepEqual(value(backend, `${path}b/health/`)['probes'], { count: 0, fails: 0 })
  assert.deepEqual(value(backend, `${path}a/evenkeel/`)['probes'], { unhealthy: 1, out: 500 })
  assert.equal(
    'probes' in value(group('backend', { a: {} }) as ReturnType<typeof probed>, `${path}a/health/`),
    false,
  )
})

test('the status tree has what an agent asked for, once it has', () => {
  const backend = probed()
  const [, b] = backend.upstream.peers
  const path = '/status/http/upstreams/backend/peers/b/evenkeel/'
  assert.equal('agent' in value(backend, path), false)
  obey(b!, { weightFactor: 0.5, maxConns: 7, administrative: 'drain' })
  assert.deepEqual(value(backend, path)['agent'], { state: 'draining', weight: 0.5, max_conns: 7 })
})

test('each peer has counters of its probes', async () => {
  const page = await scrape(facts({ groups: [probed()] }), 'text')
  const a = '{upstream="backend",peer="a",track="stable"'
  for (const line of [
    `evenkeel_peer_probes_total${a}} 4`,
    `evenkeel_peer_probe_failures_total${a}} 3`,
    `evenkeel_peer_unhealthy_total${a}} 1`,
    `evenkeel_peer_agent_weight_ratio${a}} 1`,
    `evenkeel_peer_excluded${a},reason="unhealthy"} 1`,
  ]) {
    assert.ok(page.includes(`${line}\n`), line)
  }
})

test('an explanation says of each probe how it ended last, how it stands, and when it comes next', () => {
  const fresh = probe({ last: undefined, asking: true })
  const backend = probed(() => [probe(), fresh])
  const { peers, text } = explainUpstream(backend, now)
  assert.deepEqual(peers[0]!.probes[0], {
    probe: 'health',
    type: 'http',
    location: '/',
    mode: 'always',
    scope: 'instance',
    interval: 5000,
    essential: false,
    fails: { now: 3, of: 3 },
    passes: { now: 0, of: 2 },
    last: {
      passed: false,
      detail: 'status 503',
      at: '2026-11-30T01:54:49.728Z',
      age: 1200,
      took: 3.1,
      by: undefined,
    },
    asking: false,
    next: 3800,
    leaves: undefined,
  })
  const lines = text.split('\n')
  assert.match(lines[1]!, /a: none, unhealthy; /)
  assert.equal(
    lines[2],
    '    http probe health: failed 3 in a row, 3 take it out; 1.2 s ago: status 503; next in 3.8 s',
  )
  assert.equal(lines[3], '    http probe health: not asked yet; being asked now')
})

test('of a probe of the fleet one is told who asked last, and when this instance would', () => {
  const shared = { shared: true }
  const others = { ...last, passed: true, by: 'shop-7\n' }
  const backend = probed(() => [
    probe(shared),
    probe({ ...shared, last: others, leavesMs: 42_000 }),
    probe({ ...shared, last: undefined }),
  ])
  const { peers, text } = explainUpstream(backend, now)
  const [own, theirs] = peers[0]!.probes
  assert.deepEqual([own!.scope, own!.last?.by, own!.leaves], ['fleet', undefined, undefined])
  assert.deepEqual([theirs!.scope, theirs!.last?.by, theirs!.leaves], ['fleet', 'shop-7\n', 42_000])
  const lines = text.split('\n').slice(2, 5)
  assert.match(
    lines[0]!,
    /1\.2 s ago by this instance: status 503; asked for the fleet; if nobody does, by this instance in 3\.8 s$/,
  )
  assert.match(
    lines[1]!,
    / by shop-7\\x0a: .*; asked for the fleet, left to the others for 42\.0 s; if nobody does/,
  )
  assert.match(lines[2]!, /not asked yet; asked for the fleet; if nobody does/)
})

test('the status tree has of each probe who asks, and who did last', () => {
  const other = { ...last, by: 'shop-7' }
  const backend = probed(() => [
    probe({ shared: true, last: other, leavesMs: 1200.4 }),
    probe({ probe: { ...probe().probe, name: 'own' } }),
  ])
  const { each } = value(backend, '/status/http/upstreams/backend/peers/a/evenkeel/probes/')
  const at = new Date(wall).toISOString()
  assert.deepEqual(each, {
    health: { scope: 'fleet', last: at, by: 'shop-7', leaves: 1200 },
    own: { scope: 'instance', last: at },
  })
})

test('an explanation tells passes, what said nothing, and what an agent asked for', () => {
  const results = [
    { ...last, passed: true, detail: '' },
    { ...last, passed: undefined, detail: 'connect EMFILE\u001b' },
  ]
  let i = 0
  const standing = { fails: 0, passes: 1, rule: { fails: 3, passes: 2 } }
  const backend = probed(() => [probe({ standing, last: results[i++ % 2] })])
  obey(backend.upstream.peers[0]!, { weight: 1, maxConns: 9, operational: 'down' })
  const { peers, text } = explainUpstream(backend, now)
  assert.deepEqual(peers[0]!.agent, { state: 'down', weight: 0.25, max_conns: 9 })
  assert.equal(peers[0]!.max_conns, 9)
  const lines = text.split('\n')
  assert.match(
    lines[1]!,
    /0 in flight of 9, down by its agent, 25 % of its weight by its agent, at most 9 by its agent$/,
  )
  assert.match(lines[2]!, /health: passed 1 in a row, 2 bring it back; 1\.2 s ago; next/)
  assert.match(lines[4]!, /health: says nothing; 1\.2 s ago: connect EMFILE\\x1b; next/)
})
