import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { switchTo } from '../../../feedback/backup-switch.ts'
import { Call } from '../../../feedback/call.ts'
import { retire } from '../../../feedback/carry.ts'
import { recall } from '../../../feedback/held.ts'
import { observe } from '../../../feedback/observe.ts'
import type { Attempt } from '../../../feedback/outcome.ts'
import { sessionKey } from '../../../feedback/sessions/sessions.ts'
import type { SharedZone } from '../../../feedback/zone.ts'
import type { Group } from '../../../sidecar/balance/group.ts'
import { Selection } from '../../../sidecar/balance/pick.ts'
import { JoinedMemory } from '../../../sidecar/build/joined-memory.ts'
import { join, prepare, type Running } from '../../../sidecar/build/running.ts'
import { shareMemory } from '../../../sidecar/build/shared-memory.ts'
import { upstreamFacts } from '../../../sidecar/build/upstream-facts.ts'
import { loadText } from '../../../sidecar/config/load.ts'

const options = { prefix: '/tmp', version: '0' }

/** The thread that reads configurations, and one that serves by them in the memory of the first. */
class Program {
  main!: Running
  served!: Running
  readonly #notes: SharedZone[] = []
  readonly #memory = new JoinedMemory(0, () => {
    for (const note of this.#notes.splice(0)) this.#memory.move(note)
  })

  /** @param block body of the group `u` */
  async load(block: string): Promise<void> {
    const loaded = loadText(`http { upstream u { ${block} } }`, 'test.conf', 'nginx')
    const before = this.main as Running | undefined
    const prepared = await prepare(loaded, options, before, 2)
    this.main = prepared.commit()
    for (const { upstream } of [this.#group(this.main)]) {
      for (const zone of [upstream.zone, upstream.shadow?.upstream.zone])
        if (zone) zone.onMove = (shared) => this.#notes.push(shared)
    }
    this.#memory.use(structuredClone(shareMemory(prepared.plans, this.main)))
    this.served = join(loaded.model, prepared.plans, options, this.#memory, before && this.served)
    for (const { group, peers, twins } of this.main.leaving) {
      const { zone, shadow } = group.balancing.upstream
      retire(zone, peers)
      if (shadow) retire(shadow.upstream.zone, twins)
    }
  }

  #group(running: Running): Group {
    return running.groups.get('u')!.balancing
  }

  /** As the main thread sees it. */
  get group(): Group {
    return this.#group(this.main)
  }

  /** As it is for the thread that serves. */
  get serving(): Group {
    return this.#group(this.served)
  }

  get facts() {
    return upstreamFacts(this.main, [])[0]!
  }

  begin(call = new Call()): Attempt {
    return new Selection(this.serving, call).next()!
  }

  end(attempt: Attempt, ms = 5): void {
    Object.assign(attempt, { ending: 'ok', peerStatus: 200, accepted: true, responseMs: ms })
    observe(attempt, undefined, attempt.startedAt + ms)
  }

  /** Requests one after the other, each answered after the time that its peer takes. @returns how many each peer had */
  serve(count: number, ms: (name: string) => number = () => 5): Map<string, number> {
    const counts = new Map<string, number>()
    for (let i = 0; i < count; i++) {
      const attempt = this.begin()
      const { name } = attempt.peer!
      counts.set(name, (counts.get(name) ?? 0) + 1)
      this.end(attempt, ms(name))
    }
    return counts
  }
}

const stable = 'server 127.0.0.1:1; server 127.0.0.1:2;'
const canary = 'server 127.0.0.1:3 track=canary; server 127.0.0.1:4 track=canary;'

test('percentages change by a reload without any loss of what was learnt or counted', async () => {
  const program = new Program()
  const block = (percent: number) => `least_time last_byte; ${stable} ${canary} split canary=${percent}%;`
  await program.load(block(50))
  program.serve(400, (name) => (name.endsWith('1') ? 5 : 20))
  const { zone, tracks } = program.group.upstream
  const averages = [...zone.peers.avg]
  const sent = tracks.get('canary')!.get('split')
  assert.ok(sent > 150 && sent < 250, `${sent}`)
  const answers = program.group.upstream.cohort(program.group.upstream.peers[2]).answers
  assert.equal(answers, sent)
  await program.load(block(5))
  assert.equal(program.group.upstream.zone, zone)
  assert.deepEqual([...zone.peers.avg], averages)
  assert.equal(program.group.upstream.cohort(program.group.upstream.peers[2]).answers, answers)
  program.serve(2000)
  const more = program.group.upstream.tracks.get('canary')!.get('split') - sent
  assert.ok(more > 50 && more < 160, `${more}`)
  assert.deepEqual(program.facts.split, {
    variable: undefined,
    percents: new Map([
      ['stable', 95],
      ['canary', 5],
    ]),
    key: undefined,
  })
})

test('a group is split, and no more, while requests are under way', async () => {
  const program = new Program()
  const plain = `least_time last_byte; ${stable} ${canary}`
  await program.load(plain)
  const before = program.begin()
  await program.load(`${plain} split canary=100%;`)
  const after = program.begin()
  assert.equal(after.peer!.options.track, 'canary')
  program.end(before)
  await program.load(plain)
  program.end(after)
  const { zone } = program.group.upstream
  assert.ok([...zone.peers.conns, ...zone.peers.waiting].every((count) => count === 0))
  const counts = program.serve(400)
  assert.equal(counts.size, 4)
  assert.ok([...zone.peers.avg].every(Number.isFinite))
})

test('facts tell shares by the split, and what the backups have where a track has nobody', async () => {
  const program = new Program()
  await program.load(`${stable} ${canary} server 127.0.0.1:5 backup; split canary=10%;`)
  const round = (shares: readonly number[]) => shares.map((share) => Number(share.toFixed(4)))
  const shares = () => round(program.facts.shares(0).primary)
  assert.deepEqual(shares(), [0.45, 0.45, 0.05, 0.05])
  const { barred } = program.group.upstream.zone.peers
  barred[2] = 1
  assert.deepEqual(shares(), [0.45, 0.45, 0, 0.1])
  barred[3] = 1
  assert.deepEqual(shares(), [0.5, 0.5, 0, 0])
  barred.fill(0)
  barred[0] = barred[1] = 1
  assert.deepEqual(shares(), [0, 0, 0.05, 0.05])
  assert.deepEqual(program.facts.shares(0).backup, [1])
})

test('facts tell that the backups have everything while they come first, and that it is theirs as long as one is ready', async () => {
  const program = new Program()
  await program.load(`${stable} server 127.0.0.1:5 backup; backup_switch permanent=1m;`)
  const shares = () => program.facts.shares(0)
  assert.deepEqual(program.facts.backupSwitch, { after: 60_000 })
  assert.deepEqual(shares(), { primary: [0.5, 0.5], backup: [1] })
  switchTo(program.group.upstream.zone, true, 0)
  assert.deepEqual(shares(), { primary: [0, 0], backup: [1] })
  program.group.upstream.zone.peers.barred[2] = 1
  assert.deepEqual(shares(), { primary: [0.5, 0.5], backup: [0] })
})

test('facts tell whom a session names: by its cookie with the secret, or as it was learnt', async () => {
  const program = new Program()
  const named = (session: string) => program.facts.sticky!.bound(session, 0)?.map(({ name }) => name)
  const servers = 'zone u 64k; server 127.0.0.1:1 sid=one; server 127.0.0.1:2 sid=two;'
  await program.load(`${servers} sticky cookie id; sticky_strict on;`)
  assert.equal(program.facts.sticky!.mode, 'cookie')
  assert.equal(program.facts.sticky!.strict, true)
  assert.deepEqual([named('two'), named('three'), named('')], [['127.0.0.1:2'], [], []])
  await program.load(`${servers} sticky route $arg_to; sticky_secret salt;`)
  const hashed = createHash('md5').update('twosalt').digest('hex')
  assert.deepEqual([named('two'), named(hashed)], [[], ['127.0.0.1:2']])
  await program.load(`${servers} sticky route $arg_to; sticky_secret $remote_addr;`)
  assert.equal(named('two'), undefined)
  await program.load(`${servers} sticky learn zone=s:64k create=$cookie_a lookup=$cookie_a;`)
  assert.equal(program.facts.sticky!.mode, 'learn')
  const { table } = program.group.upstream.sessions!
  table.bind(sessionKey('visit'), 'one', 0, { timeout: 1000, create: true, refresh: true })
  assert.deepEqual([named('visit'), named('one')], [['127.0.0.1:1'], []])
})

const shadow = 'shadow least_time last_byte;'

test('what another thread picks and learns in a shadow is seen by the one that shows it', async () => {
  const program = new Program()
  await program.load(`${stable} ${shadow}`)
  program.serve(100, (name) => (name.endsWith('1') ? 10 : 30))
  const facts = program.facts.shadow!
  const [a, b] = program.group.upstream.peers
  assert.equal(facts.method, 'least_time')
  assert.equal(facts.words, 'least_time last_byte')
  assert.equal(facts.picksOf(a!) + facts.picksOf(b!), 100)
  assert.ok(facts.picksOf(a!) > facts.picksOf(b!))
  assert.ok(facts.picks > 90 && facts.same > 20 && facts.same < facts.picks)
  assert.ok(facts.shadowMs < facts.pickedMs)
  assert.ok(Math.abs(facts.expected(a!, 0)! - 10) < 1)
  const shares = facts.shares(performance.now())
  assert.ok(Math.abs(shares[0]! - 0.75) < 0.02, `${shares}`)
})

test('a shadow is kept by a reload as long as its line stays, and begins afresh with another one', async () => {
  const program = new Program()
  await program.load(`${stable} ${shadow}`)
  program.serve(50)
  const zone = () => program.group.upstream.shadow!.upstream.zone
  const first = zone()
  const averages = [...first.peers.avg.slice(0, 2)]
  assert.ok(averages.every((average) => average > 0))
  const { picks } = program.facts.shadow!
  await program.load(`${stable} ${canary} ${shadow}`)
  assert.equal(zone(), first)
  assert.deepEqual([...first.peers.avg.slice(0, 2)], averages)
  assert.equal(program.facts.shadow!.picks, picks)
  program.serve(400)
  assert.ok(program.group.upstream.peers.every((peer) => program.facts.shadow!.picksOf(peer) > 0))
  await program.load(`${stable} ${canary} shadow least_time last_byte factor=50;`)
  assert.notEqual(zone(), first)
  assert.equal(zone().peers.avg[0], 0)
  assert.equal(program.facts.shadow!.picks, 0)
})

test('where the method in force becomes another one, a shadow keeps what it learnt and is compared anew', async () => {
  const program = new Program()
  await program.load(`${stable} ${shadow}`)
  program.serve(50)
  const { zone } = program.group.upstream.shadow!.upstream
  await program.load(`least_conn; ${stable} ${shadow}`)
  assert.equal(program.group.upstream.shadow!.upstream.zone, zone)
  assert.ok(zone.peers.avg[0]! > 0)
  const facts = program.facts.shadow!
  assert.deepEqual([facts.picks, facts.same, facts.pickedMs, facts.shadowMs], [0, 0, 0, 0])
  assert.equal(facts.picksOf(program.group.upstream.peers[0]!), 0)
})

test('twins of peers that a reload takes away leave with their last call, and a shadow grows with its group', async () => {
  const program = new Program()
  const servers = (count: number) =>
    Array.from({ length: count }, (_, i) => `server 127.0.0.1:${1 + i};`).join(' ')
  await program.load(`${servers(4)} ${shadow}`)
  const running = Array.from({ length: 8 }, () => program.begin())
  await program.load(`${servers(1)} ${shadow}`)
  const { zone } = program.group.upstream.shadow!.upstream
  assert.ok(zone.retired.length > 0)
  for (const attempt of running) program.end(attempt)
  assert.equal(zone.retired.length, 0)
  assert.ok(zone.peers.conns.every((count) => count === 0))
  await program.load(`${servers(300)} ${shadow}`)
  assert.equal(program.serve(900).size, 300)
  const picked = program.group.upstream.peers.filter((peer) => program.facts.shadow!.picksOf(peer) > 0)
  assert.ok(picked.length > 250, `${picked.length}`)
})

test('what a shadow holds when its line goes is let go, and learnt by nobody', async () => {
  const program = new Program()
  await program.load(`${stable} ${shadow}`)
  const attempt = program.begin()
  const { zone } = attempt.shadow!.shadow.upstream
  await program.load(stable)
  assert.equal(program.group.upstream.shadow, undefined)
  assert.equal(program.facts.shadow, undefined)
  program.end(attempt)
  assert.ok(zone.peers.conns.every((count) => count === 0))
  assert.equal(program.begin().shadow, undefined)
})

test('what a thread held in a shadow is given back when it dies', async () => {
  const program = new Program()
  await program.load(`${stable} ${canary} ${shadow} split canary=50%;`)
  for (let i = 0; i < 10; i++) program.begin()
  const { zone } = program.group.upstream.shadow!.upstream
  const sum = (field: 'conns' | 'waiting') => zone.peers[field].reduce((all, count) => all + count, 0)
  assert.deepEqual([sum('conns'), sum('waiting')], [10, 10])
  recall(zone, 0)
  assert.deepEqual([sum('conns'), sum('waiting')], [0, 0])
})
