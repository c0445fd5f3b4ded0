import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { getEventListeners } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { endings } from '../../feedback/outcome.ts'
import { attemptReasons } from '../../feedback/reasons.ts'
import { http } from '../../probes/http.ts'
import { kindOf, probeKinds, streamKindOf, streamProbeKinds } from '../../probes/kinds.ts'
import type { Answer, Asking, ProbeKind, Target } from '../../probes/probe.ts'
import { streamTcp } from '../../probes/stream-tcp.ts'
import {
  asking,
  openSockets,
  question,
  RawPeer,
  rawPeer,
  socketsBackTo,
  tcpTarget,
} from '../support/asking.ts'
import { deafPeer } from '../support/deaf-peer.ts'
import { freePort } from '../support/free-port.ts'

/** A kind that connects. */
interface Case {
  readonly label: string
  readonly kind: ProbeKind
  readonly given: object
}

const cases: readonly Case[] = [
  // Arguments where some must be given.
  ...probeKinds.map((kind) => ({
    label: kind.name,
    kind,
    given: kind.name === 'backlog' ? { limit: 10 } : {},
  })),
  { label: 'tcp in stream', kind: streamTcp, given: { send: 'data:PING\\r\\n' } },
  { label: 'http over HTTP/2', kind: http, given: { http_version: '2' } },
]

async function askCase({ kind, given }: Case, target: Target, over: Partial<Asking> = {}): Promise<Answer> {
  // It may read what another test of this process read a moment ago, when this one's peer was not there yet.
  if (kind.name === 'backlog') await sleep(6)
  const asked = kind.http ? { question: question(), ...over } : over
  return kind.check(target, given, asking(asked))
}

/** What holds of any answer. */
function isAnswer(kind: ProbeKind, answer: Answer): void {
  assert.ok(answer.responseMs >= 0 && answer.responseMs < 10_000, `${answer.responseMs} ms`)
  const { connectMs = 0, headerMs = connectMs, responseMs } = answer
  assert.ok(0 <= connectMs && connectMs <= headerMs && headerMs <= responseMs, 'times follow each other')
  if (!kind.http) assert.equal(typeof answer.passed, 'boolean', 'nobody else can judge it')
  if (answer.failure) {
    assert.ok(endings.includes(answer.failure.ending))
    assert.ok(attemptReasons.includes(answer.failure.reason))
  }
  if (answer.failure || answer.passed === false) assert.notEqual(answer.detail, '', 'it says why')
  assert.match(answer.detail, /^[\x20-\x7e…]*$/)
  assert.equal(answer.headers.length % 2, 0)
  assert.equal(answer.trailers.length % 2, 0)
}

/** Peers that are of no use. */
const bad: Readonly<Record<string, (socket: Socket) => void>> = {
  'closes at once': (socket) => socket.end(),
  'resets at once': (socket) => socket.resetAndDestroy(),
  'resets what it is sent': (socket) => socket.on('data', () => socket.resetAndDestroy()),
  'closes what it is sent': (socket) => socket.on('data', () => socket.end()),
  'talks nonsense': (socket) => socket.end(randomBytes(5000)),
  'talks nonsense without end': (socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write(randomBytes(5000)));
    }
    socket.on('drain', more)
    more()
  },
  'greets as SSH does': (socket) => socket.write('SSH-2.0-OpenSSH_9.2p1\r\n'),
}

for (const one of cases) {
  const { label, kind, given } = one
  const talks = kind === streamTcp
  const ask = (target: Target, over?: Partial<Asking>) => askCase(one, target, over)
  test(`${label}: a peer that refuses is an answer`, async () => {
    const before = openSockets()
    const answer = await ask(tcpTarget(await freePort()))
    isAnswer(kind, answer)
    // An agent that is not there orders nothing, and that is all.
    if (kind.name === 'agent') assert.equal(answer.passed, true)
    else assert.deepEqual(answer.failure, { ending: 'error', reason: 'refused' })
    await socketsBackTo(before)
  })

  for (const [what, script] of Object.entries(bad)) {
    test(`${label}: a peer that ${what} is an answer, and no socket is left`, async () => {
      const before = openSockets()
      await using peer = await rawPeer(script)
      const answer = await ask(peer.target, { signal: AbortSignal.timeout(300) })
      isAnswer(kind, answer)
      const connects = !talks && ['tcp', 'backlog', 'agent'].includes(kind.name)
      // Whatever it says is an answer where nobody asks for more.
      const heard = talks && /^(talks|greets)/.test(what)
      if (!connects && !heard) assert.ok(answer.failure, 'there was no answer to be judged')
      await socketsBackTo(before)
    })
  }

  test(`${label}: a silent peer is given up when the time is over`, async () => {
    const before = openSockets()
    await using peer = await rawPeer()
    const startedAt = performance.now()
    const answer = await ask(peer.target, { signal: AbortSignal.timeout(100) })
    assert.ok(performance.now() - startedAt < 2000, 'it does not wait on')
    isAnswer(kind, answer)
    if (kind.http || talks || kind.name === 'grpc') assert.equal(answer.failure?.ending, 'timeout')
    else assert.equal(answer.passed, true)
    await socketsBackTo(before)
  })

  test(`${label}: a peer that does not accept is given up when the time is over`, async () => {
    await using peer = await deafPeer({ backlog: 1 })
    await peer.fill(2)
    const before = openSockets()
    const startedAt = performance.now()
    const answer = await ask(tcpTarget(peer.port), { signal: AbortSignal.timeout(100) })
    assert.ok(performance.now() - startedAt < 2000, 'it does not wait on')
    isAnswer(kind, answer)
    // A queue is looked at from outside.
    if (kind.name === 'backlog') assert.equal(answer.detail, 'queue 2 of 10')
    else if (kind.name === 'agent') assert.equal(answer.detail, 'no agent: connecting took too long')
    else assert.deepEqual(answer.failure, { ending: 'timeout', reason: 'timeout_connect' })
    await socketsBackTo(before)
  })

  test(`${label}: nothing is asked when the time is over already`, async () => {
    await using peer = await rawPeer()
    const answer = await ask(peer.target, { signal: AbortSignal.abort() })
    isAnswer(kind, answer)
    if (kind.name !== 'agent') assert.equal(answer.failure?.ending, 'timeout')
    await sleep(10)
    assert.equal(peer.accepted, 0)
  })

  test(`${label}: a signal that goes on is not listened to any more`, async () => {
    await using peer = await rawPeer((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'))
    const { signal } = new AbortController()
    for (let i = 0; i < 3; i++) isAnswer(kind, await ask(peer.target, { signal }))
    isAnswer(kind, await ask(tcpTarget(await freePort()), { signal }))
    assert.equal(getEventListeners(signal, 'abort').length, 0)
  })

  test(`${label}: many at once leave nothing behind`, async () => {
    await using peer = await rawPeer((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'))
    const before = openSockets()
    const all = await Promise.all(Array.from({ length: 50 }, () => ask(peer.target)))
    for (const answer of all) isAnswer(kind, answer)
    await socketsBackTo(before)
  })

  test(`${label}: a Unix-domain socket is asked likewise, or refused by name`, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'evenkeel-probe-'))
    const path = join(folder, 'socket')
    try {
      const address = { kind: 'unix', path } as const
      const misfit = kind.misfit?.(address, given)
      if (misfit !== undefined) {
        assert.match(misfit, /^type=\w+ needs a TCP peer$/)
        return
      }
      const gone = await ask({ name: `unix:${path}`, address })
      isAnswer(kind, gone)
      if (kind.name !== 'agent') assert.equal(gone.failure?.reason, 'unreachable')
      const before = openSockets()
      await using peer = await new RawPeer((socket) => socket.end()).listen('', path)
      isAnswer(kind, await ask({ name: `unix:${path}`, address }))
      assert.equal(peer.accepted, 1)
      await socketsBackTo(before)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test(`${label}: is described, its arguments too`, () => {
    assert.match(kind.name, /^[a-z]+$/)
    assert.match(kind.summary, /^[A-Z].*\.$/)
    assert.ok(kind.leastInterval >= 10)
    // Every schema of arguments is an object.
    const { properties } = kind.args as unknown as { properties: Record<string, { description?: string }> }
    for (const [name, { description }] of Object.entries(properties)) {
      assert.match(name, /^[a-z_]+$/)
      assert.ok(description, `${name} is described`)
    }
  })

  test(`${label}: has nothing to warn of on this machine`, async () => {
    assert.equal(await kind.caveat?.(given), undefined)
  })
}

test('kinds are found by their names, and http comes first', () => {
  for (const kind of probeKinds) assert.equal(kindOf(kind.name), kind)
  assert.equal(kindOf('icmp'), undefined)
  assert.equal(new Set(probeKinds.map((kind) => kind.name)).size, probeKinds.length)
  assert.equal(probeKinds[0].name, 'http')
})

test('in stream there is no http, and a kind may be said by the flag alone', () => {
  for (const kind of streamProbeKinds) assert.equal(streamKindOf(kind.name), kind)
  assert.equal(streamKindOf('http'), undefined)
  assert.equal(streamKindOf(undefined)?.name, 'tcp')
  assert.equal(streamKindOf(undefined, true)?.name, 'udp')
  assert.equal(new Set(streamProbeKinds.map((kind) => kind.name)).size, streamProbeKinds.length)
})
