import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { exclusion } from '../../../feedback/health.ts'
import { measured, observe } from '../../../feedback/observe.ts'
import type { Attempt } from '../../../feedback/outcome.ts'
import { SessionBook, type SessionRules } from '../../../feedback/sessions/book.ts'
import { Sessions } from '../../../feedback/sessions/sessions.ts'
import { Upstream } from '../../../feedback/upstream.ts'
import { cookie } from '../../../feedback/variables/prefixed.ts'
import { Group } from '../../../sidecar/balance/group.ts'
import type { Balancer } from '../../../sidecar/balance/method.ts'
import { Selection } from '../../../sidecar/balance/pick.ts'
import { RoundRobin } from '../../../sidecar/balance/round-robin.ts'
import { Split, type SplitRule } from '../../../sidecar/balance/split.ts'
import { Sticky, type StickyRules } from '../../../sidecar/balance/sticky/sticky.ts'
import type { CookieRules } from '../../../sidecar/balance/sticky/sticky-cookie.ts'
import { env, group, type PeerSketch } from '../../support/peers.ts'

const md5 = (text: string) => createHash('md5').update(text).digest('hex')

/** The request says in `target` what names its peer, or its session. */
const plain: StickyRules = {
  hints: [(call) => call.target],
  secret: undefined,
  cookie: undefined,
  book: undefined,
  strict: false,
}

const learning: SessionRules = {
  // What the answer gives, and what the request has.
  create: [(call) => call.uri],
  lookup: [(call) => call.args, (call) => call.target],
  timeout: 1000,
  at: 'end',
  refresh: true,
}

/** Peers a, b, c, … whose ids are A, B, C, … where nothing else is said. */
function made(
  sketches: readonly Exclude<PeerSketch, number>[],
  rules: Partial<StickyRules> & { readonly learn?: Partial<SessionRules> },
  more: { backups?: readonly Exclude<PeerSketch, number>[]; split?: SplitRule } = {},
) {
  const letters = (list: readonly Exclude<PeerSketch, number>[], from: number) =>
    list.map((sketch, i) => ({ sid: String.fromCharCode(65 + from + i), ...sketch }))
  const bare = group(letters(sketches, 0), {
    backups: letters(more.backups ?? [], sketches.length),
    split: more.split !== undefined,
  })
  const table = new Sessions('z', 100)
  const book = rules.learn && new SessionBook('u', { ...learning, ...rules.learn }, table)
  const { name, zone, peers, backups, method, learning: learnt, responseTimeFactor, split } = bare
  const upstream = new Upstream({
    ...{ name, zone, peers, backups, method, learning: learnt, responseTimeFactor, split },
    sessions: book,
  })
  const make = (list: typeof peers) => new RoundRobin(list)
  const primary = more.split ? new Split(peers, more.split, make) : make(peers)
  const { learn, ...others } = rules
  const sticky = new Sticky({ ...plain, ...(learn ? { hints: [] } : {}), ...others, book }, [
    ...peers,
    ...backups,
  ])
  const balancing = new Group(upstream, primary, backups.length > 0 ? make(backups) : undefined, undefined, {
    sticky,
  })
  const dice = env()
  const of = (peer: string) => [...peers, ...backups].find(({ name }) => name === peer)!
  return { balancing, upstream, dice, table, of, zone }
}

type Made = ReturnType<typeof made>

function search({ balancing, dice }: Made, hint: string, more: Partial<Call> = {}) {
  const call = Object.assign(new Call(), { target: hint, uri: '', args: '' }, more)
  const selection = new Selection(balancing, call, dice)
  const attempts: Attempt[] = []
  const next = () => {
    const attempt = selection.next()
    if (attempt !== undefined) attempts.push(attempt)
    return attempt === undefined
      ? `- ${selection.stickiness}`
      : `${attempt.peer!.name} ${attempt.sticky} ${attempt.pick}`
  }
  return { call, selection, attempts, next }
}

function end({ dice }: Made, attempt: Attempt, call: Call, how: Partial<Attempt> = {}): void {
  Object.assign(attempt, { ending: 'ok', ...how })
  observe(attempt, call, dice.now())
}

describe('a session that names its peer', () => {
  test('goes there, whatever the method says, and leaves the turns of the method alone', () => {
    const all = made([{}, {}, {}], {})
    const { currentWeight } = all.zone.peers
    const before = [...currentWeight]
    for (let i = 0; i < 4; i++) assert.equal(search(all, 'C').next(), 'c HIT sticky')
    assert.deepEqual([...currentWeight], before)
    assert.deepEqual(
      ['', '', ''].map((hint) => search(all, hint).next()),
      ['a NEW round_robin', 'b NEW round_robin', 'c NEW round_robin'],
    )
  })

  test('goes by the method where nobody has that name, and the attempt says so', () => {
    const all = made([{}, {}], {})
    assert.equal(search(all, 'X').next(), 'a MISS round_robin')
    assert.equal(search(all, 'x'.repeat(8192)).next(), 'b MISS round_robin')
    assert.equal(search(all, '\x00\xff').next(), 'a MISS round_robin')
    // Names are compared byte for byte.
    assert.equal(search(all, 'a').next(), 'b MISS round_robin')
  })

  test('goes elsewhere where the peer is down, set aside, full, out by a probe, or gone', () => {
    const outs: [string, Exclude<PeerSketch, number>, (all: Made) => void][] = [
      ['down', { down: true }, () => {}],
      [
        'unavailable',
        {},
        ({ zone, dice }) => {
          zone.peers.fails[0] = 1
          zone.peers.checkedAt[0] = dice.now()
        },
      ],
      ['busy', { max_conns: 1 }, ({ zone }) => zone.peers.conns.fill(1, 0, 1)],
      ['down', {}, ({ zone }) => zone.peers.barred.fill(1, 0, 1)],
      ['unhealthy', {}, ({ zone }) => zone.peers.barred.fill(3, 0, 1)],
      ['draining', {}, ({ zone }) => zone.peers.tenant.fill(0, 0, 1)],
    ]
    for (const [word, sketch, out] of outs) {
      const all = made([sketch, {}], {})
      out(all)
      assert.equal(exclusion(all.of('a'), false, all.dice.now(), true), word)
      assert.equal(search(all, 'A').next(), 'b MISS round_robin', word)
    }
  })

  test('keeps a peer that drains, by the file or by its agent, which gets nobody else', () => {
    const all = made([{ drain: true }, {}], {})
    assert.equal(search(all, 'A').next(), 'a HIT sticky')
    assert.deepEqual(
      [search(all, '').next(), search(all, 'X').next()],
      ['b NEW round_robin', 'b MISS round_robin'],
    )
    const other = made([{}, {}], {})
    other.zone.peers.barred[0] = 2
    assert.equal(search(other, 'A').next(), 'a HIT sticky')
    assert.equal(search(other, '').next(), 'b NEW round_robin')
  })

  test('may be the half-open attempt of a peer that is set aside', () => {
    const all = made([{}, {}], {})
    all.zone.peers.fails[0] = 1
    all.zone.peers.checkedAt[0] = all.dice.now() - 10_000
    assert.equal(search(all, 'A').next(), 'a HIT sticky')
    assert.equal(search(all, 'A').next(), 'b MISS round_robin')
  })

  test('is asked after at each attempt: the peer that it has been at is a MISS', () => {
    const all = made([{}, {}, {}], {})
    const { next } = search(all, 'B')
    assert.deepEqual(
      [next(), next(), next(), next()],
      ['b HIT sticky', 'a MISS round_robin', 'c MISS round_robin', '- MISS'],
    )
  })

  test('goes on to the next peer of the same name before the method has a say', () => {
    const all = made([{ sid: 'X' }, {}, { sid: 'X' }], {}, { backups: [{ sid: 'X' }] })
    const { next } = search(all, 'X')
    assert.deepEqual(
      [next(), next(), next(), next(), next()],
      ['a HIT sticky', 'c HIT sticky', 'd HIT sticky', 'b MISS round_robin', '- MISS'],
    )
  })

  test('uses a backup that it names while primaries live, and goes on among the primaries', () => {
    const all = made([{}, {}], {}, { backups: [{}, {}] })
    const { next } = search(all, 'D')
    assert.deepEqual(
      [next(), next(), next(), next()],
      ['d HIT sticky', 'a MISS round_robin', 'b MISS round_robin', 'c MISS backup'],
    )
  })

  test('marks what was tried by the peer, and not by its place in a list', () => {
    const all = made([{}, {}], {}, { backups: [{ sid: 'A' }] })
    const { next } = search(all, 'A')
    assert.deepEqual([next(), next()], ['a HIT sticky', 'c HIT sticky'])
  })

  test('of a lone peer is bound to it, and asks it again as everybody does', () => {
    const all = made([{}], {})
    const { next } = search(all, 'A')
    all.zone.peers.fails[0] = 9
    all.zone.peers.checkedAt[0] = all.dice.now()
    assert.deepEqual([next(), next()], ['a HIT sticky', 'a HIT sticky'])
    assert.equal(search(all, '').next(), 'a NEW single')
  })

  test('takes the first text that is not empty', () => {
    const all = made([{}, {}], { hints: [(call) => call.args, (call) => call.target] })
    assert.equal(search(all, 'A', { args: 'B' }).next(), 'b HIT sticky')
    assert.equal(search(all, 'A').next(), 'a HIT sticky')
    assert.equal(search(all, '').next(), 'a NEW round_robin')
  })

  test('reads of the request once', () => {
    let reads = 0
    const hint = (call: Call) => {
      reads += 1
      return call.target
    }
    const { next } = search(made([{}, {}, {}], { hints: [hint] }), 'X')
    next()
    next()
    assert.equal(reads, 1)
  })

  test('may have a name of other letters than ASCII, which clients send as bytes', () => {
    const all = made([{}, { sid: 'süd' }], {})
    assert.equal(search(all, Buffer.from('süd').toString('latin1')).next(), 'b HIT sticky')
  })

  test('is counted by what became of it, attempt by attempt', () => {
    const all = made([{}, {}], {})
    search(all, '').next()
    const { next } = search(all, 'A')
    next()
    next()
    const counts = (['stickyNew', 'stickyHit', 'stickyMiss'] as const).map((field) => all.zone.get(field))
    assert.deepEqual(counts, [1, 1, 1])
  })

  test('leaves no mark on attempts of a group that binds none', () => {
    const upstream = group([1, 1])
    const selection = new Selection(
      new Group(upstream, new RoundRobin(upstream.peers), undefined),
      new Call(),
      env(),
    )
    assert.deepEqual([selection.next()?.sticky, selection.stickiness], ['', ''])
    assert.equal(upstream.zone.get('stickyNew'), 0)
  })

  test('says the same of the attempt that is made again on a fresh connection', () => {
    const all = made([{}, {}], {})
    const { selection, next, attempts } = search(all, 'B')
    next()
    const again = selection.reserve(attempts[0]!.peer!, attempts[0]!.pick)
    assert.deepEqual([again.sticky, again.pick], ['HIT', 'sticky'])
  })
})

describe('a strict session', () => {
  test('goes nowhere but to its peer', () => {
    const all = made([{ down: true }, {}], { strict: true })
    const { next, selection } = search(all, 'A')
    assert.equal(next(), '- MISS')
    assert.equal(selection.denial, 'no_live')
    assert.equal(selection.denialDetail, 'the peer of its session is not ready')
    assert.equal(search(all, 'X').next(), '- MISS')
    assert.equal(search(all, '').next(), 'b NEW round_robin')
    assert.equal(search(all, 'B').next(), 'b HIT sticky')
  })

  test('is refused after its peer has failed it, and finds the others of that name first', () => {
    const all = made([{}, {}, { sid: 'A' }], { strict: true })
    const { next } = search(all, 'A')
    assert.deepEqual([next(), next(), next()], ['a HIT sticky', 'c HIT sticky', '- MISS'])
  })

  test('is no matter of limits, though its peer is full', () => {
    const all = made([{ max_conns: 1 }, {}], { strict: true })
    all.zone.peers.conns[0] = 1
    const { next, selection } = search(all, 'A')
    assert.deepEqual([next(), selection.denial], ['- MISS', 'no_live'])
    all.zone.peers.conns[0] = 0
    // As where it has waited for a free place.
    selection.again()
    assert.equal(next(), 'a HIT sticky')
  })
})

describe('requests that wait in a queue', () => {
  test('stand in one lane where they are of one session or of none', () => {
    const all = made([{}, {}], {})
    const lane = (hint: string) => search(all, hint).selection.lane
    assert.equal(lane(''), lane(''))
    assert.equal(lane('A'), lane('A'))
    assert.equal(new Set([lane(''), lane('A'), lane('B')]).size, 3)
  })
})

describe('a secret', () => {
  test('is mixed into the names, which cannot be made up without it', () => {
    const all = made([{}, {}], { secret: () => 's3' })
    assert.equal(search(all, md5('Bs3')).next(), 'b HIT sticky')
    assert.equal(search(all, 'B').next(), 'a MISS round_robin')
    assert.equal(search(all, md5('Bs4')).next(), 'b MISS round_robin')
    assert.equal(search(all, md5('Bs3').toUpperCase()).next(), 'a MISS round_robin')
  })

  test('may be made of the request, also in very many ways', () => {
    const all = made([{}, {}], { secret: (call) => call.args })
    for (let i = 0; i < 5; i++)
      assert.equal(search(all, md5(`B${i}`), { args: `${i}` }).next(), 'b HIT sticky')
    assert.equal(search(all, md5('B1'), { args: '2' }).next(), 'a MISS round_robin')
    const many = made(
      Array.from({ length: 2000 }, (_, i) => ({ sid: `s${i}` })),
      { secret: (call) => call.args },
    )
    for (let i = 0; i < 120; i++) assert.match(search(many, md5(`s7${i}`), { args: `${i}` }).next(), /^h HIT/)
  })

  test('that comes out empty is a secret all the same', () => {
    const all = made([{}, {}], { secret: () => '' })
    assert.equal(search(all, md5('B')).next(), 'b HIT sticky')
    assert.equal(search(all, 'B').next(), 'a MISS round_robin')
  })
})

describe('a cookie', () => {
  const rules = (more: Partial<CookieRules> = {}): CookieRules => ({
    name: 'srv',
    expires: undefined,
    attributes: [() => 'path=/'],
    ...more,
  })
  const written = (more: Partial<CookieRules>, call: Partial<Call> = {}) => {
    const one = search(made([{}, {}], { cookie: rules(more) }), '', call)
    one.next()
    return one.call.stickyCookie
  }

  test('names the peer that was selected, also where the client knew', () => {
    const all = made([{}, {}], { cookie: rules() })
    for (const hint of ['', 'B', 'X']) {
      const { next, call, attempts } = search(all, hint)
      next()
      assert.equal(call.stickyCookie, `srv=${attempts[0]!.peer!.options.sid}; path=/`)
    }
  })

  test('is of the peer that was selected last, and there is none where nobody was', () => {
    const all = made([{}, {}], { cookie: rules() })
    const { next, call } = search(all, 'B')
    const after = () => {
      next()
      return call.stickyCookie
    }
    assert.deepEqual([after(), after(), after()], ['srv=B; path=/', 'srv=A; path=/', 'srv=A; path=/'])
    const dead = made([{ down: true }], { cookie: rules() })
    const none = search(dead, 'A')
    none.next()
    assert.equal(none.call.stickyCookie, '')
  })

  test('has the hash of id and secret', () => {
    const { next, call } = search(made([{}], { cookie: rules(), secret: () => 'x' }), '')
    next()
    assert.equal(call.stickyCookie, `srv=${md5('Ax')}; path=/`)
  })

  test('has its attributes in their order, without those that come out empty or end with an equals sign', () => {
    const attributes = [
      () => 'httponly',
      (call: Call) => `domain=${call.args}`,
      (call: Call) => call.uri,
      () => 'samesite=strict',
      () => 'path=/app',
    ]
    assert.equal(
      written({ attributes }, { args: 'example.com', uri: 'secure' }),
      'srv=A; httponly; domain=example.com; secure; samesite=strict; path=/app',
    )
    assert.equal(written({ attributes }), 'srv=A; httponly; samesite=strict; path=/app')
  })

  test('expires by the clock, both ways', (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.UTC(2026, 10, 30, 23, 59, 59, 999) })
    assert.equal(
      written({ expires: 3600 }),
      'srv=A; expires=Tue, 01-Dec-26 00:59:59 GMT; max-age=3600; path=/',
    )
    assert.equal(written({ expires: 0 }), 'srv=A; expires=Mon, 30-Nov-26 23:59:59 GMT; max-age=0; path=/')
    assert.equal(
      written({ expires: 12 * 365 * 86_400 }),
      'srv=A; expires=Sat, 27-Nov-2038 23:59:59 GMT; max-age=378432000; path=/',
    )
    assert.equal(
      written({ expires: 'max' }),
      'srv=A; expires=Thu, 31-Dec-37 23:55:55 GMT; max-age=315360000; path=/',
    )
  })

  test('is found among others whatever the letter case of its name, and the first of two counts', () => {
    const hints = [(call: Call) => cookie(call.rawHeaders, 'srv')]
    const all = made([{}, {}], { hints })
    const hit = (...rawHeaders: string[]) => search(all, '', { rawHeaders }).next().split(' ')[1]
    assert.equal(hit('Cookie', 'a=1; srv=A; b=2'), 'HIT')
    assert.equal(hit('cookie', 'a=1', 'COOKIE', 'SRV=A'), 'HIT')
    assert.equal(hit('Cookie', 'srv=X; srv=A'), 'MISS')
    assert.equal(hit('Cookie', 'srv=A; srv=X'), 'HIT')
    assert.equal(hit('Cookie', 'xsrv=A; srvx=A'), 'NEW')
    assert.equal(hit('Cookie', 'srv=; srv=A'), 'NEW')
    assert.equal(hit('Cookie', `srv=${'A'.repeat(8192)}`), 'MISS')
  })
})

describe('sessions that are learnt', () => {
  test('are bound where an attempt that made them has ended well, and found again', () => {
    const all = made([{}, {}], { learn: {} })
    assert.equal(search(all, 'id').next(), 'a NEW round_robin')
    const first = search(all, '', { uri: 'id' })
    assert.equal(first.next(), 'b NEW round_robin')
    assert.equal(search(all, 'id').next(), 'a NEW round_robin', 'not before')
    end(all, first.attempts[0]!, first.call)
    assert.equal(search(all, 'id').next(), 'b HIT sticky')
    assert.equal(search(all, 'other').next(), 'b NEW round_robin')
  })

  test('of the texts that make or name one the first counts that is not empty', () => {
    const all = made([{}, {}], { learn: { create: [(call) => call.host, (call) => call.uri] } })
    const one = search(all, '', { uri: 'id', host: 'better' })
    one.next()
    end(all, one.attempts[0]!, one.call)
    assert.equal(search(all, 'id').next(), 'b NEW round_robin')
    assert.equal(search(all, 'better').next(), 'a HIT sticky')
    assert.equal(search(all, 'id', { args: 'better' }).next(), 'a HIT sticky')
  })

  test('whose peer cannot be used are a MISS, and follow their client to where it went', () => {
    const all = made([{}, {}, {}], { learn: {} })
    const one = search(all, '', { uri: 'id' })
    one.next()
    end(all, one.attempts[0]!, one.call)
    const two = search(all, 'id')
    assert.deepEqual([two.next(), two.next()], ['a HIT sticky', 'b MISS round_robin'])
    end(all, two.attempts[0]!, two.call, { ending: 'error', failed: true, reason: 'refused', next: true })
    end(all, two.attempts[1]!, two.call)
    assert.equal(search(all, 'id').next(), 'b HIT sticky')
    assert.equal(all.table.rebound, 1)
  })

  test('that were moved, or begun, while a request was on its way stay where they are', () => {
    const all = made([{}, {}, {}], { learn: {} })
    const unknown = search(all, 'id')
    assert.equal(unknown.next(), 'a NEW round_robin')
    const maker = search(all, '', { uri: 'id' })
    assert.equal(maker.next(), 'b NEW round_robin')
    end(all, maker.attempts[0]!, maker.call)
    // It knew nothing of the session, and has made none.
    end(all, unknown.attempts[0]!, unknown.call)
    const [slow, renewing, mover] = [search(all, 'id'), search(all, 'id', { uri: 'id' }), search(all, 'id')]
    for (const one of [slow, renewing, mover]) assert.equal(one.next(), 'b HIT sticky')
    end(all, mover.attempts[0]!, mover.call, { ending: 'error', failed: true, reason: 'refused', next: true })
    assert.equal(mover.next(), 'c MISS round_robin')
    end(all, mover.attempts[1]!, mover.call)
    // Both went where it had been before.
    end(all, slow.attempts[0]!, slow.call)
    end(all, renewing.attempts[0]!, renewing.call)
    assert.equal(search(all, 'id').next(), 'c HIT sticky')
    assert.equal(all.table.rebound, 1)
    // Another id is of another session, whatever the request said.
    const renamer = search(all, 'id', { uri: 'new' })
    renamer.next()
    end(all, renamer.attempts[0]!, renamer.call)
    assert.equal(search(all, 'new').next(), 'c HIT sticky')
  })

  test('go with the first of the requests that could not go to their peer, though the others say the id again', () => {
    const all = made([{}, {}, {}], { learn: {} })
    const maker = search(all, '', { uri: 'id' })
    assert.equal(maker.next(), 'a NEW round_robin')
    end(all, maker.attempts[0]!, maker.call)
    const movers = [search(all, 'id', { uri: 'id' }), search(all, 'id', { uri: 'id' })]
    for (const one of movers) assert.equal(one.next(), 'a HIT sticky')
    for (const one of movers) {
      end(all, one.attempts[0]!, one.call, { ending: 'error', failed: true, reason: 'refused', next: true })
    }
    assert.deepEqual(
      movers.map((one) => one.next()),
      ['b MISS round_robin', 'c MISS round_robin'],
    )
    const [quick, slow] = [movers[0]!, movers[1]!]
    end(all, quick.attempts[1]!, quick.call)
    assert.equal(search(all, 'id').next(), 'b HIT sticky')
    end(all, slow.attempts[1]!, slow.call)
    assert.equal(search(all, 'id').next(), 'b HIT sticky')
    assert.equal(all.table.rebound, 1)
  })

  test('are never made by requests that only name one', () => {
    const all = made([{}, {}], { learn: {} })
    const one = search(all, 'id')
    one.next()
    end(all, one.attempts[0]!, one.call)
    assert.equal(all.table.size, 0)
  })

  test('are bound by no attempt that failed, was given up, or came to nothing', () => {
    const outcomes: [Partial<Attempt>, boolean][] = [
      [{ ending: 'ok' }, true],
      [{ ending: 'http', failed: true, reason: 'http_503' }, false],
      [{ ending: 'http', next: true, reason: 'http_404' }, false],
      [{ ending: 'error', failed: true, reason: 'body_cut' }, false],
      [{ ending: 'timeout', failed: true, reason: 'timeout_read' }, false],
      [{ ending: 'stale', reason: 'stale' }, false],
      // Without an answer nobody knows whether the peer has one.
      [{ ending: 'aborted', reason: 'client_abort' }, false],
      [{ ending: 'aborted', reason: 'client_abort', accepted: true }, true],
    ]
    for (const [how, bound] of outcomes) {
      const all = made([{}, {}], { learn: {} })
      const one = search(all, '', { uri: 'id' })
      one.next()
      end(all, one.attempts[0]!, one.call, how)
      assert.equal(all.table.size, bound ? 1 : 0, JSON.stringify(how))
    }
  })

  test('run out, are then new, and use makes them last longer', () => {
    const all = made([{}, {}], { learn: {} })
    const use = (hint: string, uri = '') => {
      const one = search(all, hint, { uri })
      const said = one.next()
      end(all, one.attempts[0]!, one.call)
      return said
    }
    use('', 'id')
    all.dice.clock.move(900)
    assert.equal(use('id'), 'a HIT sticky')
    all.dice.clock.move(900)
    assert.equal(use('id'), 'a HIT sticky')
    all.dice.clock.move(1000)
    assert.equal(use('id'), 'b NEW round_robin')
    assert.equal(use('id'), 'a NEW round_robin', 'one that has run out is not made again')
  })

  test('under norefresh run out by the time of their making', () => {
    const all = made([{}, {}], { learn: { refresh: false } })
    const one = search(all, '', { uri: 'id' })
    one.next()
    end(all, one.attempts[0]!, one.call)
    all.dice.clock.move(900)
    const two = search(all, 'id')
    assert.equal(two.next(), 'a HIT sticky')
    end(all, two.attempts[0]!, two.call)
    all.dice.clock.move(100)
    assert.match(search(all, 'id').next(), /NEW/)
  })

  test('are found at the header where that is asked for, and only of one that is passed on', () => {
    const all = made([{}, {}], { learn: { at: 'header' } })
    const one = search(all, '', { uri: 'id' })
    one.next()
    const [attempt] = one.attempts
    measured(attempt!, one.call, all.dice.now())
    assert.equal(search(all, 'id').next(), 'a HIT sticky')
    // The end of it is nothing new.
    one.call.uri = 'later'
    end(all, attempt!, one.call)
    assert.equal(all.table.size, 1)
    const failed = search(all, '', { uri: 'other' })
    failed.next()
    failed.attempts[0]!.failed = true
    measured(failed.attempts[0]!, failed.call, all.dice.now())
    assert.equal(all.table.size, 1)
    // A page of our own takes the place of the answer: its header is not passed on, and it came all the same.
    const replaced = search(all, '', { uri: 'third' })
    replaced.next()
    end(all, replaced.attempts[0]!, replaced.call)
    assert.equal(all.table.size, 2)
  })

  test('know nothing of secrets', () => {
    const all = made([{}, {}], { learn: {}, secret: undefined })
    const one = search(all, '', { uri: 'id' })
    one.next()
    end(all, one.attempts[0]!, one.call)
    assert.equal(all.table.all()[0]!.sid, 'A')
  })

  test('may be of any bytes', () => {
    const all = made([{}, {}], { learn: {} })
    const id = Array.from({ length: 256 }, (_, i) => String.fromCharCode(i)).join('')
    const one = search(all, '', { uri: id })
    one.next()
    end(all, one.attempts[0]!, one.call)
    assert.equal(search(all, id).next(), 'a HIT sticky')
    assert.match(search(all, id.slice(1)).next(), /NEW/)
  })

  test('strict ones are refused where their peer is away, and unknown ones are new', () => {
    const all = made([{}, {}], { learn: {}, strict: true })
    const one = search(all, '', { uri: 'id' })
    one.next()
    end(all, one.attempts[0]!, one.call)
    all.zone.peers.barred[0] = 1
    assert.equal(search(all, 'id').next(), '- MISS')
    assert.equal(search(all, 'unknown').next(), 'b NEW round_robin')
  })

  test('of a peer that the group has no more are a MISS', () => {
    const all = made([{}, {}], { learn: {} })
    const one = search(all, '', { uri: 'id' })
    one.next()
    end(all, one.attempts[0]!, one.call)
    all.table.merge([{ ...all.table.all()[0]!, sid: 'Z', boundAt: 1e9 }])
    assert.match(search(all, 'id').next(), /MISS round_robin/)
  })
})

describe('where requests are split over tracks', () => {
  const split: SplitRule = { variable: undefined, percents: new Map([['canary', 0.01]]), key: undefined }
  const sketches = [{}, {}, { track: 'canary' }, { track: 'canary' }]

  test('a session stays with its peer in another track than the split would send it to', () => {
    const all = made(sketches, {}, { split })
    const one = search(all, 'C')
    assert.equal(one.next(), 'c HIT sticky')
    assert.equal(one.call.track, 'canary')
    assert.equal(all.upstream.tracks.get('canary')!.get('split'), 1)
    assert.match(search(all, '').next(), /^[ab] NEW/)
  })

  test('a session whose peer is away goes to others of its track, and then to stable', () => {
    const all = made(sketches, {}, { split })
    const { next, selection } = search(all, 'C')
    assert.equal(selection.tries, 4)
    assert.deepEqual(
      [next(), next(), next(), next()],
      ['c HIT sticky', 'd MISS round_robin', 'a MISS fallback', 'b MISS fallback'],
    )
    const canary = all.upstream.tracks.get('canary')!
    assert.deepEqual([canary.get('split'), canary.get('fallbacks')], [1, 1])
  })
})

describe('beside what a method learns', () => {
  test('an attempt of a session begins from the average that had drifted, as any other', () => {
    const upstream = group([{ sid: 'A' }, { sid: 'B' }])
    const method: Balancer = {
      pick: () => upstream.peers[0],
      shares: () => [1, 0],
      drifted: ({ name }) => (name === 'b' ? 42 : 7),
    }
    const sticky = new Sticky(plain, upstream.peers)
    const balancing = new Group(upstream, method, undefined, undefined, { sticky })
    const call = Object.assign(new Call(), { target: 'B' })
    const attempt = new Selection(balancing, call, env()).next()!
    assert.deepEqual([attempt.peer!.name, attempt.drifted], ['b', 42])
  })
})
