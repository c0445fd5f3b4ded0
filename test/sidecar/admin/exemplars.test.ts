import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { exemplarSize, writeExemplar } from '../../../feedback/exemplar.ts'
import { latencyBucketsMs } from '../../../feedback/fields.ts'
import { bucketOf } from '../../../feedback/histogram.ts'
import { begin, measured, observe, observeRequest } from '../../../feedback/observe.ts'
import { Attempt } from '../../../feedback/outcome.ts'
import { Zone } from '../../../feedback/zone.ts'
import { scrape } from '../../../sidecar/admin/metrics.ts'
import { read } from './checker.ts'
import { facts, group, groupOf, now, peer, wall } from './facts.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const [first, second] = ['b7ad6b7169203331', '00f067aa0ba902b7']

/** A group that one traced request went to, with a header after 30 ms and the end after 70. */
function traced() {
  const shop = group('shop', { a: {} })
  const { upstream } = shop
  const call = new Call()
  call.startedAt = now
  call.endedAt = now + 70
  call.status = 200
  call.traceId = traceId
  call.spanId = first
  const attempt = new Attempt(upstream, upstream.peers[0], now, 'round_robin')
  attempt.traceId = traceId
  attempt.spanId = second
  call.attempts.push(attempt)
  begin(attempt, now)
  attempt.peerStatus = 200
  measured(attempt, call, now + 30)
  attempt.ending = 'ok'
  observe(attempt, call, now + 70)
  observeRequest(call)
  return shop
}

test('OpenMetrics has the trace of a measured time beside its bucket, and no other', async () => {
  const families = read(await scrape(facts({ groups: [traced()] }), 'open'), 'open')
  const header = families.get('evenkeel_peer_header_seconds')!
  const request = families.get('evenkeel_upstream_request_seconds')!
  const found = [...header.exemplars, ...request.exemplars].map(([key, text]) => [
    key,
    text.replace(/ \S+$/, ''),
  ])
  assert.deepEqual(found, [
    [
      'evenkeel_peer_header_seconds_bucket{upstream="shop",peer="a",track="stable",le="0.05"}',
      `{trace_id="${traceId}",span_id="${second}"} 0.03`,
    ],
    [
      'evenkeel_upstream_request_seconds_bucket{upstream="shop",track="stable",le="0.1"}',
      `{trace_id="${traceId}",span_id="${first}"} 0.07`,
    ],
  ])
})

test('plain text, which has no place for exemplars, has none', async () => {
  const text = await scrape(facts({ groups: [traced()] }), 'text')
  read(text)
  assert.ok(!text.includes(traceId))
})

test('of peers with one set of labels the newest exemplar is told, in the last bucket too', async () => {
  const zone = new Zone('shop', 4)
  const peers = [peer(zone, 'a'), peer(zone, 'a')]
  const ms = latencyBucketsMs.at(-1)! + 1
  for (const [i, { index }] of peers.entries()) {
    const spanId = [first, second][i]!
    writeExemplar(zone.headerExemplars[bucketOf(ms)]!, exemplarSize * index, {
      traceId,
      spanId,
      ms,
      wallAt: wall - i,
    })
  }
  const families = read(await scrape(facts({ groups: [groupOf(zone, peers)] }), 'open'), 'open')
  const told = [...families.get('evenkeel_peer_header_seconds')!.exemplars.values()]
  assert.deepEqual(told, [`{trace_id="${traceId}",span_id="${first}"} ${ms / 1000} ${wall / 1000}`])
})
