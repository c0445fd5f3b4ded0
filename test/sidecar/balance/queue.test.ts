import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { observe } from '../../../feedback/observe.ts'
import type { Attempt } from '../../../feedback/outcome.ts'
import { type QueueOptions, Upstream } from '../../../feedback/upstream.ts'
import type { Zone } from '../../../feedback/zone.ts'
import { Group } from '../../../sidecar/balance/group.ts'
import type { Waiter } from '../../../sidecar/balance/lanes.ts'
import { Selection } from '../../../sidecar/balance/pick.ts'
import { Queue, type QueueAlarm } from '../../../sidecar/balance/queue.ts'
import { RoundRobin } from '../../../sidecar/balance/round-robin.ts'
import { Split } from '../../../sidecar/balance/split.ts'
import { seeded } from '../../support/dice.ts'
import { env, group, type PeerSketch } from '../../support/peers.ts'

/** Says when it would call, and calls when it is told to. */
class ManualAlarm implements QueueAlarm {
  at = Number.POSITIVE_INFINITY
  zone: Zone | undefined
  readonly call: () => void

  constructor(call: () => void) {
    this.call = call
  }

  set(at: number): void {
    this.at = at
  }

  listen(zone: Zone): void {
    this.zone = zone
  }

  /** The bell rings. */
  ring(): void {
    if (this.zone === undefined) return
    this.zone = undefined
    this.call()
  }
}

function roundRobin(sketches: readonly PeerSketch[], backups: readonly PeerSketch[] = []): Group {
  const upstream = group(sketches, { backups })
  const backup = backups.length > 0 ? new RoundRobin(upstream.backups) : undefined
  return new Group(upstream, new RoundRobin(upstream.peers), backup)
}

/** A queue before a group, with a clock that stands. What became of each request is noted as it is known. */
function waiting(balancing: Group, options: Partial<QueueOptions> = {}) {
  const dice = env()
  let alarm!: ManualAlarm
  const queue = new Queue(
    { number: 10, timeout: 60_000, ...options },
    (call) => {
      alarm = new ManualAlarm(call)
      return alarm
    },
    dice,
  )
  const { zone } = balancing.upstream
  const notes: string[] = []
  const attempts = new Map<string, Attempt>()
  const select = () => new Selection(balancing, new Call(), dice)
  /** A request comes that cannot be served at once. */
  const enter = (name: string, selection = select()): Waiter | undefined => {
    const waiter = queue.enter(selection)
    void waiter?.ended.then(({ end, attempt, ms }) => {
      if (attempt !== undefined) attempts.set(name, attempt)
      notes.push(`${name} ${attempt?.peer?.name ?? end} ${ms}`)
    })
    return waiter
  }
  /** All that has been noted since the last time. */
  const told = async (): Promise<string> => {
    await new Promise<void>((resolve) => setImmediate(resolve))
    return notes.splice(0).join(', ')
  }
  const end = (attempt: Attempt, ending: 'ok' | 'error' = 'ok') => {
    attempt.ending = ending
    attempt.failed = ending === 'error'
    observe(attempt, undefined, dice.now())
  }
  const move = (ms: number) => {
    dice.clock.move(ms)
    if (dice.now() >= alarm.at) {
      alarm.at = Number.POSITIVE_INFINITY
      alarm.call()
    }
  }
  const count = (field: 'queued' | 'queueWaiting' | 'queueDropped' | 'queueTimedout' | 'queueOverflows') =>
    zone.get(field)
  return { queue, alarm, dice, zone, attempts, select, enter, told, end, move, count }
}

test('those that wait are served in the order in which they came', async () => {
  const { alarm, attempts, select, enter, told, end, count } = waiting(roundRobin([{ max_conns: 1 }]))
  const first = select().next()!
  for (const name of ['p', 'q', 'r']) enter(name)
  assert.equal(await told(), '')
  assert.deepEqual([count('queued'), count('queueWaiting')], [3, 3])
  end(first)
  alarm.ring()
  assert.equal(await told(), 'p a 0')
  end(attempts.get('p')!)
  alarm.ring()
  assert.equal(await told(), 'q a 0')
  end(attempts.get('q')!)
  alarm.ring()
  assert.equal(await told(), 'r a 0')
  assert.deepEqual([count('queued'), count('queueWaiting')], [3, 0])
  assert.equal(alarm.at, Number.POSITIVE_INFINITY)
})

test('one look serves as many as there is room for, and no more', async () => {
  const { alarm, select, enter, told, end, zone } = waiting(roundRobin([{ max_conns: 3 }, { max_conns: 2 }]))
  const running = Array.from({ length: 5 }, () => select().next()!)
  for (const name of ['p', 'q', 'r', 's', 't', 'u']) enter(name)
  for (const attempt of running) if (attempt.peer?.name === 'a') end(attempt)
  alarm.ring()
  assert.equal(await told(), 'p a 0, q a 0, r a 0')
  assert.deepEqual([...zone.peers.conns].slice(0, 2), [3, 2])
  assert.equal(zone.get('queueWaiting'), 3)
})

test('whoever leaves is taken out at once, from any place, and gets no peer any more', async () => {
  const { queue, alarm, attempts, select, enter, told, end, move, count, zone } = waiting(
    roundRobin([{ max_conns: 1 }]),
  )
  const first = select().next()!
  const [, q, , s] = ['p', 'q', 'r', 's'].map((name) => enter(name)!)
  move(40)
  queue.leave(q!)
  queue.leave(s!)
  queue.leave(s!)
  assert.equal(await told(), 'q left 40, s left 40')
  assert.deepEqual([count('queueWaiting'), count('queueDropped'), queue.size], [2, 2, 2])
  end(first)
  alarm.ring()
  assert.equal(await told(), 'p a 40')
  end(attempts.get('p')!)
  alarm.ring()
  assert.equal(await told(), 'r a 40')
  assert.equal(zone.peers.selected[0], 3)
  assert.equal(zone.get('queueMs'), 160)
})

test('who has been served does not leave any more', async () => {
  const { queue, alarm, select, enter, told, end, count } = waiting(roundRobin([{ max_conns: 1 }]))
  const first = select().next()!
  const waiter = enter('p')!
  end(first)
  alarm.ring()
  queue.leave(waiter)
  assert.equal(await told(), 'p a 0')
  assert.deepEqual([count('queueWaiting'), count('queueDropped')], [0, 0])
})

test('a full queue takes nobody, and says so', async () => {
  const { queue, alarm, select, enter, told, end, count } = waiting(roundRobin([{ max_conns: 1 }]), {
    number: 2,
  })
  const first = select().next()!
  enter('p')
  enter('q')
  assert.equal(enter('r'), undefined)
  assert.deepEqual([count('queued'), count('queueWaiting'), count('queueOverflows')], [2, 2, 1])
  end(first)
  alarm.ring()
  assert.equal(await told(), 'p a 0')
  assert.notEqual(enter('s'), undefined)
  assert.equal(queue.size, 2)
})

test('each waits as long as the time-out says, and not a moment longer', async () => {
  const { alarm, dice, select, enter, told, move, count } = waiting(roundRobin([{ max_conns: 1 }]), {
    timeout: 300,
  })
  select().next()
  enter('p')
  move(100)
  enter('q')
  assert.equal(alarm.at, dice.now() + 200)
  move(199)
  assert.equal(await told(), '')
  move(1)
  assert.equal(await told(), 'p timeout 300')
  assert.equal(alarm.at, dice.now() + 100)
  move(100)
  assert.equal(await told(), 'q timeout 300')
  assert.deepEqual([count('queueTimedout'), count('queueWaiting')], [2, 0])
  assert.equal(alarm.at, Number.POSITIVE_INFINITY)
})

test('a place that becomes free in the moment of the time-out is still had', async () => {
  const { select, enter, told, end, move } = waiting(roundRobin([{ max_conns: 1 }]), { timeout: 300 })
  const first = select().next()!
  enter('p')
  enter('q')
  end(first)
  move(300)
  assert.equal(await told(), 'p a 300, q timeout 300')
})

test('looks when a peer that was set aside may be tried again, and lets one request try it', async () => {
  const { alarm, dice, attempts, select, enter, told, end, move } = waiting(
    roundRobin([{ fail_timeout: 400 }, { down: true }]),
  )
  end(select().next()!, 'error')
  move(50)
  enter('p')
  enter('q')
  assert.equal(alarm.at, dice.now() + 350)
  move(350)
  assert.equal(await told(), 'p a 350')
  // Its answer decides whether the others may follow; if it takes long there is another try after that time.
  assert.equal(alarm.at, dice.now() + 400)
  end(attempts.get('p')!)
  alarm.ring()
  assert.equal(await told(), 'q a 350')
})

test('looks now and then also where nothing was heard', async () => {
  const { alarm, dice, select, enter, told, end, move } = waiting(roundRobin([{ max_conns: 1 }]))
  const first = select().next()!
  enter('p')
  assert.equal(alarm.at, dice.now() + 500)
  end(first)
  move(500)
  assert.equal(await told(), 'p a 500')
})

test('finds a peer at once where one has become ready meanwhile', async () => {
  const { enter, told, count } = waiting(roundRobin([1]))
  enter('p')
  assert.equal(await told(), 'p a 0')
  assert.deepEqual([count('queued'), count('queueWaiting')], [1, 0])
})

test('whoever comes while others wait goes behind them, and does not look', async () => {
  const balancing = roundRobin([{ max_conns: 1 }])
  const { queue, alarm, select, enter, told, end } = waiting(balancing)
  const first = select().next()!
  assert.equal(queue.crowded(balancing), false)
  enter('p')
  assert.equal(queue.crowded(balancing), true)
  end(first)
  // The bell has rung and nobody has come to look yet.
  enter('q')
  assert.equal(await told(), '')
  alarm.ring()
  assert.equal(await told(), 'p a 0')
})

test('whoever comes while others wait in another thread lets them go first, but only for a moment', async () => {
  const { alarm, dice, zone, enter, told, move } = waiting(roundRobin([1]))
  zone.add('queueWaiting', 1)
  enter('p')
  assert.equal(await told(), '')
  assert.notEqual(alarm.zone, undefined)
  assert.equal(alarm.at, dice.now() + 2)
  move(2)
  assert.equal(await told(), 'p a 2')
})

test('one that can go to a single peer holds up nobody who can go elsewhere', async () => {
  const { alarm, attempts, select, enter, told, end } = waiting(
    roundRobin([{ max_conns: 1 }, { max_conns: 1 }]),
  )
  const tried = select()
  end(tried.next()!)
  // Both are full again, and the first in the queue has been at the one of them.
  const running = [select().next()!, select().next()!]
  enter('p', tried)
  enter('q')
  enter('r')
  end(running.find(({ peer }) => peer?.name === 'a')!)
  alarm.ring()
  assert.equal(await told(), 'q a 0')
  end(running.find(({ peer }) => peer?.name === 'b')!)
  alarm.ring()
  assert.equal(await told(), 'p b 0')
  end(attempts.get('p')!)
  alarm.ring()
  assert.equal(await told(), 'r b 0')
})

test('whoever gets a peer is the first of those that could have had it, whatever peers they may go to', async () => {
  const random = seeded(7)
  const balancing = roundRobin(Array.from({ length: 6 }, () => ({ max_conns: 1 })))
  const { queue, alarm, select, enter, told, end, attempts } = waiting(balancing, { number: 200 })
  const tried = new Map<string, ReadonlySet<string>>()
  const requests = Array.from({ length: 120 }, (_, i) => {
    const selection = select()
    const names = new Set<string>()
    for (let left = Math.floor(6 * random()); left > 0; left--) {
      const attempt = selection.next()!
      names.add(attempt.peer!.name)
      end(attempt)
    }
    tried.set(`${i}`, names)
    return selection
  })
  const running = balancing.upstream.peers.map(() => select().next()!)
  for (const [i, selection] of requests.entries()) enter(`${i}`, selection)
  assert.equal(queue.size, 120)
  const left = new Set(tried.keys())
  for (let served = 0; served < 120; ) {
    const [one] = running.splice(Math.floor(random() * running.length), 1)
    if (one !== undefined) end(one)
    alarm.ring()
    for (const note of (await told()).split(', ').filter(Boolean)) {
      const [name = '', peer = ''] = note.split(' ')
      left.delete(name)
      served += 1
      for (const other of left) {
        const could = Number(other) < Number(name) && !tried.get(other)!.has(peer)
        assert.equal(could, false, `${name} got ${peer}, which ${other} waited for`)
      }
      assert.equal(tried.get(name)!.has(peer), false)
      running.push(attempts.get(name)!)
    }
  }
  assert.equal(queue.size, 0)
})

test('requests of one track do not wait for those of another', async () => {
  const upstream = group([{ max_conns: 1 }, { max_conns: 1, track: 'canary' }], { split: true })
  const rule = {
    variable: { text: '$http_x_track', read: (call: Call) => call.header('x-track') ?? '' },
    percents: new Map<string, number>(),
    key: undefined,
  }
  const balancing = new Group(
    upstream,
    new Split(upstream.peers, rule, (peers) => new RoundRobin(peers)),
    undefined,
  )
  const { alarm, dice, enter, told, end } = waiting(balancing)
  const of = (track: string) => {
    const call = new Call()
    call.rawHeaders = ['x-track', track]
    return new Selection(balancing, call, dice)
  }
  const stable = of('stable').next()!
  const canary = of('canary').next()!
  assert.deepEqual([stable.peer?.name, canary.peer?.name], ['a', 'b'])
  enter('p', of('stable'))
  enter('q', of('canary'))
  enter('r', of('canary'))
  end(canary)
  alarm.ring()
  assert.equal(await told(), 'q b 0')
  end(stable)
  alarm.ring()
  // One of `canary` may go to `stable` in need, but the other was there before it.
  assert.equal(await told(), 'p a 0')
})

test('whoever has waited looks at the primaries first again', async () => {
  const { alarm, select, enter, told, end } = waiting(roundRobin([{ max_conns: 1 }], [{ max_conns: 1 }]))
  const [primary, backup] = [select().next()!, select().next()!]
  assert.deepEqual([primary.peer?.name, backup.peer?.name], ['a', 'b'])
  enter('p')
  enter('q')
  end(backup)
  end(primary)
  alarm.ring()
  assert.equal(await told(), 'p a 0, q b 0')
})

/** The group with its peers under other limits, as a reload leaves it. */
function changed(balancing: Group, max_conns: number): Group {
  const { upstream } = balancing
  const peers = upstream.peers.map((peer) =>
    Object.assign(Object.create(Object.getPrototypeOf(peer)), peer, {
      options: { ...peer.options, max_conns },
    }),
  )
  const next = new Upstream({
    name: upstream.name,
    zone: upstream.zone,
    peers,
    backups: [],
    method: upstream.method,
    learning: undefined,
    responseTimeFactor: 0.9,
  })
  return new Group(next, new RoundRobin(peers), undefined)
}

test('a reload leaves those that wait in their order, before the group as it is then', async () => {
  const balancing = roundRobin([{ max_conns: 1 }])
  const { queue, alarm, attempts, select, enter, told, zone } = waiting(balancing)
  select().next()
  for (const name of ['p', 'q', 'r', 's']) enter(name)
  const next = changed(balancing, 3)
  queue.follow(next)
  assert.equal(await told(), 'p a 0, q a 0')
  assert.equal(attempts.get('p')?.upstream, next.upstream)
  assert.deepEqual([zone.peers.conns[0], zone.get('queueWaiting')], [3, 2])
  // One that was routed before the reload comes after it.
  enter('t')
  queue.follow(changed(balancing, 5))
  assert.equal(await told(), 'r a 0, s a 0')
  alarm.ring()
  assert.equal(queue.size, 1)
})

test('a reload may change how long those wait that do, and how many may', async () => {
  const { queue, alarm, dice, select, enter, told, move } = waiting(roundRobin([{ max_conns: 1 }]))
  select().next()
  enter('p')
  move(200)
  queue.configure({ number: 1, timeout: 300 })
  queue.serve()
  assert.equal(alarm.at, dice.now() + 100)
  assert.equal(enter('q'), undefined)
  move(100)
  assert.equal(await told(), 'p timeout 300')
})

test('nobody waits for a group that is no more, nor begins to', async () => {
  const { queue, alarm, select, enter, told, count } = waiting(roundRobin([{ max_conns: 1 }]))
  select().next()
  enter('p')
  enter('q')
  queue.close()
  enter('r')
  assert.equal(await told(), 'p closed 0, q closed 0, r closed 0')
  assert.deepEqual([count('queued'), count('queueWaiting'), alarm.at], [2, 0, Number.POSITIVE_INFINITY])
})

test('a mistake of ours with one request holds up nobody behind it', async () => {
  const { queue, alarm, select, enter, told, end, count } = waiting(roundRobin([{ max_conns: 1 }]))
  const first = select().next()!
  const broken = select()
  const waiter = queue.enter(broken)!
  broken.next = () => {
    throw new Error('a mistake')
  }
  enter('p')
  end(first)
  alarm.ring()
  await assert.rejects(waiter.ended, /a mistake/)
  assert.equal(await told(), 'p a 0')
  assert.deepEqual([count('queueWaiting'), queue.size], [0, 0])
})

test('whatever comes and goes, nobody is lost, nobody overtakes, and no peer has too much', async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const random = seeded(seed)
    const limits = [1 + Math.floor(3 * random()), 1 + Math.floor(3 * random())]
    const balancing = roundRobin(limits.map((max_conns) => ({ max_conns })))
    const { queue, alarm, select, zone, dice, count } = waiting(balancing, { number: 8, timeout: 50 })
    const running: Attempt[] = []
    const ends: Record<string, number> = { picked: 0, left: 0, timeout: 0, full: 0 }
    const inside = new Map<Waiter, number>()
    let came = 0
    let last = 0
    for (let step = 0; step < 300; step++) {
      const what = random()
      if (what < 0.45) {
        const selection = select()
        const attempt = queue.crowded(balancing) ? undefined : selection.next()
        const waiter = attempt === undefined ? queue.enter(selection) : undefined
        const number = ++came
        if (attempt !== undefined) running.push(attempt)
        else if (waiter === undefined) ends['full']! += 1
        else {
          inside.set(waiter, number)
          void waiter.ended.then(({ end, attempt: got }) => {
            inside.delete(waiter)
            ends[end]! += 1
            if (got === undefined) return
            assert.ok(number > last, `${number} was served after ${last}`)
            last = number
            running.push(got)
          })
        }
      } else if (what < 0.7 && running.length > 0) {
        const [attempt] = running.splice(Math.floor(random() * running.length), 1)
        attempt!.ending = 'ok'
        observe(attempt!, undefined, dice.now())
        if (random() < 0.8) alarm.ring()
      } else if (what < 0.8 && inside.size > 0) {
        queue.leave([...inside.keys()][Math.floor(random() * inside.size)]!)
      } else {
        dice.clock.move(10 * random())
        if (dice.now() >= alarm.at) alarm.call()
      }
      await Promise.resolve()
      for (const [i, limit] of limits.entries()) assert.ok(zone.peers.conns[i]! <= limit)
      assert.equal(count('queueWaiting'), inside.size)
      assert.equal(queue.size, inside.size)
    }
    const { picked, left, timeout, full } = ends
    assert.equal(count('queued'), picked! + left! + timeout! + inside.size)
    assert.deepEqual(
      [count('queueDropped'), count('queueTimedout'), count('queueOverflows')],
      [left, timeout, full],
    )
    assert.ok(picked! > 10 && left! > 0 && full! > 0, JSON.stringify(ends))
  }
})
