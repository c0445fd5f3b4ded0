import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../feedback/call.ts'
import { observe } from '../../feedback/observe.ts'
import { Upstream } from '../../feedback/upstream.ts'
import { feedback } from '../../sidecar/balance/feedback.ts'
import { Group } from '../../sidecar/balance/group.ts'
import { leastTime } from '../../sidecar/balance/least-time.ts'
import { Selection } from '../../sidecar/balance/pick.ts'
import { roundRobin } from '../../sidecar/balance/round-robin.ts'
import { env, group } from '../support/peers.ts'

const system = env()

/** A group as a configuration after another has it: the same peers in the same zone, another method. */
class Reloaded {
  readonly #peers = group([1, 1, 1])
  readonly zone = this.#peers.zone
  /** What every peer reports. */
  said = '7'

  times(mode: 'header' | 'last_byte', plain = false): Group {
    const args = plain ? { mode, plain } : { mode }
    const upstream = this.#upstream(leastTime.learning(args, () => () => ''))
    return new Group(upstream, leastTime.create(upstream, upstream.peers, args, system), undefined)
  }

  reports(variable: string): Group {
    const args = { variable }
    const upstream = this.#upstream(feedback.learning(args, () => () => this.said))
    return new Group(upstream, feedback.create(upstream, upstream.peers, args, system), undefined)
  }

  turns(): Group {
    const upstream = this.#upstream(undefined)
    return new Group(upstream, roundRobin.create(upstream, upstream.peers), undefined)
  }

  #upstream(learning: Upstream['learning']): Upstream {
    const { name, zone, peers } = this.#peers
    const rest = { backups: [], method: 'any', responseTimeFactor: 0.9 }
    return new Upstream({ name, zone, peers, ...rest, learning })
  }

  /** Begins a request. @returns ends it, its answer having taken so long */
  begin(group: Group): (took?: number) => void {
    const call = new Call()
    const attempt = new Selection(group, call, system).next()!
    return (took = 50) => {
      attempt.ending = 'ok'
      attempt.peerStatus = attempt.status = 200
      call.attempts.push(attempt)
      attempt.headerMs = attempt.responseMs = took
      observe(attempt, call, system.now() + took)
    }
  }

  ask(group: Group, count = 30): void {
    for (let i = 0; i < count; i++) this.begin(group)()
  }

  get averages(): number {
    return this.zone.peers.avg.filter((average) => average > 0).length
  }

  get reported(): number {
    return this.zone.peers.reportAt.filter((at) => at > 0).length
  }
}

test('averages of one kind of time are not taken for those of another, nor for reports', () => {
  const reloaded = new Reloaded()
  reloaded.ask(reloaded.times('header'))
  assert.equal(reloaded.averages, 3)
  // The same again, by a rule that goes by the same times, and after a method that learns nothing: it is kept.
  reloaded.times('header')
  reloaded.times('header', true)
  reloaded.turns()
  reloaded.times('header')
  assert.equal(reloaded.averages, 3)
  reloaded.times('last_byte')
  assert.equal(reloaded.averages, 0)
  reloaded.ask(reloaded.times('last_byte'))
  assert.equal(reloaded.averages, 3)
  // Answers under feedback keep the peers' clocks going, but tell no times: what is old would look new.
  reloaded.ask(reloaded.reports('$load'))
  assert.deepEqual([reloaded.averages, reloaded.reported], [0, 3])
  reloaded.reports('$load')
  assert.equal(reloaded.reported, 3)
  reloaded.reports('$other')
  assert.equal(reloaded.reported, 0)
  reloaded.ask(reloaded.reports('$other'))
  reloaded.times('last_byte')
  reloaded.reports('$load')
  assert.deepEqual([reloaded.averages, reloaded.reported], [0, 0])
})

test('a request from before a reload teaches nothing of what is learnt since', () => {
  const reloaded = new Reloaded()
  const old = reloaded.reports('$load')
  reloaded.ask(old)
  reloaded.said = '1000000'
  const end = reloaded.begin(old)
  reloaded.reports('$other')
  end()
  assert.equal(reloaded.reported, 0)
  const late = reloaded.begin(reloaded.times('header'))
  reloaded.times('last_byte')
  late(5000)
  assert.equal(reloaded.averages, 0)
  const { conns, waiting } = reloaded.zone.peers
  assert.deepEqual([Math.max(...conns), Math.max(...waiting)], [0, 0])
})
