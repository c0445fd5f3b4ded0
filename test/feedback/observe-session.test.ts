import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { Call } from '../../feedback/call.ts'
import { type PeerStateEvent, peerStateChannel } from '../../feedback/channels.ts'
import { observe } from '../../feedback/observe.ts'
import { connected, firstByte } from '../../feedback/observe-session.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import type { Learning } from '../../feedback/upstream.ts'
import { attempted, chosen } from '../support/attempts.ts'
import { group } from '../support/peers.ts'

const base: Learning = { mode: 'connect', factor: 0.5, errors: 3, decay: 0, account: undefined }
const states: PeerStateEvent[] = []
const hear = (event: unknown) => states.push(event as PeerStateEvent)
peerStateChannel.subscribe(hear)
afterEach(() => void states.splice(0))

function setup(learning?: Partial<Learning>) {
  const upstream = group([{ weight: 1, max_fails: 1, fail_timeout: 100 }, 1], {
    kind: 'stream',
    learning: learning && { ...base, ...learning },
  })
  const peer = upstream.peers[0]!
  return { upstream, peer, columns: peer.zone.peers }
}

function ends(
  attempt: Attempt,
  ending: 'ok' | 'error' | 'aborted' | 'timeout',
  now: number,
  failed = false,
): void {
  attempt.ending = ending
  attempt.failed = failed
  if (ending === 'error') attempt.reason = failed ? 'refused' : 'reset'
  observe(attempt, new Call(), now)
}

test('times to connect, to the first byte and to the end are averaged apart', () => {
  const { upstream, peer, columns } = setup()
  const attempt = chosen(upstream, peer, 1000)
  connected(attempt, new Call(), 1010)
  firstByte(attempt, new Call(), 1050)
  firstByte(attempt, new Call(), 1090)
  ends(attempt, 'ok', 1400)
  assert.deepEqual([columns.connectTime[0], columns.headerTime[0], columns.responseTime[0]], [10, 50, 400])
  assert.deepEqual([attempt.connectMs, attempt.headerMs, attempt.responseMs], [10, 50, 400])
})

test('a connection is counted as soon as it is there, once, and none that was not', () => {
  const { upstream, peer, columns } = setup()
  const attempt = chosen(upstream, peer, 1000)
  connected(attempt, new Call(), 1010)
  assert.deepEqual([columns.connects[0], columns.connectMs[0], columns.reuses[0]], [1, 10, 0])
  ends(attempt, 'ok', 1400)
  ends(chosen(upstream, peer, 1500), 'error', 1510, true)
  assert.deepEqual([columns.connects[0], columns.connectMs[0], columns.reuses[0]], [1, 10, 0])
})

test('a session that was cut, or whose client left, says nothing of how long sessions last, and is no failure', () => {
  for (const ending of ['error', 'aborted'] as const) {
    const { upstream, peer, columns } = setup()
    const attempt = chosen(upstream, peer, 1000)
    connected(attempt, new Call(), 1010)
    ends(attempt, ending, 1400)
    assert.deepEqual(
      [columns.connectTime[0], columns.responseTime[0], columns.failsTotal[0], columns.conns[0]],
      [10, 0, 0, 0],
    )
  }
})

test('a connection takes back a peer that was set aside, before anything has passed on it', () => {
  const { upstream, peer } = setup()
  attempted(upstream, peer, 'error', 1000)
  assert.deepEqual(
    states.map(({ state }) => state),
    ['unavailable'],
  )
  const early = chosen(upstream, peer, 1050)
  connected(early, new Call(), 1060)
  assert.equal(states.length, 1, 'one that was chosen before the quiet time was over says nothing')
  const attempt = chosen(upstream, peer, 1200)
  connected(attempt, new Call(), 1210)
  assert.deepEqual(
    states.map(({ state }) => state),
    ['unavailable', 'up'],
  )
  ends(attempt, 'error', 1300)
  assert.equal(states.length, 2)
})

test('least_time connect learns from connections, and from failures to connect', () => {
  const { upstream, peer, columns } = setup({ mode: 'connect' })
  const attempt = chosen(upstream, peer, 1000)
  assert.equal(columns.waiting[0], 1)
  connected(attempt, new Call(), 1020)
  assert.deepEqual([columns.waiting[0], columns.avg[0], columns.ok[0]], [0, 20, 1])
  firstByte(attempt, new Call(), 1500)
  ends(attempt, 'ok', 9000)
  assert.equal(columns.avg[0], 20)
  ends(chosen(upstream, peer, 9000), 'error', 9001, true)
  assert.deepEqual([columns.avg[0], columns.ok[0], columns.waiting[0]], [20, 0.5, 0])
})

test('least_time first_byte learns from first bytes, and takes a silent session for a wait at best', () => {
  const { upstream, peer, columns } = setup({ mode: 'header' })
  const attempt = chosen(upstream, peer, 1000)
  connected(attempt, new Call(), 1001)
  assert.deepEqual([columns.waiting[0], columns.avg[0]], [1, 0])
  firstByte(attempt, new Call(), 1040)
  assert.deepEqual([columns.waiting[0], columns.avg[0]], [0, 40])
  ends(attempt, 'ok', 5000)
  const short = chosen(upstream, peer, 6000)
  connected(short, new Call(), 6001)
  ends(short, 'ok', 6002)
  assert.equal(columns.avg[0], 40, 'that the client left at once is no merit')
  const long = chosen(upstream, peer, 7000)
  connected(long, new Call(), 7001)
  ends(long, 'ok', 7080)
  assert.deepEqual([columns.avg[0], columns.ok[0], columns.waiting[0]], [60, 1, 0])
})

test('least_time last_byte learns from whole sessions alone', () => {
  const { upstream, peer, columns } = setup({ mode: 'last_byte' })
  const attempt = chosen(upstream, peer, 1000)
  connected(attempt, new Call(), 1001)
  firstByte(attempt, new Call(), 1002)
  assert.deepEqual([columns.waiting[0], columns.avg[0]], [1, 0])
  ends(attempt, 'ok', 1300)
  assert.equal(columns.avg[0], 300)
  const cut = chosen(upstream, peer, 2000)
  connected(cut, new Call(), 2001)
  ends(cut, 'error', 2010)
  assert.deepEqual([columns.avg[0], columns.ok[0], columns.waiting[0]], [300, 1, 0])
})

test('a value that peers stand by is read when the session ends', () => {
  const value = { name: '$v', read: (call: Call) => call.args, orca: false, inverse: false, expire: 0 }
  const { upstream, peer, columns } = setup({ mode: 'last_byte', value })
  const call = new Call()
  const attempt = chosen(upstream, peer, 1000)
  call.attempts.push(attempt)
  connected(attempt, call, 1001)
  call.args = '7'
  attempt.ending = 'ok'
  observe(attempt, call, 1300)
  assert.equal(columns.report[0], 7)
  const refused = chosen(upstream, peer, 2000)
  call.attempts.push(refused)
  refused.ending = 'error'
  refused.failed = true
  observe(refused, call, 2001)
  assert.equal(columns.valueCount[0], 1, 'nobody could have said it')
})
