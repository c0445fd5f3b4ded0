import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isTrouble, type RecentAttempt, RecentList } from '../../feedback/feed.ts'

const well: RecentAttempt = {
  at: 1,
  upstream: 'u',
  peer: '127.0.0.1:80',
  track: 'stable',
  pick: 'round_robin',
  status: 200,
  grpcStatus: undefined,
  ending: 'ok',
  reason: undefined,
  detail: undefined,
  next: false,
  denial: undefined,
  headerMs: 2,
  ms: 3,
  reused: false,
  retry: 0,
  protocol: 'HTTP',
  method: 'GET',
  path: '/',
  traceId: '',
}
const bad: RecentAttempt = { ...well, status: 502, ending: 'error', reason: 'reset' }

/** Adds attempts by a word of `w`ell and `b`ad, each with its place as its path. */
function add(list: RecentList, word: string): void {
  for (const [i, letter] of [...word].entries()) {
    const attempt = { ...(letter === 'b' ? bad : well), path: `${letter}${i}` }
    list.add(isTrouble(attempt), () => attempt)
  }
}

const paths = ({ attempts }: { attempts: readonly RecentAttempt[] }) =>
  attempts.map(({ path }) => path).join(' ')

test('as many attempts as there is room for are listed, and the others counted', () => {
  const list = new RecentList(3)
  assert.equal(list.empty, true)
  add(list, 'wwwww')
  assert.equal(list.empty, false)
  const batch = list.take()
  assert.equal(paths(batch), 'w0 w1 w2')
  assert.deepEqual([batch.more, batch.moreFailed], [2, 0])
  assert.equal(list.empty, true)
  assert.deepEqual(list.take(), { attempts: [], more: 0, moreFailed: 0 })
})

test('one that failed takes the place of one that did not', () => {
  const list = new RecentList(3)
  add(list, 'wbwwbbb')
  const batch = list.take()
  assert.equal(paths(batch), 'b1 b4 b5')
  assert.deepEqual([batch.more, batch.moreFailed], [4, 1])
})

test('what is not listed is not made', () => {
  const list = new RecentList(1)
  let made = 0
  const make = () => {
    made += 1
    return well
  }
  for (let i = 0; i < 1000; i++) list.add(false, make)
  assert.equal(made, 1)
})

test('lists of several threads become one, with what each has left out', () => {
  const all = new RecentList(3)
  const one = new RecentList(2)
  add(one, 'www')
  const two = new RecentList(2)
  add(two, 'bbb')
  all.merge(one.take())
  all.merge(two.take())
  const batch = all.take()
  assert.equal(paths(batch), 'w1 b0 b1')
  assert.deepEqual([batch.more, batch.moreFailed], [3, 1])
})

test('a client that left and a stale connection are no trouble, a server’s error that was passed on is', () => {
  assert.equal(isTrouble(well), false)
  assert.equal(isTrouble(bad), true)
  assert.equal(isTrouble({ ...well, reason: 'client_abort', ending: 'aborted', status: 499 }), false)
  assert.equal(isTrouble({ ...well, reason: 'stale', ending: 'stale', status: 502 }), false)
  assert.equal(isTrouble({ ...well, status: 503 }), true)
  assert.equal(isTrouble({ ...well, status: 404 }), false)
  assert.equal(isTrouble({ ...well, ending: 'no_live', status: 502 }), true)
})

test('a call of gRPC is trouble where its status says that the peer failed, though HTTP says 200', () => {
  const ended = (grpcStatus: number) => isTrouble({ ...well, grpcStatus })
  assert.deepEqual([0, 2, 5, 14, 16].map(ended), [false, true, false, true, false])
  assert.equal(isTrouble({ ...well, grpcStatus: 10, reason: 'grpc_aborted', ending: 'http' }), true)
  assert.equal(isTrouble({ ...well, grpcStatus: 14, reason: 'client_abort', ending: 'aborted' }), false)
})
