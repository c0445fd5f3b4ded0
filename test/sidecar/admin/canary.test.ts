import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FleetSamples } from '../../../feedback/fleet/facts.ts'
import type { Minute } from '../../../feedback/reservoir.ts'
import type { CanaryAnswer } from '../../../sidecar/admin/canary-answer.ts'
import type { Facts, UpstreamFacts } from '../../../sidecar/admin/facts.ts'
import { adminApp } from '../../../sidecar/admin/server.ts'
import { seeded } from '../../support/dice.ts'
import { facts, fleet, group, wall } from './facts.ts'

const minuteMs = 60_000

function app(over: Parameters<typeof facts>[0], readonly = false) {
  return adminApp(facts(over), { readonly, local: true, unix: true, report: () => {} })
}

/** A group of two tracks. */
function pair(): UpstreamFacts {
  return group('backend', { a: {}, b: { track: 'canary' } })
}

interface Traffic {
  readonly attempts: number
  readonly errors?: number
  readonly ms?: number
  /** How many minutes ago; 0 is the running one. */
  readonly ago?: number
}

/** Lets attempts end in a track, with times that are spread around one. */
function carry({ upstream }: UpstreamFacts, track: string, traffic: Traffic): void {
  const { attempts, errors = 0, ms = 20, ago = 1 } = traffic
  const random = seeded(attempts)
  const { reservoir } = upstream.tracks.get(track)!
  for (let i = 0; i < attempts; i++) {
    const failed = i < errors
    reservoir!.add(failed, failed ? undefined : ms * (0.5 + random()), wall - ago * minuteMs, random)
  }
}

async function ask(over: Parameters<typeof facts>[0], target = '/canary/backend'): Promise<CanaryAnswer> {
  const response = await app(over).inject(target)
  assert.equal(response.statusCode, 200, response.body)
  assert.equal(response.headers['cache-control'], 'no-store')
  assert.doesNotMatch(response.body, /NaN|Infinity|null/)
  return response.json<CanaryAnswer>()
}

async function refusal(target: string): Promise<string> {
  const response = await app({ groups: [pair()] }).inject(target)
  return `${response.statusCode} ${response.json<{ error: string }>().error}`
}

test('a slower canary fails, with the numbers that say so', async () => {
  const backend = pair()
  carry(backend, 'stable', { attempts: 900, errors: 4 })
  carry(backend, 'canary', { attempts: 300, errors: 1, ms: 30 })
  const answer = await ask({ groups: [backend] })
  assert.equal(answer.verdict, 'fail')
  assert.match(answer.reason, /^latency: canary is 4\d(\.\d)? % slower than stable, 98 % interval /)
  assert.deepEqual(
    [answer.upstream, answer.baseline, answer.canary, answer.scope, answer.instances],
    ['backend', 'stable', 'canary', 'instance', 1],
  )
  assert.deepEqual(answer.wanted, { min_samples: 100, max_slowdown: 10, max_errors: 1 })
  const { baseline, canary } = answer.samples
  assert.deepEqual([baseline.attempts, baseline.errors, baseline.timed, baseline.times], [900, 4, 896, 896])
  assert.deepEqual([canary.attempts, canary.errors, canary.timed, canary.times], [300, 1, 299, 299])
  assert.ok(Math.abs(baseline.median! - 20) < 2 && Math.abs(canary.median! - 30) < 3)
  assert.equal(answer.errors!.confidence, 95)
  assert.ok(Math.abs(answer.errors!.difference - 100 * (1 / 300 - 4 / 900)) < 1e-4)
  const { difference, low, high, confidence, p, u } = answer.latency!
  assert.equal(confidence, 98)
  assert.ok(
    low! > 30 && low! < difference && difference < high! && high! < 65,
    `${low} ${difference} ${high}`,
  )
  assert.ok(p < 1e-9 && u > (900 * 300) / 2)
  assert.deepEqual(
    answer.grounds.map(({ about, finding }) => `${about} ${finding}`),
    ['errors fine', 'latency worse', 'samples note'],
  )
})

test('an equal canary passes', async () => {
  const backend = pair()
  carry(backend, 'stable', { attempts: 900, errors: 4 })
  carry(backend, 'canary', { attempts: 300, errors: 1 })
  const { verdict, reason } = await ask({ groups: [backend] })
  assert.equal(verdict, 'pass')
  assert.match(reason, /^errors: .*; latency: /)
})

test('a canary without traffic is inconclusive, with what there is and what is wanted', async () => {
  const backend = pair()
  carry(backend, 'stable', { attempts: 900 })
  const answer = await ask({ groups: [backend] })
  assert.equal(answer.verdict, 'inconclusive')
  assert.equal(
    answer.reason,
    'errors: canary has 0 attempts, 100 wanted; latency: canary has 0 times, 100 wanted',
  )
  assert.equal(answer.samples.canary.attempts, 0)
  assert.equal(answer.errors, undefined)
  assert.equal(answer.latency, undefined)
  const nothing = await ask({ groups: [pair()] })
  assert.equal(nothing.verdict, 'inconclusive')
  assert.equal(nothing.window.covered, 0)
})

test('a track that no peer has is no mistake of whoever asks, and is said', async () => {
  const answer = await ask({ groups: [group('backend', { a: {} })] })
  assert.equal(answer.verdict, 'inconclusive')
  assert.match(answer.reason, /; tracks: no peer here has track "canary"; there are: stable$/)
  const misspelt = await ask({ groups: [pair()] }, '/canary/backend?canary=cannary')
  assert.match(misspelt.reason, /no peer here has track "cannary"; there are: stable, canary/)
})

test('only the minutes of the window count, the running one too', async () => {
  const backend = pair()
  for (const track of ['stable', 'canary']) {
    for (const ago of [0, 1, 5, 30, 58]) carry(backend, track, { attempts: 100, ago })
  }
  const attempts = async (window: string) => {
    const { samples, window: told } = await ask({ groups: [backend] }, `/canary/backend?window=${window}`)
    return [samples.canary.attempts, told.asked, told.covered]
  }
  // The clock stands at 49.728 s of its minute.
  assert.deepEqual(await attempts('1m'), [200, 60, 110])
  assert.deepEqual(await attempts('10m'), [300, 600, 350])
  assert.deepEqual(await attempts('90s'), [200, 90, 110])
  assert.deepEqual(await attempts('60m'), [500, 3600, 3530])
  assert.deepEqual(await attempts('1h'), [500, 3600, 3530])
  const { window } = await ask({ groups: [backend] })
  assert.deepEqual([window.from, window.to], ['2026-11-30T01:44:00.000Z', '2026-11-30T01:54:49.728Z'])
})

test('limits can be set, with a percent sign or without', async () => {
  const backend = pair()
  carry(backend, 'stable', { attempts: 900, errors: 0 })
  carry(backend, 'canary', { attempts: 300, errors: 12, ms: 24 })
  const verdict = async (query: string) =>
    (await ask({ groups: [backend] }, `/canary/backend?${query}`)).verdict
  assert.equal(await verdict(''), 'fail')
  assert.equal(await verdict('max_slowdown=50&max_errors=5'), 'pass')
  assert.equal(await verdict('max_slowdown=50%25&max_errors=5'), 'pass')
  assert.equal(await verdict('max_slowdown=50%&max_errors=5%'), 'pass')
  assert.equal(await verdict('max_slowdown=50&max_errors=2.5'), 'fail')
  assert.equal(await verdict('max_slowdown=50&max_errors=5&min_samples=301'), 'inconclusive')
  assert.equal(await verdict('baseline=canary&canary=stable'), 'pass')
})

test('a bad parameter is named', async () => {
  assert.equal(
    await refusal('/canary/backend?window=30s'),
    '400 invalid "window" "30s": it is a time from 1m to 1h',
  )
  for (const window of ['61m', '0', 'x', '', '-5m'])
    assert.match(await refusal(`/canary/backend?window=${window}`), /^400 invalid "window"/)
  for (const value of ['0', '-1', '1.5', 'many', '1e3', '']) {
    assert.match(await refusal(`/canary/backend?min_samples=${value}`), /^400 invalid "min_samples"/)
  }
  for (const value of ['-1', 'NaN', 'Infinity', '', '1e9', '0x10']) {
    assert.match(await refusal(`/canary/backend?max_slowdown=${value}`), /^400 invalid "max_slowdown"/)
    assert.match(await refusal(`/canary/backend?max_errors=${value}`), /^400 invalid "max_errors"/)
  }
  assert.equal(
    await refusal('/canary/backend?scope=all'),
    '400 invalid "scope" "all": it is "fleet" or "instance"',
  )
  assert.match(await refusal('/canary/backend?format=xml'), /^400 invalid "format"/)
  assert.match(
    await refusal('/canary/backend?max_slowdwn=5'),
    /^400 unknown parameter "max_slowdwn": there are baseline, /,
  )
  assert.match(await refusal('/canary/backend?__proto__=5'), /^400 unknown parameter "__proto__"/)
  assert.equal(await refusal('/canary/backend?window=5m&window=6m'), '400 parameter "window" stands twice')
  assert.equal(
    await refusal('/canary/backend?canary='),
    '400 parameter "canary" is empty: it is the label of a track',
  )
  assert.equal(
    await refusal('/canary/backend?canary=stable'),
    '400 parameters "baseline" and "canary" are both "stable"',
  )
})

test('a bad parameter beside format=text is answered with text', async () => {
  const response = await app({ groups: [pair()] }).inject('/canary/backend?window=30s&format=text')
  assert.equal(response.statusCode, 400)
  assert.match(response.headers['content-type'] as string, /^text\/plain/)
  assert.equal(response.body, 'invalid "window" "30s": it is a time from 1m to 1h\n')
})

test('an unknown upstream is told apart, with those that there are', async () => {
  const response = await app({ groups: [pair()] }).inject('/canary/nothing?window=wrong')
  assert.equal(response.statusCode, 404)
  assert.deepEqual(response.json(), { error: 'no upstream "nothing"', upstreams: ['backend'] })
})

test('for people there are lines', async () => {
  const backend = pair()
  carry(backend, 'stable', { attempts: 900 })
  carry(backend, 'canary', { attempts: 50 })
  const response = await app({ groups: [backend] }).inject('/canary/BACKEND?format=text')
  assert.match(response.headers['content-type'] as string, /^text\/plain/)
  assert.match(
    response.body,
    /^inconclusive: track canary against stable in upstream backend\n {2}errors: canary has 50 attempts, 100 wanted\n/,
  )
  assert.match(response.body, /\n {2}canary: 50 attempts, 0 failed, 50 times, median [\d.]+ ms\n/)
  assert.match(response.body, /\n {2}window: 600 s asked for, 110 s covered, from \S+ to \S+\n$/)
})

test('the readonly listener serves it too, and it changes nothing', async () => {
  const readonly = app({ groups: [pair()] }, true)
  assert.equal((await readonly.inject('/canary/backend')).statusCode, 200)
  assert.equal((await readonly.inject({ method: 'HEAD', url: '/canary/backend' })).statusCode, 200)
  assert.equal(
    (
      await readonly.inject({
        method: 'POST',
        url: '/canary/backend',
        payload: {},
        headers: { host: 'localhost' },
      })
    ).statusCode,
    405,
  )
})

/** A part of the minute before the running one, from another instance. */
function part(attempts: number, errors: number, ms: number): Minute {
  const times = Float32Array.from(
    { length: Math.min(1000, attempts - errors) },
    (_, i) => ms * (0.5 + (i % 100) / 100),
  )
  return { minute: Math.floor(wall / minuteMs) - 1, attempts, errors, timed: attempts - errors, times }
}

/** A fleet of which others have told this. */
function sharing(heard: Partial<FleetSamples>, asked: unknown[][] = []): Partial<Facts> {
  const one = fleet({
    samples: async (upstream, tracks, from, to) => {
      asked.push([upstream.name, tracks, to - from])
      return { parts: new Map(), instances: 0, lack: undefined, ...heard }
    },
  })
  return { fleet: () => one }
}

test('what other instances have seen is put together with what this one has', async () => {
  const backend = pair()
  carry(backend, 'stable', { attempts: 100 })
  carry(backend, 'canary', { attempts: 60 })
  const asked: unknown[][] = []
  const over = sharing(
    {
      parts: new Map([
        ['stable', [part(400, 0, 20), part(500, 2, 20)]],
        ['canary', [part(90, 30, 20)]],
      ]),
      instances: 2,
    },
    asked,
  )
  const answer = await ask({ groups: [backend], ...over })
  assert.equal(answer.verdict, 'fail')
  assert.match(answer.reason, /^errors: canary 20 % of 150 failed, stable 0\.2 % of 1000/)
  assert.deepEqual([answer.scope, answer.instances], ['fleet', 3])
  assert.equal(answer.grounds.at(-1)!.text, 'samples: of 3 instances; 3 share the group now')
  assert.deepEqual(asked, [['backend', ['stable', 'canary'], 10]])
})

test('with the scope of the instance nobody else is asked', async () => {
  const backend = pair()
  carry(backend, 'stable', { attempts: 100 })
  const asked: unknown[][] = []
  const answer = await ask({ groups: [backend], ...sharing({}, asked) }, '/canary/backend?scope=instance')
  assert.deepEqual([answer.scope, answer.instances, asked.length], ['instance', 1, 0])
  assert.equal(answer.grounds.at(-1)!.text, 'samples: of this instance alone')
})

test('that the others could not be asked is said', async () => {
  const backend = pair()
  carry(backend, 'stable', { attempts: 100 })
  const over = sharing({ lack: 'redis 10.0.0.1:6379 cannot be reached (timed out)' })
  const answer = await ask({ groups: [backend], ...over })
  assert.deepEqual([answer.scope, answer.instances], ['instance', 1])
  assert.equal(
    answer.grounds.at(-1)!.text,
    'samples: of this instance alone; of the others not all could be asked: redis 10.0.0.1:6379 cannot be reached (timed out)',
  )
  const some = sharing({ instances: 1, parts: new Map([['canary', [part(50, 0, 20)]]]), lack: 'no answer' })
  const partly = await ask({ groups: [backend], ...some })
  assert.deepEqual([partly.scope, partly.instances], ['fleet', 2])
  assert.match(partly.grounds.at(-1)!.text, /^samples: of 2 instances; .*not all could be asked: no answer$/)
})

test('an hour of busy minutes of many instances holds up nothing for long', async () => {
  const backend = pair()
  const minutes = (ms: number) => {
    const list: Minute[] = []
    for (let ago = 0; ago < 60; ago++) {
      for (let instance = 0; instance < 10; instance++) {
        list.push({ ...part(20_000, 100, ms), minute: Math.floor(wall / minuteMs) - ago })
      }
    }
    return list
  }
  const parts = new Map([
    ['stable', minutes(20)],
    ['canary', minutes(25)],
  ])
  const app_ = app({ groups: [backend], ...sharing({ instances: 10, parts }) })
  const longest: number[] = []
  for (let time = 0; time < 5; time++) {
    let [last, most, watching] = [performance.now(), 0, true]
    const watch = () => {
      const now = performance.now()
      most = Math.max(most, now - last)
      last = now
      if (watching) setImmediate(watch)
    }
    setImmediate(watch)
    const answer = (await app_.inject('/canary/backend?window=60m')).json<CanaryAnswer>()
    watching = false
    assert.equal(answer.verdict, 'fail')
    assert.equal(answer.samples.canary.times, 10_000)
    longest.push(most)
  }
  // Others may have had the processor in any one of them.
  assert.ok(Math.min(...longest) < 20, `${longest.map((ms) => ms.toFixed(1)).join(' ')} ms`)
})

test('of many who ask at once each waits for the one before, and other work has its turns between', async () => {
  const backend = pair()
  for (const track of ['stable', 'canary']) carry(backend, track, { attempts: 1000 })
  const server = app({ groups: [backend] })
  const turnsWhile = async (count: number) => {
    let [turns, watching] = [0, true]
    const watch = () => {
      turns += 1
      if (watching) setImmediate(watch)
    }
    setImmediate(watch)
    const asked = Array.from({ length: count }, () => server.inject('/canary/backend'))
    for (const { statusCode } of await Promise.all(asked)) assert.equal(statusCode, 200)
    watching = false
    return turns
  }
  await turnsWhile(1)
  const one = await turnsWhile(1)
  const many = await turnsWhile(10)
  assert.ok(many > 4 * one, `${one} turns for one, ${many} for ten`)
})
